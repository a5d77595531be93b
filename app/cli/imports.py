"""`import halide`: a pipeline that the user's own Python makes, as a document. The file is run in this process."""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from app.cli.report import UsageError
from app.cli.sources import suggestion

if TYPE_CHECKING:
    from scheduler.frontends.halide import Imported


def halide(source: str, output: Path | None) -> None:
    """Prints or writes the document of the pipeline that FILE.py:function returns. Raises UsageError."""
    from scheduler.frontends.halide import HalideMissing, NotExpressible, from_halide
    from scheduler.frontends.halide.live import import_halide

    try:
        import_halide()
        function = _function(source)
        imported = from_halide(_called(function, source), name=function.__name__)
    except HalideMissing as error:
        raise UsageError((str(error), None)) from None
    except TypeError as error:
        raise UsageError((f"{source} returned something else: {error}", "return the output Func, or a list")) from None
    except NotExpressible as error:
        raise UsageError(*((f"cannot be expressed: {o.without_hint}", o.hint) for o in error.obstacles)) from None
    _write(imported, output)
    for name in imported.buffers:
        typer.echo(f"note: the Buffer {imported.buffers[name]!r} became the input {name!r}", err=True)
    for remark in imported.remarks:
        typer.echo(f"note: {remark}", err=True)


def _function(source: str) -> Callable[[], Any]:
    """The function that FILE.py:function names, after running the file."""
    file, _, name = source.rpartition(":")
    path = Path(file)
    if not file or not name.isidentifier():
        raise UsageError((f"{source!r} does not name a function", "write FILE.py:function"))
    if not path.is_file():
        raise UsageError((f"there is no file {file!r}", None))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError((f"{file!r} is no Python file", None))
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[path.stem] = module
    _guarded(lambda: spec.loader.exec_module(module) if spec.loader else None, file)
    found = getattr(module, name, None)
    if not callable(found):
        known = [n for n, v in vars(module).items() if inspect.isfunction(v) and v.__module__ == path.stem]
        hint = suggestion(name, known, "functions in it") if known else None
        raise UsageError((f"{file} has no function {name!r}", hint))
    made: Callable[[], Any] = found
    return made


def _called(function: Callable[[], Any], source: str) -> Any:
    try:
        inspect.signature(function).bind()
    except TypeError:
        raise UsageError((f"{source} needs arguments", "write one without, which calls it")) from None
    return _guarded(function, source)


def _guarded(run: Callable[[], Any], what: str) -> Any:
    """Result of the user's code; a UsageError where it fails, with the line of the user's at which it did."""
    try:
        return run()
    except (Exception, SystemExit) as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
        theirs = [f for f in frames if "importlib" not in f.filename]
        place = f"{theirs[-1].filename}:{theirs[-1].lineno}" if theirs else None
        detail = " ".join(str(error).split())
        raise UsageError((f"{what} failed: {type(error).__name__}: {detail}", place and f"at {place}")) from None


def _write(imported: Imported, output: Path | None) -> None:
    import yaml

    from scheduler.frontends.document.document import to_document

    document = to_document(imported.pipeline)
    if output is not None and output.suffix.lower() == ".json":
        text = json.dumps(document, indent=2) + "\n"
    else:
        text = yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=120)
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError((f"{output} cannot be written: {error.strerror or error}", None)) from None
