"""Live Halide objects: a pipeline of Halide's Python as a document of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tilesmith.scheduler.errors import TilesmithError
from tilesmith.scheduler.frontends.halide.document import Obstacle
from tilesmith.scheduler.frontends.halide.facts import ImageFacts, ParamFacts
from tilesmith.scheduler.frontends.halide.imported import Imported, NotExpressible, imported, sizes_of
from tilesmith.scheduler.frontends.halide.options import HalideOptions
from tilesmith.scheduler.frontends.halide.serialized import BadBuffer, HalideProgram, HalideType, read
from tilesmith.scheduler.frontends.halide.text import plain

Live: TypeAlias = Any
"""An object of Halide: its package has no types."""


class HalideMissing(TilesmithError):
    """The package halide is not installed."""

    code = "halide_missing"

    def __init__(self, why: str = "the package halide is not installed") -> None:
        super().__init__(f"{why}: pip install 'halide>=21,<22'")


def import_halide() -> Any:
    """The package halide. Raises HalideMissing."""
    try:
        import halide
    except ImportError:
        raise HalideMissing from None
    if not hasattr(halide, "serialize_pipeline"):
        raise HalideMissing("this version of the package halide cannot write down its pipelines, 21 can")
    return halide


def from_halide(
    outputs: Live,
    estimates: Mapping[Live, Sequence[Sequence[int]]] | None = None,
    name: str | None = None,
    options: HalideOptions | None = None,
) -> Imported:
    """The pipeline that computes `outputs`: a Func, several, or a Pipeline of Halide.

    `estimates` are (min, extent) per dim, by the Func or ImageParam or its name; those that the Funcs and ImageParams
    have (set_estimates) need not be said again. `name` is that of the pipeline; without it, that of the first output.
    `options` are values of params, and sizes of outputs that have no estimates. The Halide objects are not changed.
    Raises HalideMissing, NotExpressible, ImportFailed for options that fit nothing, and TypeError for other arguments.
    """
    import_halide()
    whole = as_pipeline(outputs)
    program, parameters = serialized(whole)
    images = {p.name(): _image_facts(p, program) for p in parameters if p.is_buffer()}
    scalars = {p.name(): _param_facts(p) for p in parameters if not p.is_buffer()}
    spans: dict[str, Sequence[Sequence[int]]] = {}
    if options is not None:
        scalars, spans = options.applied(scalars), dict(options.spans(sizes_of(program)))
    spans |= {key if isinstance(key, str) else key.name(): value for key, value in (estimates or {}).items()}
    return imported(program, images, scalars, spans, name)


def as_pipeline(outputs: Live) -> Live:
    """A Halide Pipeline of what a user has in hand. Raises TypeError."""
    hl = import_halide()
    if isinstance(outputs, hl.Pipeline):
        return outputs
    found = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    if not found or not all(isinstance(f, hl.Func) for f in found):
        kinds = ", ".join(sorted({type(f).__name__ for f in found})) or "nothing"
        raise TypeError(f"expected a Func, several, or a Pipeline of Halide, not {kinds}")
    return hl.Pipeline(found)


def funcs_of(whole: Live) -> dict[str, Live]:
    """Every Func of a Halide Pipeline, by name."""
    hl = import_halide()
    found: dict[str, Live] = {}
    index = 0
    while True:
        try:
            func = whole.get_func(index)
        except hl.HalideError:
            return found
        found[func.name()] = func
        index += 1


def serialized(whole: Live) -> tuple[HalideProgram, list[Live]]:
    """A Halide Pipeline as data, and its Parameters. Raises NotExpressible where Halide cannot write it."""
    hl = import_halide()
    if undefined := [f.name() for f in whole.outputs() if not f.defined()]:
        raise NotExpressible([Obstacle(plain(name), "", "an output that nothing defines") for name in undefined])
    try:
        data, parameters = hl.serialize_pipeline(whole, get_params=True)
        return read(bytes(data)), list(parameters.values())
    except (hl.HalideError, BadBuffer) as error:
        raise NotExpressible([Obstacle("pipeline", "", " ".join(str(error).split()))]) from None


def _halide_type(t: Live) -> HalideType:
    code = re.sub(r".*\.", "", str(t.code())).lower()
    return HalideType("bfloat" if "?" in code else code, t.bits(), t.lanes())


def _image_facts(p: Live, program: HalideProgram) -> ImageFacts:
    dims = range(p.dimensions())
    return ImageFacts(
        _halide_type(p.type()),
        tuple((_integer(p.min_constraint_estimate(d)), _integer(p.extent_constraint_estimate(d))) for d in dims),
        tuple(_integer(p.stride_constraint(d)) for d in dims),
    )


def _param_facts(p: Live) -> ParamFacts:
    t = _halide_type(p.type())
    given = [_value(e, t) for e in (p.default_value(), _set_value(p), p.estimate()) if e is not None]
    default = next((v for v in given if v is not None), None)
    least, most = _value(p.min_value(), t), _value(p.max_value(), t)
    if (t.code, t.bits) == ("uint", 1):
        return ParamFacts(t, None if default is None else bool(default), None, None)
    if default is not None and ((least is not None and default < least) or (most is not None and default > most)):
        default = None
    return ParamFacts(t, default, least, most)


def _set_value(p: Live) -> Live:
    """The value that a Param has been given; None where it has none."""
    try:
        return p.scalar_expr()
    except import_halide().HalideError:
        return None


def _integer(e: Live) -> int | None:
    """The value of a constant integer Expr."""
    found = re.search(r": (?:\(\w+\))?(-?\d+)>?$", repr(e)) if e.defined() else None
    return int(found[1]) if found else None


def _value(e: Live, t: HalideType) -> int | float | None:
    """The value of a constant Expr; None of any other, and of one that is not defined. It is read, as evaluating it
    would start Halide's compiler."""
    if not e.defined():
        return None
    hl = import_halide()
    func = hl.Func("constant")
    try:
        func[()] = e
        program = read(bytes(hl.serialize_pipeline(hl.Pipeline(func))))
    except hl.HalideError:
        return None
    value = program.funcs[program.outputs[0]].definitions[0].values[0].value
    return value if value is None or t.code == "float" else int(value)


__all__ = ["HalideMissing", "Imported", "NotExpressible", "as_pipeline", "from_halide", "funcs_of"]
