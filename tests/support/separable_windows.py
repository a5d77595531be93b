"""Pipelines with windows written out or as reductions, for tests of their splitting."""

from __future__ import annotations

from collections.abc import Sequence

from tilesmith.scheduler.analysis.separability import windows
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.rewrites.passes import normalise, rewrite
from tilesmith.scheduler.search.separable_choice import Separated, separate

LAPLACIAN = "image(x - 1, y) + image(x + 1, y) + image(x, y - 1) + image(x, y + 1) - 4 * image(x, y)"


def pipeline_of(
    value: object, *stages: dict[str, object], type: str = "float32", dims: str = "xy", boundary: str | None = None
) -> Pipeline:
    """`out` is `value` of an `image`, an `other` if it reads that, `stages`, a `table` of weights, params p, q."""
    image: dict[str, object] = {"name": "image", "type": type, "dims": list(dims)}
    if boundary is not None:
        image["boundary"] = {"kind": boundary, **({"value": "7"} if boundary == "constant" else {})}
    images = [image, {**image, "name": "other"}] if "other" in str(value) else [image]
    out = {"name": "out", "dims": list(dims), "value": value}
    return load(
        {
            "format": 1,
            "name": "test",
            "inputs": [*images, {"name": "table", "type": type, "dims": ["k"]}],
            "params": [{"name": n, "type": type, "default": 3} for n in "pq"],
            "stages": [*stages, out],
            "outputs": ["out"],
            "estimates": {"out": [[0, 32]] * len(dims), "table": [[-4, 9]]},
        }
    )


def explicit(weights: Sequence[Sequence[object]], read: str = "image({x}, {y})") -> str:
    """The sum of a window written out, its middle at x, y."""
    high, wide = len(weights), len(weights[0])
    terms = []
    for j, row in enumerate(weights):
        for i, weight in enumerate(row):
            place = read.format(x=f"x + {i - wide // 2}", y=f"y + {j - high // 2}")
            terms.append(place if weight == 1 else f"{weight} * {place}")
    return " + ".join(terms)


def outer(u: Sequence[float], v: Sequence[float]) -> list[list[float]]:
    return [[a * b for b in v] for a in u]


def box(width: int, height: int, read: str = "image(x + i, y + j)", op: str = "sum") -> str:
    i, j = (f"range({-(n // 2)}, {n - n // 2})" for n in (width, height))
    return f"{op}({read} for j in {j} for i in {i})"


def found(pipeline: Pipeline, stage: str = "out") -> list[tuple[str, ...]]:
    """The dims along which each window of the stage can be split."""
    return [w.dims for w in windows(normalise(pipeline).stage(stage))]


def split_by_choice(of: Pipeline, strict: bool = False) -> Separated:
    """The pipeline with the windows in two steps that the search splits."""
    plan = rewrite(of, Schedule(of.name, "", (), strict))
    return separate(plan, gather(plan.pipeline))
