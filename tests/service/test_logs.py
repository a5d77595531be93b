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


def test_lines_below_the_level_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    logs.configure("json", "warning")
    ours, others = structlog.get_logger("tilesmith.test"), logging.getLogger("asyncio")
    for logger in (ours, others):
        logger.info("below")
        logger.warning("at it")
    ours.exception("above")
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert [(line["event"], line["logger"], line["level"]) for line in lines] == [
        ("at it", "tilesmith.test", "warning"),
        ("at it", "asyncio", "warning"),
        ("above", "tilesmith.test", "error"),
    ]
