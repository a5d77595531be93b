"""Cases of the corpus: pipelines by name, each with estimates of real size and, where a library has the same function,
that function."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.corpus.differences import difference
from tilesmith.language import Image, Stage, pipeline
from tilesmith.scheduler.frontends.python.frontend import reached
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

TOPICS = (
    "audio", "camera", "colour", "corners", "denoising", "descriptors", "edges", "flow", "geometry", "integral",
    "layers", "morphology", "polybench", "pyramids", "segmentation", "stereo", "volumes",
)  # fmt: skip
"""The modules of this package that have cases."""
USUAL = {"x": 2560, "y": 1536, "c": 3}
"""Extents of dims for which a case says nothing else."""
FEW, SMALL, SPREAD = 40, 24, 13
"""The small problem of a case: extents up to FEW stay, longer ones become SMALL and up to SPREAD more, so that they
differ and are no multiple of a vector."""
PLANE, IMAGE = "xy", "xyz"
SMALL_SUFFIX = "@small"


@dataclass(frozen=True)
class Sized:
    """An output or input, with its extents in x and y as multiples of what the case says, or its own."""

    source: Stage | Image
    factor: float = 1.0
    own: Mapping[str, int] = field(default_factory=dict)


Made = Stage | tuple[Stage | Image | Sized, ...]
"""The outputs, and the inputs whose extents are those of their dims. So are those of inputs with a boundary that have a
dim that no output has; others have what the outputs require."""


@dataclass(frozen=True)
class Case:
    """A pipeline of the corpus. `reference` takes the inputs by name, axes in the order of memory, slowest first, and
    gives the outputs likewise; these agree `within` that part of the largest magnitude, but for `apart` of them: so do
    those of two schedules."""

    name: str
    topic: str
    doc: str
    make: Callable[[], Made]
    extents: Mapping[str, int]
    reference: Callable[..., Any] | None
    within: float
    apart: float

    def pipeline(self, small: bool = False) -> Pipeline:
        """The checked pipeline, at the estimates of real size or at those of the small problem."""
        made = self.make()
        parts = [s if isinstance(s, Sized) else Sized(s) for s in (made if isinstance(made, tuple) else (made,))]
        estimates: dict[Stage | Image | str, list[tuple[int, int] | list[int]]] = {}
        for p in parts:
            estimates[p.source] = [(0, self._extent(d, p, small)) for d in p.source.entry["dims"]]
        outputs = [p.source for p in parts if isinstance(p.source, Stage)]
        written = {dim for output in outputs for dim in output.entry["dims"]}
        for image in reached(outputs):
            if isinstance(image, Image) and image not in estimates and "boundary" in image.entry:
                dims = image.entry["dims"]
                if set(dims) - written and set(dims) <= set(self.extents):
                    estimates[image] = [(0, self._extent(d, Sized(image), small)) for d in dims]
        return pipeline(self.name, outputs, estimates, self.doc)

    def _extent(self, dim: str, part: Sized, small: bool) -> int:
        extent = part.own[dim] if dim in part.own else self.extents[dim]
        if small and (dim in IMAGE or (dim not in part.own and dim != "c")):
            extent = shrunk(extent)
        return int(extent * part.factor) if dim in PLANE else extent


def shrunk(extent: int) -> int:
    """The extent in the small problem."""
    return extent if extent <= FEW else SMALL + extent % SPREAD


_cases: dict[str, Case] = {}


def case(
    reference: Callable[..., Any] | None = None, within: float = 1e-4, apart: float = 0.0, **extents: int
) -> Callable[[Callable[[], Made]], Callable[[], Made]]:
    """A decorator: the function makes the stages of the case that has its name. `extents` are those of dims."""

    def register(make: Callable[[], Made]) -> Callable[[], Made]:
        if make.__name__ in _cases:
            raise ValueError(f"two cases are called {make.__name__}")
        doc, topic = " ".join((make.__doc__ or "").split()), make.__module__.rpartition(".")[2]
        _cases[make.__name__] = Case(make.__name__, topic, doc, make, USUAL | extents, reference, within, apart)
        return make

    return register


@cache
def cases() -> Mapping[str, Case]:
    """All written cases by name, in the order of their names."""
    for topic in TOPICS:
        import_module(f"benchmarks.corpus.{topic}")
    return dict(sorted(_cases.items()))


def differ_as_the_case_says(name: str, first: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> bool:
    """True if a pipeline is a case, and two results of it differ as little as that allows: what takes the least of
    several, as `kuwahara_filter` does, takes another one where two are as small, by the order in which floats are
    added up."""
    case = cases().get(name)
    if case is None:
        return False
    return not any(difference(a, b, case.within, case.apart) for a, b in zip(first, other, strict=True))


def for_reports(name: str) -> bool:
    """True for the half that is timed to report, and that nobody develops with. A hash of the name decides."""
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 1
