"""Errors told to people: on stderr, in plain sentences, with the exit status that belongs to it."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import typer

from tilesmith.scheduler.errors import DocumentError, FixedContradiction, Problem, ScheduleError, TilesmithError
from tilesmith.scheduler.frontends.document.excerpts import problem_lines

if TYPE_CHECKING:
    from tilesmith.platforms.errors import PlatformProblem

OK, DEFECT, USAGE, NO_SCHEDULE, COMPILE_FAILURE, RUN_FAILURE, UNFIT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130
STANDARD_INPUT = "the document on the standard input"
USAGE_CODES = ("bad_", "image_", "limit_exceeded", "region_")

P = ParamSpec("P")
R = TypeVar("R")


class BadDocument(TilesmithError):
    """A document that is wrong, with where it came from and its text, where it has one, to show the places in it."""

    code = "bad_document"

    def __init__(
        self, problems: Sequence[Problem | PlatformProblem], source: str, text: str | bytes | None = None
    ) -> None:
        super().__init__("\n".join(str(p) for p in problems))
        self.problems = problems
        self.source = source
        self.text = text


class UsageError(TilesmithError):
    """The arguments of the command are wrong. `problems` are (message, hint or None), all that were found."""

    code = "bad_usage"

    def __init__(self, *problems: tuple[str, str | None]) -> None:
        super().__init__("\n".join(message for message, _ in problems))
        self.problems = problems


def exit_status(error: TilesmithError) -> int:
    """The exit status of an error: 2 usage or document, 3 no schedule, 4 compile failure, 5 run failure, 1 a defect."""
    from tilesmith.app.runtime.errors import CompileError, RunError

    match error:
        case ScheduleError():
            return NO_SCHEDULE
        case CompileError():
            return COMPILE_FAILURE
        case RunError():
            return RUN_FAILURE
    return USAGE if error.code.startswith(USAGE_CODES) else DEFECT


def reporting(command: Callable[P, R]) -> Callable[P, R]:
    """The command with every error of ours printed and turned into its exit status."""

    @functools.wraps(command)
    def reported(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except TilesmithError as error:
            print_error(error)
            raise typer.Exit(exit_status(error)) from None
        except MemoryError as error:
            _print_line(f"not enough memory: {error}", "compute a smaller --region")
            raise typer.Exit(RUN_FAILURE) from None
        except BrokenPipeError:  # the reader of our output went away, as `| head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(OK) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None

    return reported


def print_error(error: TilesmithError) -> None:
    """Prints an error on stderr: all its problems, the place of each, and what to do."""
    if isinstance(error, DocumentError):
        error = BadDocument(error.problems, "the document")
    if isinstance(error, FixedContradiction):
        error = BadDocument(error.problems, "what is fixed")
    if isinstance(error, BadDocument):
        count = "1 problem" if len(error.problems) == 1 else f"{len(error.problems)} problems"
        _print_line(f"{error.source} has {count}", None)
        place = "<stdin>" if error.source == STANDARD_INPUT else error.source
        for line in problem_lines(error.problems, place, error.text):
            typer.echo(line, err=True)
        return
    if isinstance(error, UsageError):
        for message, hint in error.problems:
            _print_line(message, hint)
        return
    _print_line(str(error), getattr(error, "hint", None))
    output = getattr(error, "output", None)
    if output:
        typer.echo(_indented(str(output)), err=True)


def _print_line(message: str, hint: str | None) -> None:
    typer.echo(f"{typer.style('error:', fg='red', bold=True)} {message}", err=True)
    if hint:
        typer.echo(f"  hint: {hint}", err=True)


def print_warning(text: str) -> None:
    """Prints a warning on stderr."""
    typer.echo(f"{typer.style('warning:', fg='yellow', bold=True)} {text}", err=True)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.rstrip().splitlines())


def print_json(value: object) -> None:
    """Prints one JSON object on stdout: one line, floats at full precision."""
    typer.echo(json.dumps(value, default=_plain))


def _plain(value: object) -> Any:
    """Numbers of NumPy as Python's; anything else is a defect that json reports."""
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError(f"{type(value).__name__} is no JSON value")
    return item()


@contextmanager
def progress(text: str) -> Iterator[None]:
    """Shows that something long is going on, on a terminal; quiet elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield
