"""The NAME=... options of run and interpret: inputs, outputs, params and regions, checked against the pipeline."""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tilesmith.app.cli.report import UsageError
from tilesmith.app.cli.sources import suggestion
from tilesmith.app.runtime.images import ImageError, check_writable

if TYPE_CHECKING:
    from tilesmith.scheduler.ir.pipeline.pipeline import Param, Pipeline

Region = tuple[tuple[int, int], ...]
Scalar = int | float | bool
Complaint = tuple[str, str | None]

INT32 = range(-(2**31), 2**31)
MINS = re.compile(r"(?P<file>.+)@(?P<mins>[+-]?\d+(?:,[+-]?\d+)*)", re.DOTALL)
COMPONENT = re.compile(r"(?P<name>.+)\[(?P<index>\d+)\]")
TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True)
class InputFile:
    """`mins` are where the file's first element lies, in the order of the input's dims."""

    path: Path
    mins: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments of run and interpret. Outputs are by name and component."""

    inputs: dict[str, InputFile]
    outputs: dict[tuple[str, int], Path]
    params: dict[str, Scalar]
    regions: dict[str, Region]


def parse(
    pipeline: Pipeline,
    inputs: Sequence[str],
    outputs: Sequence[str],
    params: Sequence[str],
    regions: Sequence[str],
    estimates: bool = False,
    weights: Container[str] = (),
) -> Arguments:
    """The options against the pipeline; `estimates` says that inputs are made, not read, `weights` are inputs that need
    not be given.

    Raises UsageError with every problem: unknown, missing and repeated names, bad values, unwritable outputs.
    """
    complaints: list[Complaint] = []
    parsed = Arguments(
        inputs=_inputs(pipeline, inputs, estimates, weights, complaints),
        outputs=_outputs(pipeline, outputs, complaints),
        params=_params(pipeline, params, complaints),
        regions=_regions(pipeline, regions, complaints),
    )
    _overwritten(parsed, complaints)
    if complaints:
        raise UsageError(*complaints)
    return parsed


def _overwritten(arguments: Arguments, complaints: list[Complaint]) -> None:
    """Outputs that would be written over an input, or over one another."""
    taken = {file.path.resolve(): f"the input {name!r}" for name, file in sorted(arguments.inputs.items())}
    for (name, _), path in arguments.outputs.items():
        if (owner := taken.get(path.resolve())) is not None:
            complaints.append((f"--output {name}={path} would overwrite {owner}", "name another file"))
        taken.setdefault(path.resolve(), f"the output {name!r}")


def _pairs(option: str, texts: Iterable[str], shape: str, complaints: list[Complaint]) -> list[tuple[str, str]]:
    """NAME=VALUE texts as pairs; those without a name or a value are complained of."""
    pairs = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            complaints.append((f"--{option} {text}: expected {shape}", None))
        else:
            pairs.append((name, value))
    return pairs


def _named(option: str, name: str, known: Sequence[str], seen: Iterable[str], complaints: list[Complaint]) -> bool:
    """True if `name` is known and new."""
    if name not in known:
        complaints.append(
            (f"--{option} {name}: the pipeline has no {option} {name!r}", suggestion(name, known, f"{option}s"))
        )
    elif name in seen:
        complaints.append((f"--{option} {name} is given twice", None))
    else:
        return True
    return False


def _inputs(
    pipeline: Pipeline,
    texts: Sequence[str],
    estimates: bool,
    weights: Container[str],
    complaints: list[Complaint],
) -> dict[str, InputFile]:
    known = [i.name for i in pipeline.inputs]
    archives = [t for t in texts if t.endswith(".npz") and "=" not in t]
    found = {n: f for archive in archives for n, f in _members(pipeline, Path(archive), complaints).items()}
    single = [t for t in texts if t not in archives]
    for name, value in _pairs("input", single, "NAME=FILE, NAME=FILE@MIN,MIN,... or FILE.npz", complaints):
        if not _named("input", name, known, found, complaints):
            continue
        dims = pipeline.input(name).dims
        path, mins = Path(value), (0,) * len(dims)
        match = MINS.fullmatch(value)
        if match and not path.exists():
            path, mins = Path(match["file"]), tuple(int(m) for m in match["mins"].split(","))
            if len(mins) != len(dims) or any(m not in INT32 for m in mins):
                complaints.append(
                    (f"--input {name}: expected {len(dims)} mins after '@', one for each of {', '.join(dims)}", None)
                )
        found[name] = InputFile(path, mins)
    if estimates and texts:
        complaints.append(("--estimates makes the inputs: give either it or --input", None))
    asked = [] if estimates else [i for i in pipeline.inputs if i.name not in weights and i.table is None]
    for missing in (i for i in asked if i.name not in found):
        need = f"{missing.type}, dims [{', '.join(missing.dims)}]"
        complaints.append((f"the input {missing.name!r} ({need}) is not given", f"add --input {missing.name}=FILE"))
    return found


def _members(pipeline: Pipeline, archive: Path, complaints: list[Complaint]) -> dict[str, InputFile]:
    """The inputs that an archive has arrays of."""
    try:
        names = {n.removesuffix(".npy") for n in zipfile.ZipFile(archive).namelist()}
    except (OSError, zipfile.BadZipFile) as error:
        complaints.append((f"--input {archive}: {getattr(error, 'strerror', None) or error}", None))
        return {i.name: InputFile(archive, ()) for i in pipeline.inputs}  # one complaint is enough
    found = {i.name: InputFile(archive, (0,) * len(i.dims)) for i in pipeline.inputs if i.name in names}
    if not found:
        complaints.append((f"--input {archive}: it has no array named after an input", None))
    return found


def _outputs(pipeline: Pipeline, texts: Sequence[str], complaints: list[Complaint]) -> dict[tuple[str, int], Path]:
    found: dict[tuple[str, int], Path] = {}
    for text, value in _pairs("output", texts, "NAME=FILE", complaints):
        component = COMPONENT.fullmatch(text)
        name, index = (component["name"], int(component["index"])) if component else (text, 0)
        if not _named("output", name, pipeline.outputs, (), complaints):
            continue
        stage = pipeline.stage(name)
        if index >= len(stage.types) or (component is None and len(stage.types) > 1):
            hint = "name one: " + ", ".join(f"{name}[{i}]=FILE" for i in range(len(stage.types)))
            complaints.append((f"--output {text}: {name!r} has {len(stage.types)} components", hint))
        elif (name, index) in found:
            complaints.append((f"--output {text} is given twice", None))
        else:
            found[name, index] = Path(value)
            try:
                check_writable(Path(value), stage.dims, stage.types[index])
            except ImageError as error:
                complaints.append((str(error), error.hint))
    return found


def _params(pipeline: Pipeline, texts: Sequence[str], complaints: list[Complaint]) -> dict[str, Scalar]:
    known = [p.name for p in pipeline.params]
    found: dict[str, Scalar] = {}
    given: set[str] = set()
    for name, text in _pairs("param", texts, "NAME=VALUE", complaints):
        if not _named("param", name, known, given, complaints):
            continue
        given.add(name)
        param = next(p for p in pipeline.params if p.name == name)
        value = _scalar(param, text)
        low, high = param.min, param.max
        if value is None:
            complaints.append((f"--param {name}={text}: {text!r} is not a {param.type}", None))
        elif not ((low is None or value >= low) and (high is None or value <= high)):  # no number is in no range
            between = f"{'-inf' if low is None else low} to {'inf' if high is None else high}"
            complaints.append((f"--param {name}={text}: {name} goes from {between}", None))
        else:
            found[name] = value
    for param in pipeline.params:
        if param.default is not None:
            found.setdefault(param.name, param.default)
        elif param.name not in given:
            complaints.append(
                (f"the param {param.name!r} ({param.type}) is not given", f"add --param {param.name}=VALUE")
            )
    return found


def _scalar(param: Param, text: str) -> Scalar | None:
    """The value of `text` in the type of `param`; None where it has none."""
    if param.type.kind == "bool":
        return TRUTH.get(text.lower())
    convert: Callable[[str], int | float] = float if param.type.is_float else int
    try:
        value = convert(text)
    except ValueError:
        return None
    if param.type.is_integer:
        return value if param.type.min <= value <= param.type.max else None
    return value if not math.isfinite(value) or abs(value) <= float(np.finfo(param.type.numpy).max) else None


def _regions(pipeline: Pipeline, texts: Sequence[str], complaints: list[Complaint]) -> dict[str, Region]:
    found: dict[str, Region] = {}
    for name, text in _pairs("region", texts, "NAME=MIN:EXTENT,...", complaints):
        if not _named("region", name, pipeline.outputs, found, complaints):
            continue
        dims = pipeline.stage(name).dims
        region = _region(text, len(dims))
        if region is None:
            hint = "for example " + ",".join("0:64" for _ in dims)
            complaints.append((f"--region {name}={text}: expected MIN:EXTENT for each of {', '.join(dims)}", hint))
        else:
            found[name] = region
    return found


def _region(text: str, dims: int) -> Region | None:
    parts = [re.fullmatch(r"([+-]?\d{1,10}):(\d{1,10})", part.strip()) for part in text.split(",")]
    region = tuple((int(p[1]), int(p[2])) for p in parts if p)
    if len(parts) != dims or len(region) != dims:
        return None
    fits = all(extent >= 1 and low in INT32 and low + extent - 1 in INT32 for low, extent in region)
    return region if fits else None
