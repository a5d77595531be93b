"""Small documents run as generated code, for libraries that compute the same to judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from support.calls import Region, call
from support.machines import here
from support.native import build, source_of

from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import root_schedule

METHODS = ("root", "default")
"""Two orders of computation: what OpenCV and others judge are the values, and random cases have every method's."""

SIZES = {"x": 1024, "y": 768, "c": 3}
Array = np.ndarray
Stage = Mapping[str, object]


def stage(name: str, value: str | list[str], dims: str = "xy", **more: object) -> Stage:
    """A stage of a document; `dims` has one letter a dim."""
    return {"name": name, "dims": list(dims), "value": value, **more}


def image(
    name: str = "image", type: str = "uint8", dims: str = "xy", boundary: str | None = "mirror_interior"
) -> Stage:
    """An input of a document; `boundary` is a kind, or the value of a constant one."""
    kind = {} if boundary is None else {"kind": boundary}
    if boundary is not None and boundary[0].isdigit():
        kind = {"kind": "constant", "value": boundary}
    return {"name": name, "type": type, "dims": list(dims), **({"boundary": kind} if kind else {})}


class Judged:
    """A pipeline that is compiled once for each method. The last stage is the output, or those of `outputs`."""

    def __init__(
        self,
        inputs: Sequence[Stage],
        stages: Sequence[Stage],
        outputs: Sequence[str] = (),
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        names = list(outputs) or [str(stages[-1]["name"])]
        known = {**SIZES, **(sizes or {})}
        dims = {str(s["name"]): s["dims"] for s in (*inputs, *stages)}
        estimated = [*names, *(str(i["name"]) for i in inputs)]
        self.pipeline = load(
            {
                "format": 1,
                "name": "judged",
                "inputs": list(inputs),
                "stages": list(stages),
                "outputs": names,
                "estimates": {n: [[0, known[str(d)]] for d in dims[n]] for n in estimated},  # type: ignore[attr-defined]
            }
        )
        self._built = cache(self._build)

    def _build(self, method: str) -> tuple:
        if method == "root":
            schedule = root_schedule(self.pipeline, here())
            check(rewrite(self.pipeline, schedule))
            source = source_of(self.pipeline, schedule, here())
        else:
            source = compile_pipeline(self.pipeline, here(), Options(method)).source
        return source, build(source)

    def __call__(
        self, method: str, images: Mapping[str, Array], regions: Mapping[str, Region] | Region, output: int = 0
    ) -> Array:
        """The output's array (axes reversed) over its region; images begin at 0. `output` numbers a tuple's parts."""
        found = self.all(method, images, regions)
        return found[self.pipeline.outputs[0]][output]

    def all(
        self, method: str, images: Mapping[str, Array], regions: Mapping[str, Region] | Region
    ) -> dict[str, tuple[Array, ...]]:
        """All outputs."""
        source, library = self._built(method)
        if not isinstance(regions, Mapping):
            regions = {self.pipeline.outputs[0]: regions}
        inputs = {n: Image(np.ascontiguousarray(a), (0,) * a.ndim) for n, a in images.items()}
        status, got = call(library, source, self.pipeline, inputs, {}, regions)
        assert status == 0, status
        return got


def whole(array: Array) -> Region:
    """The region of an image that begins at 0."""
    return tuple((0, n) for n in reversed(array.shape))


def noise(width: int, height: int, type_: str = "uint8", channels: int = 0, seed: int = 0) -> Array:
    """A random image, smooth in places; floats in 0..1. Axes are channels, y, x."""
    random = np.random.default_rng(seed)
    shape = (channels, height, width) if channels else (height, width)
    values = random.random(shape)
    ramp = np.linspace(0, 1, width) * np.linspace(1, 0.2, height)[:, None]
    values = np.where(random.random(shape) < 0.5, values, ramp * 0.8 + values * 0.2)
    return values.astype(type_) if type_.startswith("float") else (values * np.iinfo(type_).max).astype(type_)
