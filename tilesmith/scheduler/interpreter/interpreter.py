"""The reference interpreter: the values of a pipeline, obvious rather than fast.

Independent of analysis, lowering and emission. It works on concrete boxes: a stage is evaluated on whole
boxes with NumPy broadcasting, and which box of a producer is needed is found by evaluating the indices of
every access over the consumer's box and taking their least and greatest. What single operators mean is in
`semantics`, expressions are in `expressions`, required boxes in `regions`. The rest of the meaning:

- What is required does not depend on conditions: it includes what the side of a select that is not taken reads,
  and the points of a reduction or update that its predicate leaves out.
- A stage with updates is computed over the hull of what is required of it, what its updates write and what
  they read of it.
- Within its own updates a stage is read as it stands at that moment, without its boundary. Every other reader
  sees the boundary. The caller gets the stage's own values.
- A reduction folds in the order of its loops, from `semantics.identity`. For argmin and argmax a point replaces
  the best so far if it is strictly better; they start from the worst value at the first value of every variable.
- A boundary's domain whose extent is below 1 at run time is its first point, and nothing where the kind is constant.
- Coordinates are 32-bit. What needs others is refused, and so is an index whose arithmetic leaves 32 bits where that
  shows: at its end, or where `//`, `%`, `min` or the like see it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tilesmith.scheduler.interpreter.boxes import Box, Buffer, box_of, covers, hull
from tilesmith.scheduler.interpreter.expressions import along, grid
from tilesmith.scheduler.interpreter.regions import RegionEvaluator
from tilesmith.scheduler.ir.pipeline.arguments import ArgumentError, Image, Region, RegionError, Scalar, checked_regions
from tilesmith.scheduler.ir.pipeline.expressions import Expr, Reduce, Var, map_children, reads_from
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Pipeline, Stage, Update
from tilesmith.scheduler.ir.pipeline.semantics import Array

__all__ = ["ArgumentError", "Image", "Region", "RegionError", "Scalar", "interpret", "required_regions"]


def interpret(
    pipeline: Pipeline,
    inputs: Mapping[str, Image],
    params: Mapping[str, Scalar],
    regions: Mapping[str, Region],
) -> dict[str, tuple[Array, ...]]:
    """The outputs named in `regions` over those regions ((min, extent) per dim), one array a tuple component.

    The arrays' axes are the reverse of the dims. Params that are not given take their defaults.
    Raises ArgumentError if images, params or regions do not fit the pipeline, RegionError if an input does
    not cover what is read of it.
    """
    boxes = {name: box_of(region) for name, region in checked_regions(pipeline, regions).items()}
    interpreter = _Interpreter(pipeline, inputs, params)
    required = interpreter.plan(boxes)
    for image in pipeline.inputs:
        if image.name in required:
            interpreter.check_input(image, required[image.name])
    for stage in pipeline.stages:
        if stage.name in required:
            interpreter.ensure(stage.name, required[stage.name])
    return {name: interpreter.cut(name, box) for name, box in boxes.items()}


def required_regions(
    pipeline: Pipeline,
    inputs: Mapping[str, Image],
    params: Mapping[str, Scalar],
    regions: Mapping[str, Region],
) -> dict[str, Region]:
    """The region of every stage and input that is needed for `regions` of the outputs; those not needed are left out.

    Takes the same arguments as `interpret`. Of an input with a boundary it is what is read inside the image;
    of one without, what is read, whether the image has it or not. Raises RegionError only where an index
    depends on pixels that are outside of an input.
    """
    boxes = {name: box_of(region) for name, region in checked_regions(pipeline, regions).items()}
    required = _Interpreter(pipeline, inputs, params).plan(boxes)
    return {name: tuple((low, high - low + 1) for low, high in box) for name, box in required.items()}


class _Interpreter(RegionEvaluator):
    """Values of one pipeline's stages for one set of inputs, computed when asked for and kept."""

    def __init__(self, pipeline: Pipeline, inputs: Mapping[str, Image], params: Mapping[str, Scalar]) -> None:
        super().__init__(pipeline, inputs, params)
        self.buffers: dict[str, Buffer] = {}
        self.computed: dict[str, Box] = {}  # a buffer may be larger: what grew in the middle has no earlier updates
        for name, image in self.images.items():
            box = tuple((m, m + e - 1) for m, e in zip(image.min, image.extent, strict=True))
            self.buffers[name] = Buffer(box, (image.array,))
            self.computed[name] = box

    def check_input(self, image: Input, required: Box) -> None:
        """Raise RegionError unless the image passed covers `required`."""
        for dim, (low, high), (first, last) in zip(image.dims, required, self.buffers[image.name].box, strict=True):
            if low < first or high > last:
                raise RegionError(
                    f"input {image.name}, dim {dim}: {low}..{high} is required, the image has {first}..{last}"
                )

    def ensure(self, name: str, box: Box) -> Buffer:
        """The values of input or stage `name` over at least `box`."""
        known = self.computed.get(name)
        if known is not None and covers(known, box):
            return self.buffers[name]
        if name in self.inputs:
            self.check_input(self.inputs[name], box)
        stage = self.stages[name]
        box, of_producers = self.demands(stage, hull(known, box))
        for producer, needed in of_producers.items():
            if producer in self.stages:
                self.ensure(producer, needed)
        self.buffers[name] = self._pure(stage, box)
        for update in stage.updates:
            self._run(stage, update)
        self.computed[name] = box
        return self.buffers[name]

    def cut(self, name: str, box: Box) -> tuple[Array, ...]:
        """A copy of the values of stage `name` over `box`."""
        buffer = self.ensure(name, box)
        window = tuple(
            slice(low - first, high - first + 1)
            for (low, high), (first, _) in reversed(list(zip(box, buffer.box, strict=True)))
        )
        return tuple(np.array(a[window]) for a in buffer.arrays)

    def _pure(self, stage: Stage, box: Box) -> Buffer:
        env = grid(stage.dims, box)
        shape = tuple(last - first + 1 for first, last in reversed(box))
        return Buffer(box, tuple(np.array(np.broadcast_to(self.evaluate(v, env), shape)) for v in stage.values))

    def _run(self, stage: Stage, update: Update) -> None:
        """Run one update, point by point; dims that the update leaves free are whole axes.

        What does not read the stage itself cannot change on the way, and is evaluated for all points beforehand.
        """
        ahead: dict[str, Expr] = {}

        def hoist(e: Expr) -> Expr:
            if not reads_from(e, stage.name):
                ahead[f"#{len(ahead)}"] = e
                return Var(f"#{len(ahead) - 1}", e.type)
            return e if isinstance(e, Reduce) else map_children(e, hoist)

        where = None if update.where is None else hoist(update.where)
        at, values = [hoist(e) for e in update.at], [hoist(v) for v in update.values]
        in_order = replace(update, domain=tuple(reversed(update.domain)))
        for env in self.update_chunks(stage, in_order, self.buffers[stage.name].box):
            known = {name: along(value, env) for name, value in env.variables.items()}
            known |= {name: along(self.evaluate(e, env), env) for name, e in ahead.items()}
            for n in range(env.lead):
                point = replace(env, variables={k: v[n] for k, v in known.items()}, rank=env.rank - 1, lead=1)
                mask = np.asarray(True) if where is None else self.evaluate(where, point)
                if np.any(mask):
                    places = [np.array(self.evaluate(e, point), np.int64) for e in at]
                    new = [np.array(self.evaluate(v, point)) for v in values]  # copies: all are read before any write
                    self._write(stage, places, new, mask)

    def _write(self, stage: Stage, at: list[Array], values: list[Array], mask: Array) -> None:
        buffer = self.grow(stage, at)
        rank = len(buffer.box)
        where = tuple(
            (i - first).reshape((1,) * (rank - i.ndim) + i.shape)
            for i, (first, _) in reversed(list(zip(at, buffer.box, strict=True)))
        )
        for array, value in zip(buffer.arrays, values, strict=True):
            array[where] = value if np.all(mask) else np.where(mask, value, array[where])

    def grow(self, stage: Stage, at: list[Array]) -> Buffer:
        """Make room for the points `at` in the middle of an update: no update has touched what is new."""
        old = self.buffers[stage.name]
        box = hull(old.box, tuple((int(np.min(i)), int(np.max(i))) for i in at))
        if box != old.box:
            new = self._pure(stage, box)
            window = tuple(
                slice(first - low, last - low + 1)
                for (first, last), (low, _) in reversed(list(zip(old.box, box, strict=True)))
            )
            for wide, narrow in zip(new.arrays, old.arrays, strict=True):
                wide[window] = narrow
            self.buffers[stage.name] = new
        return self.buffers[stage.name]
