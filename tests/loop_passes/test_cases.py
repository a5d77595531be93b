"""Passes over loop programs, each alone: text in, text out, a file a case, in `cases/PASS`.

A file is a command line (`// PASS register_bytes=16`) with a sentence, the buffers and params that are known, and the
body of a program `--- before` and `--- after` the pass, or `--- unchanged`. A case that is about more than a body has
whole programs. `--renew-golden` writes what the pass makes of it; `tests/support/loop_text.py` prints real inputs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tilesmith.scheduler.ir.loop.parser import parse_program
from tilesmith.scheduler.ir.loop.printer import print_body, print_program
from tilesmith.scheduler.ir.loop.program import Program
from tilesmith.scheduler.loop_passes.passes import PASSES

CASES = Path(__file__).parent / "cases"
BEFORE, AFTER, UNCHANGED = "--- before\n", "--- after\n", "--- unchanged\n"
MACHINE = {
    "line_bytes": "64",
    "register_bytes": "32",
    "carried_vectors": "12",
    "permuted_bytes": "4",
    "crowded_bytes": "2048",
}
PASS = {p.name: p for p in PASSES.passes}
WHOLE = """program "case" {{
  doc ""
  method "by hand"
  machine "x86_64" {machine}
  {known}
  derivation {{
  }}
  bounds {{
  }}
  body {{
    {body}
  }}
}}"""


def answered(case: str) -> str:
    """The text of a case, with what its pass makes of it."""
    head, rest = case.split(BEFORE)
    text = rest.split(AFTER)[0].removesuffix(UNCHANGED)
    command, *lines = head.splitlines()
    name, *arguments = command.removeprefix("// ").split()
    known = "\n".join(line for line in lines if not line.startswith("//"))
    figures = MACHINE | dict(a.split("=") for a in arguments)
    machine = " ".join(f"{name} {figure}" for name, figure in figures.items())
    whole = text.startswith("program")

    def printed(program: Program) -> str:
        return print_program(program) if whole else print_body(program.body) + "\n"

    program = parse_program(text if whole else WHOLE.format(machine=machine, known=known, body=text))
    before, after = printed(program), printed(PASS[name].run(program))
    return head + BEFORE + before + (UNCHANGED if after == before else AFTER + after)


@pytest.mark.parametrize("path", sorted(CASES.glob("*/*.ir")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_case(path: Path, pytestconfig: pytest.Config) -> None:
    text = path.read_text(encoding="utf-8")
    found = answered(text)
    if pytestconfig.getoption("--renew-golden"):
        path.write_text(found, encoding="utf-8")
        return
    assert found == text


def test_every_pass_has_cases_where_its_name_says() -> None:
    assert sorted(folder.name for folder in CASES.iterdir()) == sorted(PASS)
    for path in CASES.glob("*/*.ir"):
        command, *lines = path.read_text(encoding="utf-8").split(BEFORE)[0].splitlines()
        said = [line for line in lines if line.startswith("// ")]
        assert command.split()[:2] == ["//", path.parent.name], path
        assert said[-1].endswith("."), path
