"""`platforms calibrate`: this machine, measured."""

from __future__ import annotations

import re
from pathlib import Path

import typer

from app.cli.report import UsageError
from app.cli.sources import detected
from app.platforms.calibrated import calibrated, to_yaml, warnings, write
from app.workers.calibrate import QUICK, Effort, measure

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def calibrate(output: Path | None, name: str, quick: bool) -> None:
    """Measures the host and writes its description to `output`, or to the standard output, as YAML.

    Progress and warnings go to the standard error. Raises UsageError, CompileError, RunError.
    """
    import tempfile

    if not NAME.fullmatch(name):
        raise UsageError((f"--name {name}: letters, digits, '.', '_', '-', at most 64", None))
    if output is not None and not output.parent.is_dir():
        raise UsageError((f"--output {output}: there is no directory {output.parent}", None))
    host = detected()
    with tempfile.TemporaryDirectory(prefix="tilesmith-") as cache:
        measured = measure(host, Path(cache), QUICK if quick else Effort(), lambda text: typer.echo(text, err=True))
    platform = calibrated(host, measured, name)
    for warning in warnings(measured):
        typer.echo(f"{typer.style('warning:', fg='yellow', bold=True)} {warning}", err=True)
    if output is None:
        typer.echo(to_yaml(platform), nl=False)
        return
    try:
        write(platform, output)
    except OSError as error:
        raise UsageError((f"--output {output}: it cannot be written: {error.strerror}", None)) from None
    typer.echo(f"measured in {measured.seconds:.0f} s: {output}", err=True)
