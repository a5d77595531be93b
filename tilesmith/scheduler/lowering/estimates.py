"""Estimates: indices as numbers at the sizes that the document expects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tilesmith.scheduler.analysis.bounds_inference import bound_symbol, number_of, param_symbol
from tilesmith.scheduler.analysis.estimated_bounds import estimates
from tilesmith.scheduler.ir.index import Index, const, multiply
from tilesmith.scheduler.ir.loop.program import Allocate, Body, Extents, Function, Invoke, Let, Loop
from tilesmith.scheduler.ir.loop.signature import Argument
from tilesmith.scheduler.ir.loop.traversal import walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline


@dataclass(slots=True)
class Estimates:
    """Indices as numbers: `symbols` have their estimates, what a Let defines has what that gives, `loops` and those of
    known `ranges` are in the middle; `rounded` has the functions that others stand for; strides of buffers are those of
    dense ones, and names of functions are what these are first invoked with; the rest is 1."""

    symbols: dict[str, int]
    ranges: Mapping[str, tuple[Index, Index]] = field(default_factory=dict)
    lets: dict[str, Index] = field(default_factory=dict)
    loops: dict[str, tuple[Index, Index]] = field(default_factory=dict)
    rounded: Mapping[str, Index] = field(default_factory=dict)

    def add(self, body: Body) -> None:
        """Takes in the definitions, the loops and the buffers of a block."""
        functions: dict[str, Function] = {}
        for s in walk(body):
            match s:
                case Let(name, value):
                    self.lets[name] = value
                case Loop(var, lo, hi):
                    self.loops[var] = (lo, hi)
                case Allocate(memory):
                    self.lets |= _strides(memory)
                case Function(name):
                    functions[name] = s
                case Invoke(name, given):
                    for symbol, value in zip(functions[name].symbols, given, strict=True):
                        self.lets.setdefault(symbol, value)

    def value(self, x: Index) -> int:
        """The number that `x` is."""
        return x.value(self._look)

    def range(self, bounds: tuple[Index, Index]) -> tuple[int, int]:
        """(min, extent) of a range."""
        lo, hi = (self.value(x) for x in bounds)
        return lo, hi - lo + 1

    def _look(self, name: str) -> int:
        if name in self.symbols:
            return self.symbols[name]
        ends = self.ranges.get(name) or self.loops.get(name)
        if ends is not None:
            return sum(map(self.value, ends)) // 2
        value = self.lets.get(name) or self.rounded.get(name)
        if value is None:
            return 1
        found = self.symbols[name] = value.value(self._look)
        return found


def _strides(memory: Extents) -> dict[str, Index]:
    """The strides of a buffer, were its rows and planes not padded."""
    found, step = dict[str, Index](), const(1)
    for d, extent in zip(memory.order, memory.extents, strict=True):
        found |= dict.fromkeys(memory.buffer.stride[d].symbols(), step)
        step = multiply(step, extent)
    return found


def estimated_symbols(written: Pipeline, pipeline: Pipeline) -> dict[str, int]:
    """The symbols that a call gives, at the estimates: regions of outputs, as they were written; regions of inputs and
    params as the schedule is made for them (see `estimated_bounds.estimates`), nothing where nothing is known."""
    env = estimates(pipeline).symbols
    for p in pipeline.params:
        env.setdefault(param_symbol(p.name), number_of(p, 0))
    for image in pipeline.inputs:  # those that nothing reads
        for d in image.dims:
            env.setdefault(bound_symbol(image.name, "min", d), 0)
            env.setdefault(bound_symbol(image.name, "extent", d), 1)
    for name in written.outputs:
        for d, (lo, extent) in zip(written.stage(name).dims, written.estimate(name) or (), strict=False):
            env[bound_symbol(name, "min", d)], env[bound_symbol(name, "extent", d)] = lo, extent
    return env


def estimated_strides(arguments: Iterable[Argument], symbols: Mapping[str, int]) -> dict[str, int]:
    """The strides of images whose extents have these estimates: those of dense ones."""
    found: dict[str, int] = {}
    for a in arguments:
        step = 1
        for d in a.storage:
            found[f"{a.c_name}.stride.{d}"] = step
            step *= symbols.get(bound_symbol(a.name, "extent", d), 1)
    return found
