"""Options and arguments that several verbs of the command have."""

from __future__ import annotations

from typing import Annotated

import typer

Doc = Annotated[str, typer.Argument(metavar="DOC", help="A pipeline: a JSON or YAML file, '-', or a shipped name.")]
PlatformName = Annotated[
    str, typer.Option("--platform", metavar="NAME|FILE|host", help="The machine: a known name, a file, or this one.")
]
Method = Annotated[str, typer.Option("--method", help="The way to search for a schedule.")]
CostModelName = Annotated[
    str | None, typer.Option("--cost-model", metavar="NAME", help="The cost model that decides; else the method's own.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Keep the order of floating point as written.")]
ScheduleFile = Annotated[
    str | None,
    typer.Option("--schedule", metavar="FILE", help="A hand-written schedule instead of a search."),
]
StrategyName = Annotated[
    str | None, typer.Option("--strategy", metavar="NAME|FILE", help="A strategy instead of a search.")
]
Fix = Annotated[
    list[str] | None,
    typer.Option("--fix", metavar="FILE|STAGE.KEY=VALUE", help="A decision that is not the search's. Repeatable."),
]
Top = Annotated[int, typer.Option("--top", min=1, max=64, metavar="K", help="List the K best candidates.")]
Tune = Annotated[
    int | None, typer.Option("--tune", min=2, max=64, metavar="K", help="Time the K best candidates, keep the fastest.")
]
NoCalibrate = Annotated[
    bool, typer.Option("--no-calibrate", help="Take estimates of this machine, and do not measure it on first use.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="NAME=FILE[@MIN,...]|FILE.npz",
        help="An input: .npy, .npz, PNG, TIFF, JPEG. Repeatable.",
    ),
]
Outputs = Annotated[
    list[str] | None,
    typer.Option(
        "--output", metavar="NAME=FILE", help="Where an output is written: .npy, .png, .tif, .jpg. Repeatable."
    ),
]
Params = Annotated[list[str] | None, typer.Option("--param", metavar="NAME=VALUE", help="A param. Repeatable.")]
Regions = Annotated[
    list[str] | None,
    typer.Option("--region", metavar="NAME=MIN:EXTENT,...", help="What to compute of an output. Repeatable."),
]
Estimates = Annotated[bool, typer.Option("--estimates", help="Make random inputs of the estimated sizes.")]
Convert = Annotated[bool, typer.Option("--convert", help="Convert depth and channels of pictures to what is wanted.")]
Stretch = Annotated[bool, typer.Option("--stretch", help="Stretch the values of written pictures to black..white.")]
