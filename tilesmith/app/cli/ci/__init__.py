"""`tilesmith ci`: the pipelines of a commit against a baseline.

Exit status: 0 fine, 1 a pipeline has regressed, 2 anything else that went wrong.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilesmith.app.cli.ci.status import gating
from tilesmith.app.cli.options import AsJson, CostModelName, Method, StrategyName, Strict

ci_app = typer.Typer(help="Hold the pipelines of a commit to a baseline.", rich_markup_mode=None)

Docs = Annotated[list[str], typer.Argument(metavar="DOC...", help="Pipelines: files, folders, globs, shipped names.")]
Server = Annotated[
    str | None, typer.Option("--server", metavar="URL", envvar="TILESMITH_SERVER", help="The service to ask.")
]
Project = Annotated[
    str | None,
    typer.Option("--project", metavar="NAME", envvar="TILESMITH_PROJECT", help="The project; else the repository's."),
]
Branch = Annotated[str | None, typer.Option("--branch", metavar="NAME", help="The branch; else as CI or git tells.")]
Commit = Annotated[str | None, typer.Option("--commit", metavar="HASH", help="The commit; else as CI or git tells.")]
BaselineFile = Annotated[
    Path | None, typer.Option("--baseline-file", metavar="FILE", help="Instead of a service: results in a file.")
]
Platforms = Annotated[
    list[str] | None, typer.Option("--platform", metavar="NAME|FILE|host", help="A machine. Repeatable.")
]
Measure = Annotated[bool, typer.Option("--measure", help="Also run the code, on the machine of the service.")]


@ci_app.command("check")
@gating
def check(
    docs: Docs,
    server: Server = None,
    baseline_file: BaselineFile = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="REF", help="A branch, or a commit; else the branch to be merged into."),
    ] = None,
    fail_above: Annotated[
        str, typer.Option("--fail-above", metavar="PERCENT", help="Growth that fails: 5% and more.")
    ] = "5%",
    project: Project = None,
    branch: Branch = None,
    commit: Commit = None,
    platform: Platforms = None,
    method: Method = "default",
    cost_model: CostModelName = None,
    strict: Strict = False,
    strategy: StrategyName = None,
    measure: Measure = False,
    gate_measured: Annotated[
        bool, typer.Option("--gate-measured", help="Measured time fails, too, where it is not noise.")
    ] = False,
    record: Annotated[bool, typer.Option("--record", help="Record the results, unless the check fails.")] = False,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="Write what moved there; nothing, if nothing did.")
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML there.")] = None,
    bencher: Annotated[
        Path | None, typer.Option("--bencher", metavar="FILE", help="Write Bencher Metric Format JSON there.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the pipelines of this commit with the baseline: exit status 1 if one has regressed."""
    from tilesmith.app.cli.ci import checking as verb
    from tilesmith.app.cli.ci.documents import Asked
    from tilesmith.app.cli.ci.target import target

    asked = Asked(tuple(docs), tuple(platform or ("host",)), method, cost_model, strict, strategy)
    wishes = verb.Wishes(baseline, verb.share(fail_above), measure, gate_measured, record)
    files = verb.Files(markdown, junit, bencher)
    with target(server, baseline_file, project, branch, commit) as to:
        verb.check(asked, wishes, to, files, as_json)


@ci_app.command("record")
@gating
def record(
    docs: Docs,
    server: Server = None,
    baseline_file: BaselineFile = None,
    project: Project = None,
    branch: Branch = None,
    commit: Commit = None,
    platform: Platforms = None,
    method: Method = "default",
    cost_model: CostModelName = None,
    strict: Strict = False,
    strategy: StrategyName = None,
    measure: Measure = False,
    as_json: AsJson = False,
) -> None:
    """Record the results of this commit: what later ones are compared with."""
    from tilesmith.app.cli.ci import recording as verb
    from tilesmith.app.cli.ci.documents import Asked
    from tilesmith.app.cli.ci.target import target

    asked = Asked(tuple(docs), tuple(platform or ("host",)), method, cost_model, strict, strategy)
    with target(server, baseline_file, project, branch, commit) as to:
        verb.record(asked, to, measure, as_json)


@ci_app.command("acknowledge")
@gating
def acknowledge(
    docs: Docs,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why it is accepted.")],
    server: Server = None,
    project: Project = None,
    branch: Branch = None,
    commit: Commit = None,
    platform: Platforms = None,
    method: Method = "default",
    cost_model: CostModelName = None,
    strict: Strict = False,
    strategy: StrategyName = None,
) -> None:
    """Accept the results of pipelines at this commit: they are its baseline from now on."""
    from tilesmith.app.cli.ci import recording as verb
    from tilesmith.app.cli.ci.documents import Asked
    from tilesmith.app.cli.ci.target import target

    asked = Asked(tuple(docs), tuple(platform or ("host",)), method, cost_model, strict, strategy)
    with target(server, None, project, branch, commit) as to:
        verb.acknowledge(asked, to, reason)


@ci_app.command("history")
@gating
def history(
    server: Server = None,
    project: Project = None,
    branch: Annotated[str | None, typer.Option("--branch", metavar="NAME", help="Results of this branch only.")] = None,
    pipeline: Annotated[
        str | None, typer.Option("--pipeline", metavar="NAME", help="Results of this pipeline only.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Results to list.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List what was recorded for the project, the newest first."""
    from tilesmith.app.cli.ci import recording as verb

    verb.history(server, project, {"branch": branch, "pipeline": pipeline}, limit, as_json)
