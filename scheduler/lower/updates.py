"""The updates of a stage: loops over its free dims and the update's domain, in the order that the schedule says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.analysis.bounds import Box
from scheduler.analysis.dependence import default_order
from scheduler.lang.expr import Select
from scheduler.lang.pipeline import Stage, Update
from scheduler.lower.builder import Builder
from scheduler.lower.evaluate import Evaluator, Sources
from scheduler.lower.memory import load, store
from scheduler.lower.nest import Body, Nest, run
from scheduler.lower.program import Buffer, Comment, If, Lane, Value
from scheduler.schedule import UpdateLoops


def run_updates(
    b: Builder,
    sources: Sources,
    stage: Stage,
    buffers: tuple[Buffer, ...],
    schedules: tuple[UpdateLoops, ...],
    box: Box,
) -> None:
    """Emits the updates of `stage` on `box`, one after the other; without `schedules` as they are defined.

    *Legal when* the values of `box` have been computed and `box` is settled: it holds everything that the updates
    write and read of the stage.
    """
    for n, update in enumerate(stage.updates):
        loops = schedules[n] if schedules else UpdateLoops(default_order(stage, update))
        b.emit(Comment(f"update {n} of {stage.name}: {', '.join(reversed(loops.loops)) or 'once'}"))
        bounds = dict(zip(stage.dims, box, strict=True))
        outside = Evaluator(b, sources, None)
        frame = outside.frame({})
        for r in update.domain:
            lo = outside.lane(r.lo, frame).base
            bounds[r.name] = (lo, lo + outside.lane(r.extent, frame).base - 1)
        nest = Nest(
            f"{stage.name}:{n}",
            _body(b, stage, buffers, update),
            bounds,
            loops.loops,
            loops.vector,
            parallel=loops.parallel,
            own=stage.name,
            once=True,
        )
        run(b, sources, nest)


def _body(b: Builder, stage: Stage, buffers: tuple[Buffer, ...], update: Update) -> Body:
    """All values are computed before the first is stored. A condition that differs from lane to lane chooses between
    the new value and the old one: lanes write different places, so that storing an old value back is harmless."""

    def body(evaluator: Evaluator, envs: Sequence[Mapping[str, Lane]]) -> None:
        (env,) = envs
        frame = evaluator.frame(env)
        condition = None if update.where is None else evaluator.value(update.where, frame)
        if condition is None or condition.literal is not None:
            if condition is None or condition.literal:
                write(evaluator, env, None)
        elif condition.lanes > 1:
            write(evaluator, env, condition)
        else:
            with b.condition() as inside:
                write(evaluator, env, None)
            b.emit(If((), tuple(inside), condition))

    def write(evaluator: Evaluator, env: Mapping[str, Lane], chosen: Value | None) -> None:
        frame = evaluator.frame(env)
        at = tuple(evaluator.lane(i, frame) for i in update.at)
        values = [evaluator.value(v, frame) for v in update.values]
        if chosen is not None:
            assert update.where is not None
            old = [load(b, buffer, at, buffer.type, True, b.depth) for buffer in buffers]
            values = [
                evaluator.op("select", (chosen, new, kept), Select(update.where, e, e, e.type))
                for new, kept, e in zip(values, old, update.values, strict=True)
            ]
        for buffer, value in zip(buffers, values, strict=True):
            store(b, buffer, at, value)

    return body
