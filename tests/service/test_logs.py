"""Logs go to standard error, whatever that is when a line comes."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest
import structlog

from tilesmith.app.service import logs


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    logs.configure("json", "error")


def test_a_line_goes_to_standard_error_as_it_is_then(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", first)
    logs.configure("json", "info")
    structlog.get_logger("tilesmith.test").info("one", answer=42)
    monkeypatch.setattr(sys, "stderr", second)
    first_lines = first.getvalue().splitlines()
    first.close()  # what had its place is gone, as a test runner's is: nothing is told of it
    logging.getLogger("asyncio").error("two")
    assert [json.loads(line)["event"] for line in first_lines] == ["one"]
    assert json.loads(first_lines[0])["answer"] == 42
    assert [json.loads(line)["event"] for line in second.getvalue().splitlines()] == ["two"]
