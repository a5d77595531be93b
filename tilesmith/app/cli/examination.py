"""`doctor`: an installation checked."""

from __future__ import annotations

import sys
from dataclasses import asdict

import typer

from tilesmith.app.cli.report import OK, UNFIT, print_json
from tilesmith.app.service.doctor import Finding, examine

COLOURS = {"ok": "green", "warning": "yellow", "failed": "red"}


def doctor(as_json: bool) -> None:
    """Prints a line for each check, and the remedy where there is one. Exits with UNFIT where a check fails."""
    findings = examine()
    healthy = all(f.status != "failed" for f in findings)
    if as_json:
        print_json({"healthy": healthy, "checks": [asdict(f) for f in findings]})
    else:
        _print_table(findings)
    raise typer.Exit(OK if healthy else UNFIT)


def _print_table(findings: list[Finding]) -> None:
    width = max(len(f.check) for f in findings)
    for found in findings:
        status = typer.style(f"{found.status:<7}", fg=COLOURS[found.status] if sys.stdout.isatty() else None)
        typer.echo(f"{found.check:<{width}}  {status}  {found.detail}")
        if found.remedy is not None:
            typer.echo(f"{'':<{width}}  {'':<7}  remedy: {found.remedy}")
