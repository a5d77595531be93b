"""--print-after and --verify-each: what passes leave, on the command line."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.machines import machine
from typer.testing import CliRunner

from tilesmith.app.cli import app
from tilesmith.app.cli.passes import NAMES, watched
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.errors import InternalError
from tilesmith.scheduler.frontends.document.document import load_text
from tilesmith.scheduler.ir.index import sym
from tilesmith.scheduler.ir.loop.parser import parse_program
from tilesmith.scheduler.ir.loop.program import Let, Program


def schedule(*arguments: str, status: int = 0) -> tuple[str, str]:
    """Standard output and standard error."""
    result = CliRunner().invoke(app, ["schedule", "blur", "--platform", "i7-6700", *arguments], catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result.stdout, result.stderr


def test_a_loop_program_is_printed_as_it_can_be_read_back() -> None:
    _, printed = schedule("--print-after", "eliminate-dead-code")
    head, text = printed.split("\n", 1)
    assert head == '// after "eliminate-dead-code"'
    assert parse_program(text[: text.rindex("}") + 1]).name == "blur"


def test_a_pipeline_is_printed_as_a_document() -> None:
    _, printed = schedule("--print-after", "lower-boundaries")
    text = printed.split("\n", 1)[1]
    assert load_text(text[: text.rindex("}") + 1]).name == "blur"


def test_all_passes_are_printed_in_their_order_and_standard_output_stays_what_it_is() -> None:
    out, printed = schedule("--print-after", "all", "--verify-each", "--json")
    of_processors = [name for name in NAMES if name != "expand-copies"]
    assert [line[10:-1] for line in printed.splitlines() if line.startswith('// after "')] == of_processors
    assert "timings_ms" in json.loads(out)


def test_a_pass_that_there_is_not_is_refused_with_the_nearest() -> None:
    _, error = schedule("--print-after", "cary-vectors", status=2)
    assert "--print-after cary-vectors: there is no such pass" in error
    assert "did you mean 'carry-vectors'?" in error


def test_a_program_that_breaks_a_rule_is_told_with_the_pass() -> None:
    seen: list[Program] = []

    class Keep:
        def begun(self, name: str) -> None: ...
        def ended(self, name: str, unit: object) -> None:
            if isinstance(unit, Program):
                seen.append(unit)

    compile_pipeline(pipelines.load("blur"), machine(), observer=Keep())
    broken = replace(seen[0], body=(*seen[0].body, Let("n", sym("nowhere"))))
    observer = watched((), verify_each=True)
    assert observer is not None
    observer.ended("rows", seen[0])
    with pytest.raises(InternalError, match=r"after the pass .* let n = nowhere"):
        observer.ended("carry-vectors", broken)


def test_without_either_nothing_is_watched() -> None:
    assert watched((), verify_each=False) is None
