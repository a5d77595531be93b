"""docs/pipeline-format.md is held to the code: its examples load, its tables are complete."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from tilesmith.scheduler.errors import DocumentError
from tilesmith.scheduler.frontends.document.codes import CODES
from tilesmith.scheduler.frontends.document.document import load, load_text, to_document
from tilesmith.scheduler.frontends.document.functions import FUNCTIONS
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.document.operators import BINARY, COMPARE
from tilesmith.scheduler.frontends.document.parser import REDUCTIONS
from tilesmith.scheduler.frontends.document.schema import (
    BoundaryKind,
    InputDocument,
    ParamDocument,
    PipelineDocument,
    StageDocument,
    TypeName,
    UpdateDocument,
)
from tilesmith.scheduler.ir.pipeline.types import TYPES

PAGE = (Path(__file__).parents[2] / "docs" / "pipeline-format.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table after a heading."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


@pytest.mark.parametrize("text", blocks("json"))
def test_json_examples(text: str) -> None:
    pipeline = load_text(text)
    assert load(to_document(pipeline)) == pipeline


@pytest.mark.parametrize("text", blocks("yaml"))
def test_yaml_examples(text: str) -> None:
    assert load_text(text, yaml=True)


def test_python_examples() -> None:
    (text,) = blocks("python")
    names: dict[str, Any] = {}
    exec(text, names)
    assert [s.name for s in names["result"].stages] == ["mean", "sharp"]


def test_there_are_examples() -> None:
    assert len(blocks("json")) >= 3
    assert blocks("yaml")


def test_the_example_of_an_error() -> None:
    (line,) = re.findall(r"^    (/.*\[unknown_function\].*)$", PAGE, re.MULTILINE)
    document = to_document(load_text(blocks("json")[0]))
    document["stages"][1]["value"] = "blur_x(x, y) * 0.25 + blurx(x, y)"
    with pytest.raises(DocumentError) as caught:
        load(document)
    assert str(caught.value.problems[0]) == line


def test_every_error_code() -> None:
    assert {row[0].strip("`"): row[1] for row in rows("Errors")} == CODES


def test_every_limit() -> None:
    defaults = {f"`{f.name}`": f"{f.default:,}" for f in dataclasses.fields(Limits)}
    assert {row[0]: row[1] for row in rows("Limits")} == defaults


def test_everything_is_named() -> None:
    expressions = PAGE.split("\n## Expressions\n", 1)[1].split("\n## ", 1)[0].replace("\\|", "|")
    for name in (*FUNCTIONS, *REDUCTIONS):
        conversion = name.removeprefix("sat_") in TYPES
        assert conversion or re.search(rf"`{name}[`(]", expressions), name
    for operator in (*BINARY.values(), *COMPARE.values()):
        assert f"`{operator}`" in expressions, operator
    for kind in get_args(BoundaryKind):
        assert f"| `{kind}` |" in PAGE
    for model in (PipelineDocument, ParamDocument, InputDocument, StageDocument, UpdateDocument):
        for key in model.model_fields:
            assert f"`{key}`" in PAGE or f'"{key}"' in PAGE, key
    for type_ in TYPES:
        assert f"`{type_}`" in PAGE


def test_the_models_name_the_types() -> None:
    assert get_args(TypeName) == tuple(TYPES)
