"""Python files that are run: the module of a file, and the function that `FILE.py:function` names.

Only the command runs files, and the service those that its settings name; never what a client sent.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from tilesmith.scheduler.errors import TilesmithError

T = TypeVar("T")


class PythonFileError(TilesmithError):
    """A Python file that cannot be run, or has not what is asked of it; the message names the file."""

    code = "bad_python_file"

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def module_of(file: str) -> ModuleType:
    """The module that a file makes, which is run once a process. Its folder is where it imports from, too. Raises
    PythonFileError, with the line that failed."""
    path = Path(file)
    if not path.is_file():
        raise PythonFileError(f"there is no file {file!r}")
    name = str(path.resolve())  # no name of a module that is imported
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PythonFileError(f"{file!r} is no Python file")
    module, run = importlib.util.module_from_spec(spec), spec.loader.exec_module
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[name] = module
    try:
        guarded(partial(run, module), file)
    except PythonFileError:
        del sys.modules[name]
        raise
    return module


def function_of(source: str) -> Callable[[], object]:
    """The function that FILE.py:function names, which takes no arguments, after running the file. Raises
    PythonFileError."""
    file, _, name = source.rpartition(":")
    if not file or not name.isidentifier():
        raise PythonFileError(f"{source!r} does not name a function", "write FILE.py:function")
    module = module_of(file)
    found: Callable[[], object] | None = getattr(module, name, None)
    if not callable(found):
        known = sorted(n for n, v in vars(module).items() if inspect.isfunction(v) and v.__module__ == module.__name__)
        near = get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"functions in it: {', '.join(known)}" if known else None
        raise PythonFileError(f"{file} has no function {name!r}", hint)
    try:
        inspect.signature(found).bind()
    except TypeError:
        raise PythonFileError(f"{source} needs arguments", "write one without, which calls it") from None
    return found


def guarded(run: Callable[[], T], what: str) -> T:
    """Result of the user's code; PythonFileError where it fails, with the line of the user's at which it did."""
    try:
        return run()
    except (Exception, SystemExit) as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
        theirs = [f for f in frames if "importlib" not in f.filename]
        place = f"at {theirs[-1].filename}:{theirs[-1].lineno}" if theirs else None
        detail = " ".join(str(error).split())
        raise PythonFileError(f"{what} failed: {type(error).__name__}: {detail}", place) from None
