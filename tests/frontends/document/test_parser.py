"""Expressions are parsed in several threads at a time."""

import ast
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.frontends.document.document import load


def test_documents_are_loaded_in_several_threads_at_a_time() -> None:
    names = [name for name in pipelines.names() if name in ("blur", "harris", "unsharp", "sobel")] * 8
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(lambda name: load(pipelines.document(name)), names))
    assert [p.name for p in loaded] == names


def test_what_another_thread_disturbs_is_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where `inspect` reads a signature meanwhile."""
    calls, parse = [], ast.parse

    def disturbed(*arguments: Any, **options: Any) -> ast.AST:
        calls.append(arguments)
        if len(calls) % 3:
            raise SystemError("AST constructor recursion depth mismatch")
        return parse(*arguments, **options)

    monkeypatch.setattr(ast, "parse", disturbed)
    assert load(pipelines.document("blur")).name == "blur"
    assert len(calls) > 3
