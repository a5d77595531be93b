"""Code artifacts: the file is named after the header, or after the function where there is none."""

import pytest

from tilesmith.scheduler.codegen.artifact import CSource


@pytest.mark.parametrize(
    ("header_name", "language", "name"),
    [("blur.h", "c", "blur.c"), ("", "txt", "entry.txt"), ("blur.h", "py", "blur.py")],
)
def test_the_name_of_the_file(header_name: str, language: str, name: str) -> None:
    assert CSource("", "", header_name, "entry", (), (), language=language).code_name == name
