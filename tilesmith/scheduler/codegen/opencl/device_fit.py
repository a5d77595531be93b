"""Verifier of what a device asks of a schedule beside being right: at the estimated sizes, what work-groups keep is in
local memory, work-items that run together compute neighbours along the row, and compute units have work-groups.

A schedule that does not fit computes the same, and takes longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tilesmith.platforms import OpenClPlatform, Platform
from tilesmith.scheduler.analysis.bounds_inference import bound_symbol
from tilesmith.scheduler.analysis.estimated_bounds import estimates
from tilesmith.scheduler.codegen.opencl.outline import Host, HostIf, HostLoop, Kernel, outlined
from tilesmith.scheduler.codegen.opencl.passes import PASSES
from tilesmith.scheduler.codegen.opencl.work_items import shared, stores
from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop.padding import buffer_bytes
from tilesmith.scheduler.ir.loop.program import Body, Extents, If, Let, Loop, PeeledLoop, Program, Scratch
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.lowering import lower

Rule = Literal["local memory", "coalesced", "work-groups"]

ENOUGH = 0.75
"""The part of the compute units that has work at least: tiles of equal height do not give each of them one."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """A kernel that does not fit the device: the rule that it breaks, and by what."""

    kernel: str
    rule: Rule
    why: str

    def __str__(self) -> str:
        return f"{self.kernel}, {self.rule}: {self.why}"

    def to_document(self) -> dict[str, str]:
        """The misfit as plain data."""
        return {"kernel": self.kernel, "rule": self.rule, "why": self.why}


def misfits(plan: Plan, platform: Platform) -> tuple[Misfit, ...]:
    """The kernels of a plan that do not fit the device, in the order in which they run, each with the rules that it
    breaks. A platform of another kind has no such rules."""
    if not isinstance(platform, OpenClPlatform):
        return ()
    return verified(PASSES(lower(plan, platform)), _sizes(plan), platform)


def verified(program: Program, symbols: dict[str, int], platform: OpenClPlatform) -> tuple[Misfit, ...]:
    """The kernels of a program that do not fit the device, where the sizes are those of `symbols`."""
    sizes = dict(symbols)
    _define(program.bounds, sizes)
    return tuple(_Verifier(platform, program, sizes, {}).block(outlined(program.body)))


def _sizes(plan: Plan) -> dict[str, int]:
    """The runtime sizes of inputs and outputs at the estimates."""
    sizes = dict(estimates(plan.pipeline).symbols)
    dims = {stage.name: stage.dims for stage in plan.written.stages}
    known = dict(plan.written.estimates)
    for name in plan.written.outputs:
        for dim, (lo, extent) in zip(dims[name], known[name], strict=True):
            sizes |= {bound_symbol(name, "min", dim): lo, bound_symbol(name, "extent", dim): extent}
    return sizes


@dataclass(slots=True)
class _Verifier:
    platform: OpenClPlatform
    program: Program
    sizes: dict[str, int]  # what the host knows, at the estimates
    scratch_bytes: dict[str, int]

    def block(self, steps: tuple[Host, ...]) -> Iterator[Misfit]:
        for s in steps:
            match s:
                case Let():
                    _define((s,), self.sizes)
                case Scratch():
                    self.scratch_bytes[s.name] = sum(map(self._bytes, s.buffers))
                case HostLoop():
                    self.sizes[s.loop.var] = _value(s.loop.lo, self.sizes) or 0
                    yield from self.block(s.body)
                case HostIf():
                    yield from self.block((*s.body, *s.otherwise))
                case Kernel():
                    yield from self._kernel(s)
                case _:
                    pass

    def _bytes(self, memory: Extents) -> int:
        def number(extent: Index) -> int:
            return max(1, _value(extent, self.sizes) or 1)

        return buffer_bytes(memory, number, self.program.line_bytes, self.program.crowded_bytes)

    def _kernel(self, kernel: Kernel) -> Iterator[Misfit]:
        platform = self.platform
        kept = sum(self.scratch_bytes.get(name, 0) for name in kernel.scratches())
        if platform.local_memory_dedicated and kept > platform.local_memory_bytes:
            why = f"work-groups keep {kept:,} bytes, local memory has {platform.local_memory_bytes:,}"
            yield Misfit(kernel.name, "local memory", why)
        if _points(tuple(kernel.body), dict(self.sizes)) < platform.compute_units * platform.work_items:
            return  # too little to be shared
        items = shared(kernel)
        if platform.work_items > 1 and items.alone:
            yield Misfit(kernel.name, "coalesced", items.alone)
        groups = 1 if kernel.shared is None else _trips(kernel.shared, self.sizes)
        if groups < ENOUGH * platform.compute_units:
            why = f"{groups} work-group{'s' * (groups > 1)} for {platform.compute_units} compute units"
            yield Misfit(kernel.name, "work-groups", why)


def _points(body: Body, sizes: dict[str, int]) -> int:
    """The elements that a block stores."""
    count = 0
    for s in body:
        match s:
            case Let():
                _define((s,), sizes)
            case Loop():
                count += _trips(s, sizes) * _points(s.body, {**sizes, s.var: _value(s.lo, sizes) or 0})
            case PeeledLoop():
                first, (start, end), last = (
                    _value(s.lo, sizes),
                    [_value(x, sizes) for x in s.skip],
                    _value(s.hi, sizes),
                )
                if first is not None and last is not None and start is not None and end is not None:
                    ends = max(0, last - first + 1 - (end - start))
                    count += ends * _points(s.body, {**sizes, s.var: first})
                count += _points(s.middle, dict(sizes))
            case If():
                count += max(_points(s.body, dict(sizes)), _points(s.otherwise, dict(sizes)))
            case _:
                count += stores(s)
    return count


def _trips(loop: Loop, sizes: dict[str, int]) -> int:
    """Iterations of a loop; 1 where data decides."""
    lo, hi, step = (_value(x, sizes) for x in (loop.lo, loop.hi, loop.step))
    return 1 if lo is None or hi is None or not step else max(0, (hi - lo) // step + 1)


def _define(body: Body, sizes: dict[str, int]) -> None:
    for s in body:
        if isinstance(s, Let) and (value := _value(s.value, sizes)) is not None:
            sizes[s.name] = value


def _value(index: Index, sizes: dict[str, int]) -> int | None:
    """The value of an index; None where a part of it is not known before data is."""
    try:
        return index.value(sizes)
    except KeyError:
        return None
