"""`ci record`, `ci acknowledge` and `ci history`: results kept, accepted, and listed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import typer

from tilesmith.app.cli.ci.checking import scheduled
from tilesmith.app.cli.ci.documents import Asked
from tilesmith.app.cli.ci.status import ERROR
from tilesmith.app.cli.ci.target import Local, Service, Target, target
from tilesmith.app.cli.report import UsageError, print_error, print_json, progress
from tilesmith.app.comparison.results import Result

PAGE = 200


def record(asked: Asked, to: Service | Local, measure: bool, as_json: bool) -> None:
    """Records the results of every document; nothing where one is wrong."""
    found = _all(asked, to)
    if measure:
        found = tuple(_with_times(r, to) for r in found)
    to.record(found)
    if as_json:
        print_json({"recorded": [r.to_document() for r in found]})
        return
    place = str(to.file) if isinstance(to, Local) else f"{to.project}, {to.branch}, {to.commit[:12]}"
    for result in found:
        typer.echo(f"{result.series.in_words()}: {result.predicted:,.1f} {result.unit} predicted{_times(result)}")
    typer.echo(f"recorded {len(found)} for {place}")


def acknowledge(asked: Asked, to: Service | Local, reason: str) -> None:
    """Accepts the results of the documents at the commit."""
    assert isinstance(to, Service)
    found = _all(asked, to)
    for result in found:
        to.acknowledge(result, reason)
        typer.echo(f"{result.series.in_words()}: {result.predicted:,.1f} {result.unit} is accepted at {to.commit[:12]}")


def history(
    server: str | None, project: str | None, filters: Mapping[str, str | None], limit: int, as_json: bool
) -> None:
    """Prints results of the project, the newest first."""
    with target(server, None, project, None, None) as to:
        assert isinstance(to, Service)
        found = _pages(to, {k: v for k, v in filters.items() if v is not None}, limit)
    if as_json:
        print_json({"project": to.project, "items": found})
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("recorded", "branch", "commit", "pipeline", "platform", "predicted", "accepted", box=None)
    for r in found:
        way = "" if r["variant"] == "default" else f" ({r['variant']})"
        cells = (r["recorded_at"][:16], r["branch"], r["commit"][:12], r["pipeline"] + way, r["platform"])
        predicted = f"{r['predicted']:,.1f} {r['unit']}"
        table.add_row(*(Text(cell) for cell in (*cells, predicted, r["reason"] or "")))
    Console(width=160, highlight=False).print(table)


def _pages(to: Service, filters: dict[str, Any], limit: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: dict[str, Any] = {}
    while len(found) < limit:
        page = to.client.history(to.project, **filters, **cursor, limit=min(PAGE, limit - len(found)))
        found += page["items"]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    return found


def _all(asked: Asked, to: Target) -> tuple[Result, ...]:
    """The results of all documents; the problems of those that have none, and exit status 2."""
    found, invalid = scheduled(asked, to)
    for wrong in invalid:
        print_error(wrong.error)
    if invalid:
        raise typer.Exit(ERROR)
    if not found:
        raise UsageError(("there is nothing to record", None))
    return found


def _with_times(result: Result, to: Target) -> Result:
    with progress(f"running {result.series.in_words()}"):
        return replace(result, measured=to.measured(result))


def _times(result: Result) -> str:
    return f", {result.measured.median_ms:.3f} ms measured" if result.measured else ""
