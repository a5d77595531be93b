"""Errors of foreign programs: the compiler, and what it made.

WorkerError
  CompileError   compile_failure, compile_timeout, worker_lost
    StoreError     store_full, compile_failure
  RunError       run_failure, run_timeout, out_of_memory, store_full, worker_lost
  Cancelled      cancelled

Arguments that do not fit the pipeline are the language's own errors: ArgumentError, RegionError.
"""

from __future__ import annotations

from tilesmith.scheduler.errors import TilesmithError

LOST = "worker_lost"
"""The code of what was not done as a program was killed from outside, or a worker is gone: it may be done later."""


class WorkerError(TilesmithError):
    """A job could not be done. `code` says why, `output` is what the program printed (capped, without paths)."""

    def __init__(self, code: str, message: str, output: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.output = output

    def __reduce__(self) -> tuple[type[WorkerError], tuple[str, str, str]]:
        return type(self), (self.code, str(self), self.output)


class CompileError(WorkerError):
    """The C of a schedule could not be compiled."""


class StoreError(CompileError):
    """The folder where compiled code is to be kept has no space, or cannot be written."""


class RunError(WorkerError):
    """A compiled pipeline could not be run to its end."""


class Cancelled(WorkerError):
    """The job was cancelled while it ran; its processes are gone."""

    def __init__(self, code: str = "cancelled", message: str = "the job was cancelled", output: str = "") -> None:
        super().__init__(code, message, output)
