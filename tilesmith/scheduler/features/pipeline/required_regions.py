"""Required regions as numbers: those of stages and inputs that regions of the outputs need."""

from __future__ import annotations

from collections.abc import Mapping

from tilesmith.scheduler.analysis.bounds_inference import bound_symbol, number_of, param_symbol, required_boxes
from tilesmith.scheduler.errors import TilesmithError
from tilesmith.scheduler.ir.index import Index, sym
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.hoist_parameters import with_values

Region = tuple[tuple[int, int], ...]


class UnknownSize(TilesmithError):
    """The regions that are asked for depend on the place or size of an image, or on a param, that is not given."""

    code = "bad_argument"

    def __init__(self, symbol: str) -> None:
        super().__init__(f"what is needed depends on {symbol.removeprefix(param_symbol(''))}, which is not given")


class _Numbers(dict[str, int]):
    """The numbers of symbols."""

    def __missing__(self, symbol: str) -> int:
        raise UnknownSize(symbol)


def required_regions(
    pipeline: Pipeline,
    regions: Mapping[str, Region],
    params: Mapping[str, int | float | bool],
    input_regions: Mapping[str, Region],
) -> dict[str, Region]:
    """(min, extent) per dim of every stage and input of a normal `pipeline` that the output `regions` ((min, extent)
    per dim) need; what is not needed is missing.

    `input_regions` are those of the images passed, for boundaries and `input.extent.x`; `params` needs those
    that bounds depend on. The same intervals that the generated code computes at its entry. It has no numbers when they
    are worked out, so these come last here, too: intervals of numbers may be narrower, as those of remainders.
    Raises UnknownSize where they depend on an image or a param that is not given.
    """
    known = with_values(pipeline, params)
    env = _Numbers({param_symbol(p.name): number_of(p, known[p.name]) for p in pipeline.params if p.name in known})
    for image in pipeline.inputs:
        for dim, (lo, extent) in zip(image.dims, input_regions.get(image.name, ()), strict=False):
            env[bound_symbol(image.name, "min", dim)] = lo
            env[bound_symbol(image.name, "extent", dim)] = extent
    names: dict[Index, Index] = {}

    def named(bound: Index, _: str) -> Index:
        if bound.is_short:
            return bound
        if bound not in names:
            name = f"bound.{len(names)}"
            env[name], names[bound] = bound.value(env), sym(name)
        return names[bound]

    outputs = {}
    for name, region in regions.items():
        ends = []
        for dim, (lo, extent) in zip(pipeline.stage(name).dims, region, strict=True):
            low, high = (bound_symbol(name, which, dim) for which in ("min", "max"))
            env[low], env[high] = lo, lo + extent - 1
            ends.append((sym(low), sym(high)))
        outputs[name] = tuple(ends)
    result: dict[str, Region] = {}
    for name, box in required_boxes(pipeline, outputs, named).items():
        numbers = [(lo.value(env), hi.value(env)) for lo, hi in box]
        if all(lo <= hi for lo, hi in numbers):  # else it is read in an empty domain alone
            result[name] = tuple((lo, hi - lo + 1) for lo, hi in numbers)
    return result
