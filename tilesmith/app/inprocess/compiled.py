"""A compiled pipeline as a function: NumPy in, NumPy out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from html import escape
from threading import Lock
from typing import Any

from tilesmith.app.inprocess.block import Block, buffer_bytes
from tilesmith.app.inprocess.images import Array, check_apart, check_output, image_array, output_array
from tilesmith.app.inprocess.layout import Layout, Layouts, region_of
from tilesmith.app.inprocess.library import Library
from tilesmith.app.inprocess.outputs import Outputs
from tilesmith.app.inprocess.signature import Given, Signature, check_threads
from tilesmith.app.runtime import estimates
from tilesmith.app.runtime.build import cannot_run_here, slow_flags
from tilesmith.app.runtime.build_cache import kept_build
from tilesmith.app.runtime.errors import RunError
from tilesmith.app.runtime.shortage import no_memory
from tilesmith.cost_models.interface import Breakdown
from tilesmith.platforms import Platform
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.compiler import Compiled
from tilesmith.scheduler.ir.pipeline.arguments import ArgumentError, Region, RegionError, Scalar
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Schedule
from tilesmith.scheduler.rewrites.fuse_outputs import apart
from tilesmith.scheduler.search import Trace
from tilesmith.scheduler.search.explain import to_text

_OK, _REGION, _, _MEMORY = range(4)
"""Answers of the C (see `TILESMITH_OK`)."""
_ELSEWHERE = (
    ". Its schedule and its C (`source`) are for that machine; `tilesmith run` runs the code of an emulated machine or "
    'of a device; for this one, compile it with platform="host"'
)


class CompiledPipeline:
    """A pipeline that is scheduled for a platform, callable with arrays: images by position or by name, params by name.

    The result is an array, of several outputs a tuple with names (`Outputs`), of an output that is a tuple a tuple of
    arrays. Options of a call: `out`, an array (of several a tuple, or a dict by name) to compute into; `region`, what
    to compute, (min, extent) per dim; `threads`; `origin`, where images begin, 0 without it.

    The C is compiled at the first call, or by `build`, and kept on disk; it is called in this process. Any number of
    threads may call at a time. A call raises ArgumentError and RegionError where its arguments do not fit, CompileError
    and RunError where the code cannot be compiled, or run on this machine.

    `weights` are images by name that a call need not give.
    """

    def __init__(
        self, record: Compiled, threads: int | None = None, weights: Mapping[str, Array] | None = None
    ) -> None:
        if threads is not None:
            check_threads(threads)
        self.record = record
        self.threads = threads
        self._layouts = Layouts(record.pipeline)
        self.weights = dict(weights or {})
        self.signature = Signature(record.pipeline, self._layouts.bounds, self.weights)
        self.__name__, self.__signature__ = record.pipeline.name, self.signature.of_python()
        self._inputs = tuple((i, i.type.numpy) for i in record.pipeline.inputs)
        self._blocks: list[Block] = []
        self._library: Library | None = None
        self._building = Lock()
        self._components = sum(len(record.pipeline.stage(name).types) for name in record.pipeline.outputs)
        self._is_one = self._components == 1

    def __reduce__(self) -> tuple[type[CompiledPipeline], tuple[Compiled, int | None, dict[str, Array]]]:
        return CompiledPipeline, (self.record, self.threads, self.weights)

    def __repr__(self) -> str:
        return f"<{self.signature} for {self.platform.name}>"

    # --- what was decided

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline as it was written."""
        return self.record.pipeline

    @property
    def platform(self) -> Platform:
        return self.record.platform

    @property
    def key(self) -> str:
        """The identity of pipeline, platform and options, by content."""
        return self.record.key

    @property
    def schedule(self) -> Schedule:
        return self.record.schedule

    @property
    def plan(self) -> Plan:
        """The pipeline as it was rewritten, with the schedule of it."""
        return self.record.plan

    @property
    def loopnest(self) -> str:
        """The loops of the schedule as text."""
        return self.record.loopnest

    @property
    def source(self) -> CSource:
        """The C, its header and its flags; printed, it is the C."""
        return self.record.source

    @property
    def trace(self) -> Trace:
        return self.record.trace

    @property
    def predicted(self) -> Breakdown:
        return self.record.predicted

    def explain(self) -> str:
        """Every decision of the search, and what each stage is predicted to cost."""
        return to_text(self.schedule, self.trace, self.predicted)

    def _repr_html_(self) -> str:
        """The stages, each with where it is computed and coloured by group; the loops below."""
        notes: dict[str, tuple[str, int]] = {}
        for number, group in enumerate(self.schedule.groups):
            for placement in group.placements:
                level = placement.compute
                notes[placement.stage] = (level if level == INLINE else f"at {level}", number)
            notes[group.output] = ("root", number)
        name, machine = escape(f"{self.signature}"), escape(self.platform.name)
        loops = f"<details><summary>loops</summary><pre>{escape(self.loopnest)}</pre></details>"
        return f"<div><p><b>{name}</b> for {machine}</p>{self.plan.pipeline.picture(notes)}{loops}</div>"

    # --- calling it

    def __call__(self, *images: Any, **named: Any) -> Any:
        """The outputs; see the class."""
        given = self.signature.bind(images, named)
        arrays = self._arrays(given)
        layout = self._layout(given, arrays)
        results = (
            [output.array() for output in layout.outputs]
            if given.out is None
            else self._given_outputs(given.out, layout, arrays)
        )
        every = arrays + results
        buffers = layout.buffers(tuple([a.strides for a in every]))
        block = self._block()
        block.fill(buffers, [a.__array_interface__["data"][0] for a in every], given.params.packed)
        answer = self._loaded().call(block.address, self.threads if given.threads is None else given.threads)
        if answer != _OK:
            raise self._refusal(answer, block, layout)
        self._blocks.append(block)
        return results[0] if self._is_one else self._gathered(layout, results)

    def _arrays(self, given: Given) -> list[Array]:
        return [image_array(v, i, dtype) for v, (i, dtype) in zip(given.images, self._inputs, strict=True)]

    def _layout(self, given: Given, arrays: list[Array]) -> Layout:
        regions = () if given.region is None else tuple(self.signature.regions(given.region).items())
        origins = self.signature.tables
        if given.origin is not None:
            origins = tuple((dict(origins) | self.signature.origins(given.origin)).items())
        return self._layouts.of(tuple([a.shape for a in arrays]), origins, given.params.bounds, regions)

    def _block(self) -> Block:
        """Memory for the arguments, which no other call has at the time."""
        try:
            return self._blocks.pop()
        except IndexError:
            return Block(len(self._inputs), len(self.pipeline.params), self._components)

    def _given_outputs(self, out: Any, layout: Layout, arrays: list[Array]) -> list[Array]:
        """The caller's arrays for the results. Raises ArgumentError where they cannot be."""
        names = self.pipeline.outputs
        parts = [out.get(name) for name in names] if isinstance(out, Mapping) else out
        parts = parts if isinstance(parts, tuple | list) else [parts]
        flat = [one for part in parts for one in (part if isinstance(part, tuple | list) else [part])]
        if len(flat) != self._components:
            raise ArgumentError(f"out: expected {self._components} arrays, of {', '.join(names)} in that order")
        named = []
        for output, value in zip(layout.outputs, flat, strict=True):
            array = output_array(value, output.what)
            check_output(array, output.what, output.shape, output.dtype)
            named.append((output.what, array))
        check_apart(named, [(f"input {i.name!r}", a) for (i, _), a in zip(self._inputs, arrays, strict=True)])
        return [array for _, array in named]

    def _gathered(self, layout: Layout, results: list[Array]) -> Any:
        """The arrays by output, those of tuples together."""
        parts: dict[str, Any] = {}
        for output, array in zip(layout.outputs, results, strict=True):
            parts[output.name] = array if output.component is None else (*parts.get(output.name, ()), array)
        return Outputs(parts) if len(parts) > 1 else next(iter(parts.values()))

    def build(self) -> CompiledPipeline:
        """The pipeline with its C compiled and loaded. Raises CompileError, and RunError where it cannot run here."""
        self._loaded()
        return self

    def _loaded(self) -> Library:
        if self._library is None:
            with self._building:
                if self._library is None:
                    reason = cannot_run_here(self.platform)
                    if reason is not None:
                        raise RunError("run_failure", f"{self!r} cannot be called here: {reason}{_ELSEWHERE}")
                    slow = slow_flags(self.platform)
                    if slow is not None:
                        flags = f"the flags of the compiler of {self.platform.name!r} make slow code: {slow}"
                        warnings.warn(flags, stacklevel=3)
                    self._library = Library(kept_build(self.source, self.platform))
        return self._library

    # --- regions

    def regions(self, *images: Any, **named: Any) -> dict[str, Region]:
        """The region ((min, extent) per dim) of each output that a call with these arguments computes."""
        given = self.signature.bind(images, named)
        return dict(self._layout(given, self._arrays(given)).regions)

    def required(self, region: Any, sizes: Mapping[str, Any] | None = None, **params: Any) -> dict[str, Region]:
        """The region ((min, extent) per dim) of each input that a region of the outputs needs, as the compiled code
        says: a bounds query. `sizes`: the shapes of the images that would be passed, by name, which say where
        boundaries begin; without them they have the sizes that the pipeline is planned for.

        Raises ArgumentError, and what `build` does."""
        scalars = self.signature.scalars(params)
        wanted = self.signature.regions(region)
        if len(wanted) < len(self.pipeline.outputs):
            raise ArgumentError(f"region: name one of each output: {', '.join(self.pipeline.outputs)}")
        inputs = self._sizes(sizes or {}, scalars.values)
        parts = [buffer_bytes(inputs[name], (0,) * len(inputs[name])) for name in self.signature.inputs]
        for name in self.pipeline.outputs:
            parts += [buffer_bytes(wanted[name], (0,) * len(wanted[name]))] * len(self.pipeline.stage(name).types)
        block = self._block()
        block.fill(b"".join(parts), [0] * len(parts), scalars.packed)
        if self._loaded().call(block.address, None) != _REGION:
            raise self._beyond(wanted)
        return {name: block.region(number) for number, name in enumerate(self.signature.inputs)}

    def _sizes(self, sizes: Mapping[str, Any], params: Mapping[str, Scalar]) -> dict[str, Region]:
        """The regions of images of these shapes, of others as the pipeline is planned. Raises ArgumentError."""
        known = {i.name: len(i.dims) for i, _ in self._inputs}
        for name, shape in sizes.items():
            if len(shape) != known.get(name):
                rank = f"has {known[name]} axes, not the shape {shape}" if name in known else "is no input"
                raise ArgumentError(f"sizes: {name!r} {rank}; inputs: {', '.join(known)}")
        found = {name: region_of(tuple(shape)) for name, shape in sizes.items()}
        return found if found.keys() == known.keys() else estimates.input_regions(self.pipeline, params) | found

    def _refusal(self, answer: int, block: Block, layout: Layout) -> Exception:
        """The error for an answer of the C other than 0."""
        if answer == _MEMORY:
            return no_memory(self.pipeline, self.source.buffers, layout.regions, {}, layout.images)
        if answer != _REGION:
            return self._beyond(layout.regions)
        for number, (wanted, _) in enumerate(self._inputs):
            places = zip(wanted.dims, block.region(number), layout.images[wanted.name], strict=True)
            for axis, (dim, (low, extent), (has, size)) in enumerate(places, start=1):
                if low < has or low + extent > has + size:
                    return RegionError(
                        f"input {wanted.name!r}, dim {dim} (axis {len(wanted.dims) - axis}): {low} to "
                        f"{low + extent - 1} is required, the image has {has} to {has + size - 1}: ask for a smaller "
                        "region, or pass a larger image"
                    )
        return RunError("run_failure", "the compiled code asked for a region that it was given")

    def _beyond(self, regions: Mapping[str, Region]) -> ArgumentError:
        """The error for regions that the C takes for none."""
        names = apart(self.pipeline, regions)
        if names:
            return ArgumentError(
                f"the schedule may compute {' and '.join(names)} together: they are to be asked for on one region, or "
                "to have different estimates in the document"
            )
        return ArgumentError("the regions of the outputs need places that lie beyond 32-bit coordinates")
