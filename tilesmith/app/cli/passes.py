"""Passes watched from the command line: what each has left, printed or verified."""

from __future__ import annotations

import json

import typer

from tilesmith.app.cli.report import UsageError
from tilesmith.app.cli.sources import suggestion
from tilesmith.scheduler.codegen.opencl.passes import PASSES as OF_DEVICES
from tilesmith.scheduler.errors import InternalError
from tilesmith.scheduler.frontends.document.document import to_document
from tilesmith.scheduler.ir.loop.printer import print_program
from tilesmith.scheduler.ir.loop.program import Program
from tilesmith.scheduler.ir.loop.verifier import VerificationError, verify
from tilesmith.scheduler.ir.pass_manager import AfterEach, Observer, Observers
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.loop_passes.passes import PASSES
from tilesmith.scheduler.lowering.passes import LOWERING
from tilesmith.scheduler.rewrites.passes import REWRITES

ALL = "all"
NAMES = tuple(dict.fromkeys((*REWRITES.names, *LOWERING.names, *PASSES.names, *OF_DEVICES.names)))
"""Passes in the order that they run. Some are for one kind of platforms."""


def watched(print_after: tuple[str, ...], verify_each: bool) -> Observer | None:
    """An observer that prints to standard error what the passes of those names have left, `all` being every one, and
    verifies each loop program; None where there is nothing to do. Raises UsageError for a name that there is not, and,
    as it observes, InternalError for a program that breaks a rule."""
    for name in print_after:
        if name not in (*NAMES, ALL):
            raise UsageError(
                (f"--print-after {name}: there is no such pass", suggestion(name, (*NAMES, ALL), "passes"))
            )
    observers: list[Observer] = []
    if verify_each:
        observers.append(AfterEach(_verify))
    if print_after:
        observers.append(AfterEach(lambda name, unit: _print(name, unit, print_after)))
    return Observers(*observers) if observers else None


def _verify(name: str, unit: object) -> None:
    if isinstance(unit, Program):
        try:
            verify(unit)
        except VerificationError as error:
            raise InternalError(f"after the pass '{name}': {error}") from error


def _print(name: str, unit: object, wanted: tuple[str, ...]) -> None:
    if name in wanted or ALL in wanted:
        typer.echo(f'// after "{name}"\n{_text(unit)}\n', err=True)


def _text(unit: object) -> str:
    match unit:
        case Program():
            return print_program(unit).rstrip()
        case Plan():
            return json.dumps(to_document(unit.pipeline), indent=2)
        case _:
            raise AssertionError(unit)
