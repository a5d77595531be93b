"""`platforms calibrate`: the host, measured."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path

import typer

from tilesmith.app.cli.report import UsageError, print_warning
from tilesmith.app.cli.sources import detected, measured
from tilesmith.app.profiler.calibrate import measure
from tilesmith.app.profiler.calibrated_platform import calibrated, to_yaml, warnings, write
from tilesmith.platforms import CpuPlatform

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def calibrate(output: Path | None, name: str, quick: bool) -> None:
    """Measures the host, `quick` as its first use does, and writes its description to `output`, or to the standard
    output, as YAML.

    Progress and warnings go to the standard error. Raises UsageError, CompileError, RunError.
    """
    if not NAME.fullmatch(name):
        raise UsageError((f"--name {name}: letters, digits, '.', '_', '-', at most 64", None))
    if output is not None and not output.parent.is_dir():
        raise UsageError((f"--output {output}: there is no directory {output.parent}", None))
    platform, seconds = _quickly(name) if quick else _thoroughly(name)
    if output is None:
        typer.echo(to_yaml(platform), nl=False)
        return
    try:
        write(platform, output)
    except OSError as error:
        raise UsageError((f"--output {output}: it cannot be written: {error.strerror}", None)) from None
    typer.echo(f"measured in {seconds:.0f} s: {output}", err=True)


def _quickly(name: str) -> tuple[CpuPlatform, float]:
    """The quick measurement of `host`, kept for all uses after it, and the seconds that it took."""
    started = time.monotonic()
    platform = measured(detected(), again=True)
    return platform.model_copy(update={"name": name}), time.monotonic() - started


def _thoroughly(name: str) -> tuple[CpuPlatform, float]:
    """Everything, and the seconds that it takes."""
    host = detected()
    with tempfile.TemporaryDirectory(prefix="tilesmith-") as cache:
        found = measure(host, Path(cache), tell=lambda text: typer.echo(text, err=True))
    for warning in warnings(found):
        print_warning(warning)
    return calibrated(host, found, name), found.seconds
