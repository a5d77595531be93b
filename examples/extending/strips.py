"""A rule: strips of rows for threads. Strategies have it by its name, in Python and in documents, as any other."""

from __future__ import annotations

from tilesmith.scheduler.strategies.registry import Example, rule
from tilesmith.scheduler.strategies.state import State
from tilesmith.scheduler.strategies.steps.arguments import Parts
from tilesmith.scheduler.strategies.steps.loops import NO_GROUP, parallel, tile


@rule("strips", Example("blur", "[{at: {stage: blur_y, do: {strips: {per_thread: 2}}}}]"))
def strips(state: State, stage: str, per_thread: Parts = 4) -> State | str:
    """Strips of whole rows, so many for each thread of the machine, which threads take.

        for y:                  parallel for y.outer in strips:
          for x:          ->      for y.inner:
            f(x, y) = ...           for x:
                                      f(x, y) = ...

    Of the output of a loop nest that has an estimate of its extent and a row for every strip.
    """
    if state.group(stage) is None:
        return NO_GROUP
    along = state.definition(stage).storage[-1]  # the dim that is slowest in memory
    extent = state.facts.stages[stage].extent(along)
    count = per_thread * state.platform.threads
    if extent < count:
        return f"it has {extent} along '{along}', and {count} strips are asked for: take fewer for each thread"
    tiled = tile.function(state, stage, {along: -(-extent // count)})
    return tiled if isinstance(tiled, str) else parallel.function(tiled, stage)
