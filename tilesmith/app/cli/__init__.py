"""The command `tilesmith`. Each verb imports what it needs when it is called, so that the command starts fast.

Exit status: 0 fine, 2 bad usage or document, 3 no schedule, 4 compile failure, 5 run failure; 1 a defect of ours.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tilesmith.app.cli.ci import ci_app
from tilesmith.app.cli.options import (
    AsJson,
    Convert,
    CostModelName,
    Doc,
    Estimates,
    Fix,
    Inputs,
    Method,
    NoCalibrate,
    Outputs,
    Params,
    PlatformName,
    Regions,
    ScheduleFile,
    StrategyName,
    Stretch,
    Strict,
    Top,
    Tune,
)
from tilesmith.app.cli.report import UsageError, reporting
from tilesmith.app.cli.tokens import tokens_app
from tilesmith.app.garbage import collect_rarely

app = typer.Typer(
    name="tilesmith",
    help="Schedules image-processing pipelines for a machine, and makes fast C of them.",
    epilog="DOC is a JSON or YAML file, '-' for the standard input, or the name of a shipped pipeline.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
strategies_app = typer.Typer(help="The strategies that are shipped.", rich_markup_mode=None)
pipelines_app = typer.Typer(help="The pipelines that are shipped.", rich_markup_mode=None)
platforms_app = typer.Typer(help="The machines that are known.", rich_markup_mode=None)
app.add_typer(pipelines_app, name="pipelines")
app.add_typer(platforms_app, name="platforms")
app.add_typer(strategies_app, name="strategies")
app.add_typer(ci_app, name="ci")
app.add_typer(tokens_app, name="tokens")


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"tilesmith {version('tilesmith')}")
        raise typer.Exit


@app.callback()
@reporting
def tilesmith(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    plugin: Annotated[
        list[str] | None,
        typer.Option("--plugin", metavar="FILE.py|MODULE", help="Run it first: it registers what it adds. Repeatable."),
    ] = None,
) -> None:
    """Schedules image-processing pipelines for a machine, and makes fast C of them."""
    from tilesmith.app.plugins import load_plugins

    collect_rarely()
    context.obj = tuple(plugin or ())
    load_plugins(context.obj)


@app.command()
@reporting
def schedule(
    doc: Doc,
    platform: PlatformName = "host",
    method: Method = "default",
    cost_model: CostModelName = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write the C and every form there.")] = None,
    strict: Strict = False,
    deadline_ms: Annotated[int | None, typer.Option("--deadline-ms", min=1, help="Bound of the search.")] = None,
    schedule_file: ScheduleFile = None,
    strategy: StrategyName = None,
    fix: Fix = None,
    top: Top = 1,
    tune: Tune = None,
    no_calibrate: NoCalibrate = False,
    time_passes: Annotated[
        bool, typer.Option("--time-passes", help="Tell the time of every pass over the pipeline and the loop program.")
    ] = False,
    print_after: Annotated[
        list[str] | None,
        typer.Option("--print-after", metavar="PASS|all", help="Print what a pass leaves, to standard error."),
    ] = None,
    verify_each: Annotated[
        bool, typer.Option("--verify-each", help="Verify the loop program after every pass.")
    ] = False,
    backend: Annotated[
        str | None, typer.Option("--backend", metavar="NAME", help="What makes the code; else C, for a CPU.")
    ] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Print the steps of the strategy.")] = False,
    as_strategy: Annotated[
        bool, typer.Option("--as-strategy", help="Print the strategy that makes the schedule, and no more.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Schedule a pipeline for a machine and generate its C."""
    from tilesmith.app.cli import schedules

    request = schedules.Request(
        doc,
        platform,
        method,
        strict,
        cost_model,
        deadline_ms,
        schedule_file,
        tuple(fix or ()),
        top,
        tune,
        calibrate=not no_calibrate,
        print_after=tuple(print_after or ()),
        verify_each=verify_each,
        backend=backend,
        strategy=strategy,
    )
    schedules.schedule(request, out, as_json, time_passes, as_strategy, trace)


@app.command()
@reporting
def explain(
    doc: Doc,
    platform: PlatformName = "host",
    method: Method = "default",
    cost_model: CostModelName = None,
    strict: Strict = False,
    strategy: StrategyName = None,
    fix: Fix = None,
    no_calibrate: NoCalibrate = False,
) -> None:
    """Tell every decision of the search: what was chosen, what was rejected, what it costs, and why."""
    from tilesmith.app.cli import schedules

    request = schedules.Request(
        doc,
        platform,
        method,
        strict,
        cost_model,
        fixed=tuple(fix or ()),
        calibrate=not no_calibrate,
        strategy=strategy,
    )
    schedules.explain(request)


@app.command()
@reporting
def validate(doc: Doc, as_json: AsJson = False) -> None:
    """Check a pipeline document and tell everything that is wrong with it."""
    from tilesmith.app.cli import schedules

    schedules.validate(doc, as_json)


@app.command()
@reporting
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The pipeline's name, and its output's.")],
    photo: Annotated[Path | None, typer.Option("--from", metavar="FILE", help="A picture that it is to fit.")] = None,
    template: Annotated[str, typer.Option("--template", help="blank, blur, sharpen or edges.")] = "sharpen",
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Instead of NAME.yaml.")] = None,
) -> None:
    """Write a pipeline document to start from, with comments that explain it."""
    from tilesmith.app.cli import starter

    starter.new(name, template, photo, output)


@app.command()
@reporting
def run(
    doc: Doc,
    inputs: Inputs = None,
    outputs: Outputs = None,
    params: Params = None,
    regions: Regions = None,
    platform: PlatformName = "host",
    method: Method = "default",
    cost_model: CostModelName = None,
    strict: Strict = False,
    schedule_file: ScheduleFile = None,
    strategy: StrategyName = None,
    fix: Fix = None,
    tune: Tune = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, max=1024, help="Threads to run with.")] = None,
    repeat: Annotated[int, typer.Option("--repeat", min=1, max=100_000, help="Timed runs.")] = 1,
    estimates: Estimates = False,
    convert: Convert = False,
    stretch: Stretch = False,
    no_calibrate: NoCalibrate = False,
    as_json: AsJson = False,
) -> None:
    """Schedule, compile and run a pipeline on files, and tell how long it took."""
    from tilesmith.app.cli import runs, schedules

    request = schedules.Request(
        doc,
        platform,
        method,
        strict,
        cost_model,
        schedule_file=schedule_file,
        fixed=tuple(fix or ()),
        tune=tune,
        calibrate=not no_calibrate,
        strategy=strategy,
    )
    files = runs.Files(inputs or [], outputs or [], params or [], regions or [], estimates, convert, stretch)
    runs.run(request, files, threads, repeat, as_json)


@app.command()
@reporting
def bench(
    doc: Doc,
    platform: PlatformName = "host",
    method: Method = "default",
    strict: Strict = False,
    strategy: StrategyName = None,
    fix: Fix = None,
    params: Params = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against", metavar="FILE.py:function", help="A function of arrays that computes the same. Repeatable."
        ),
    ] = None,
    halide: Annotated[
        list[str] | None, typer.Option("--halide", metavar="METHOD", help="An autoscheduler of Halide's. Repeatable.")
    ] = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, max=1024, help="Threads to run with.")] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, max=1000, help="Turns of each.")] = 15,
    no_calibrate: NoCalibrate = False,
    as_json: AsJson = False,
) -> None:
    """Time a pipeline's code in turns with what else computes the same: NumPy, OpenCV, Halide, your own function."""
    from tilesmith.app.cli import contests
    from tilesmith.app.cli.schedules import Request

    request = Request(
        doc, platform, method, strict, fixed=tuple(fix or ()), strategy=strategy, calibrate=not no_calibrate
    )
    peers = contests.Peers(against or [], ["Mullapudi2016"] if halide is None else halide, threads, rounds)
    contests.bench(request, params or [], peers, as_json)


@app.command()
@reporting
def interpret(
    doc: Doc,
    inputs: Inputs = None,
    outputs: Outputs = None,
    params: Params = None,
    regions: Regions = None,
    estimates: Estimates = False,
    convert: Convert = False,
    stretch: Stretch = False,
    as_json: AsJson = False,
) -> None:
    """Compute a pipeline on files by the reference interpreter: slow, obvious, and needing no compiler."""
    from tilesmith.app.cli import runs

    files = runs.Files(inputs or [], outputs or [], params or [], regions or [], estimates, convert, stretch)
    runs.interpret(doc, files, as_json)


@pipelines_app.callback(invoke_without_command=True)
@reporting
def pipelines(context: typer.Context, as_json: AsJson = False) -> None:
    """List the pipelines that are shipped."""
    if context.invoked_subcommand is None:
        from tilesmith.app.cli import listings

        listings.pipelines(as_json)


@pipelines_app.command("show")
@reporting
def show_pipeline(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Print the document of a shipped pipeline."""
    from tilesmith.app.cli import listings

    listings.show_pipeline(name)


@platforms_app.callback(invoke_without_command=True)
@reporting
def platforms(context: typer.Context, as_json: AsJson = False) -> None:
    """List the machines that are known."""
    if context.invoked_subcommand is None:
        from tilesmith.app.cli import listings

        listings.platforms(as_json)


@platforms_app.command("show")
@reporting
def show_platform(
    name: Annotated[str, typer.Argument(metavar="NAME|FILE|host")], no_calibrate: NoCalibrate = False
) -> None:
    """Print the description of a machine: a known name, `host`, or a file to check."""
    from tilesmith.app.cli import listings

    listings.show_platform(name, not no_calibrate)


@platforms_app.command("detect")
@reporting
def detect_platform(
    opencl: Annotated[bool, typer.Option("--opencl", help="An OpenCL device of this machine, not its CPU.")] = False,
    device: Annotated[
        str | None, typer.Option("--device", metavar="N|TEXT", help="Which one: its number, or a part of its name.")
    ] = None,
) -> None:
    """Print the description of this machine, to keep it or to correct it."""
    from tilesmith.app.cli import listings

    if device is not None and not opencl:
        raise UsageError(("--device is for --opencl", None))
    if opencl:
        listings.detect_opencl(device)
    else:
        listings.detect_platform()


@platforms_app.command("calibrate")
@reporting
def calibrate_platform(
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write it there.")] = None,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What the machine is called.")] = "host",
    quick: Annotated[
        bool, typer.Option("--quick", help="A second or two: what the first use of host measures, and keeps.")
    ] = False,
) -> None:
    """Measure this machine, and print its description with the figures and their evidence."""
    from tilesmith.app.cli import calibration

    calibration.calibrate(output, name, quick)


@strategies_app.callback(invoke_without_command=True)
@reporting
def strategies(context: typer.Context, as_json: AsJson = False) -> None:
    """List the strategies that are shipped."""
    if context.invoked_subcommand is None:
        from tilesmith.app.cli import strategy as listed

        listed.strategies(as_json)


@strategies_app.command("show")
@reporting
def show_strategy(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Print the document of a shipped strategy."""
    from tilesmith.app.cli import strategy as listed

    listed.show_strategy(name)


@app.command()
@reporting
def rules(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One rule, with its conditions.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the rules that strategies are made of: what each does, and whether the values stay exactly the same."""
    from tilesmith.app.cli import strategy as listed

    listed.rules(name, as_json)


@app.command("import")
@reporting
def import_pipeline(
    importer: Annotated[str, typer.Argument(metavar="IMPORTER", help="halide, onnx, python, or one of a plugin.")],
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="FILE.py:function (the file is run), or a file.")],
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write it there.")] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", metavar="NAME=VALUE", help="A param of a generator, or a default.")
    ] = None,
    size: Annotated[
        list[str] | None, typer.Option("--size", metavar="[NAME=]N,...", help="Extents of outputs without estimates.")
    ] = None,
) -> None:
    """Print the document of a pipeline that is written for something else."""
    from tilesmith.app.cli import imports

    imports.import_pipeline(importer, source, output, param or (), size or ())


@app.command()
@reporting
def serve(
    context: typer.Context,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option("--port", min=0, max=65535, help="Port to listen on.")] = None,
    database: Annotated[str | None, typer.Option("--database", metavar="URL", help="Where schedules are kept.")] = None,
    no_calibrate: NoCalibrate = False,
) -> None:
    """Run the service: the API under /v1, its documentation at /docs, the dashboard at /."""
    from tilesmith.app.cli import service

    service.serve(host, port, database, not no_calibrate, context.obj)


@app.command()
@reporting
def worker(
    context: typer.Context,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="URL", help="The Dask scheduler: tcp://host:8786.")
    ] = None,
    threads: Annotated[int, typer.Option("--threads", metavar="N", min=1, help="Jobs at once.")] = 1,
    no_calibrate: NoCalibrate = False,
) -> None:
    """Do jobs of services that share a Dask scheduler, on a machine of another kind or beside others."""
    from tilesmith.app.cli import pooled

    pooled.work(scheduler, threads, not no_calibrate, context.obj)


@app.command()
@reporting
def doctor(as_json: AsJson = False) -> None:
    """Check an installation of the service: settings, compiler, confinement, disk, database, clock, pool."""
    from tilesmith.app.cli import examination

    examination.doctor(as_json)


def main() -> None:
    """The entry point of the command."""
    # Expressions may be chains of hundreds of operators, and stages of thousands: both are followed to their end.
    sys.setrecursionlimit(10_000)
    app()
