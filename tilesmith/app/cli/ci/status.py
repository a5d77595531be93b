"""Exit statuses of `tilesmith ci`, by which jobs go on or stop: 0 fine, 1 regressed, 2 error, of whatever kind."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import ParamSpec

import typer

from tilesmith.app.cli.report import INTERRUPTED, UsageError, print_error
from tilesmith.scheduler.errors import TilesmithError

FINE, REGRESSED, ERROR = 0, 1, 2

P = ParamSpec("P")


def gating(command: Callable[P, None]) -> Callable[P, None]:
    """The command with every error printed and turned into status 2: no fault of ours looks like a regression."""

    @functools.wraps(command)
    def gated(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (typer.Exit, typer.Abort):
            raise
        except TilesmithError as error:
            print_error(error)
            raise typer.Exit(ERROR) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:  # the boundary of the process
            print_error(_unreachable(error))
            raise typer.Exit(ERROR) from None

    return gated


def _unreachable(error: Exception) -> TilesmithError:
    """An error of the network or of a file in plain words; any other with its trace, as a defect."""
    import httpx

    if isinstance(error, (httpx.HTTPError, httpx.InvalidURL)):
        return UsageError((f"the service cannot be asked: {error}", "is --server right, and does it run?"))
    if isinstance(error, OSError):
        return UsageError((f"{error.filename or 'a file'}: {error.strerror or error}", None))
    traceback.print_exception(error)
    return UsageError(("a defect of tilesmith: please report it", None))
