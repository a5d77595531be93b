"""What all tests share: golden files, renewed only on purpose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew-golden", action="store_true", help="write golden files instead of comparing with them")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)` compares with the file `golden/<name>` beside the test. A missing file fails."""
    folder = Path(str(request.path)).parent / "golden"
    renew = bool(request.config.getoption("--renew-golden"))

    def compare(name: str, text: str) -> None:
        path = folder / name
        if renew:
            folder.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.is_file(), f"{path.name} is missing: make it with --renew-golden, and read it"
        assert text == path.read_text(encoding="utf-8"), f"{path.name} differs: if that is meant, use --renew-golden"

    return compare
