"""The passes that leave a pipeline in normal form, as rules. A strategy begins with all of them, so that they are in
its
trace; later they fit where another rule has left something for them."""

from __future__ import annotations

from tilesmith.scheduler.rewrites.passes import NORMALIZATION
from tilesmith.scheduler.strategies.registry import Example, rule
from tilesmith.scheduler.strategies.state import State

_PASSES = {p.name: p for p in NORMALIZATION}


def _run(state: State, name: str) -> State | str:
    after = _PASSES[name].run(state.plan)
    return state.with_plan(after) if after is not state.plan else "the pipeline has this form already"


@rule("lower_boundaries", Example("sobel", "[]"), place="pipeline")
def lower_boundaries(state: State, stage: str | None) -> State | str:
    """Boundary conditions as arithmetic: what an image or a stage is beyond its edge.

        input: boundary repeat_edge; f(x) = input(x - 1)
          ->
        f(x) = input(clamp(x - 1, 0, width - 1))

    An index that is arithmetic is analysed like any other.
    """
    return _run(state, "lower-boundaries")


@rule("fold_updates", Example("nl_means", "[]"), exactness="rounding", place="pipeline")
def fold_updates(state: State, stage: str | None) -> State | str:
    """Updates that an expression can say, as part of the value.

        f(x) = 0; f(x) += g(x, r) for r in 3     ->     f(x) = sum(g(x, r) for r in 3)

    A stage without updates may be inlined, kept in registers, and slid. In the same order of additions where the
    schedule is strict.
    """
    return _run(state, "fold-updates")


@rule("order_reductions", Example(
    """
    format: 1
    name: ordered
    inputs: [{name: input, type: int32, dims: [x, y]}]
    stages: [{name: total, dims: [], value: "sum(input(i, j) for i in range(4096) for j in range(4096))"}]
    outputs: [total]
    estimates: {total: []}
    """, "[]"), exactness="rounding",
    place="pipeline")  # fmt: skip
def order_reductions(state: State, stage: str | None) -> State | str:
    """Loops of long reductions, along memory.

        sum of g(i, j) for j, for i      ->      sum of g(i, j) for i, for j

    Where the result does not depend on the order: floats keep theirs where the schedule is strict.
    """
    return _run(state, "order-reductions")


@rule("specialize_scans", Example("max_filter", "[]"), exactness="rounding", place="pipeline")
def specialize_scans(state: State, stage: str | None) -> State | str:
    """A scan over a few levels, as a stage for each.

        f(x, t) = max(f(x, t - 1), f(x + s(t), t - 1)) for t in 3
          ->
        f_1(x) = max(f_0(x), f_0(x + 1)); f_2(x) = max(f_1(x), f_1(x + 2))

    Every reader says which level it reads.
    """
    return _run(state, "specialize-scans")


@rule("eliminate_symmetric_pairs", Example("nl_means", "[]"), exactness="rounding", place="pipeline")
def eliminate_symmetric_pairs(state: State, stage: str | None) -> State | str:
    """Half of a stage that is the same from either end of a pair of points, read from both.

        sum of d(x, dx) for dx in -3..3, d(x, dx) == d(x + dx, -dx)
          ->
        sum of d(x, dx) + d(x - dx, dx) for dx in 0..3

    The value of a pair of points does not depend on which comes first. Floats are added up in another order, which a
    strict schedule does not allow.
    """
    return _run(state, "eliminate-symmetric-pairs")


@rule("hoist_parameters", Example("lens_blur", "[]"), place="pipeline")
def hoist_parameters(state: State, stage: str | None) -> State | str:
    """Integers that follow from params by way of floats, as params with a value: worked out once a call.

        f(x) = g(x + int32(scale * 2.5))     ->     s = int32(scale * 2.5); f(x) = g(x + s)

    Bounds see through integers alone, and a param is a symbol of theirs.
    """
    return _run(state, "hoist-parameters")


@rule("propagate_boundaries", Example("interpolate", "[]"), place="pipeline")
def propagate_boundaries(state: State, stage: str | None) -> State | str:
    """A place far beyond the edge of a stage, read as the last one that differs from those beyond it.

        g(x) = input(clamp(x, 0, w - 1)); f(x) = g(2 * x)
          ->
        f(x) = g(clamp(2 * x, 0, w - 1))

    Beyond that place the values repeat; a stage is computed on little more than the image.
    """
    return _run(state, "propagate-boundaries")


@rule("factor_exponentials", Example(
    """
    format: 1
    name: factored
    inputs: [{name: input, type: float32, dims: [x, y]}]
    stages:
    - name: f
      dims: [x, y]
      value: "sum(input(x + i, y + j) * exp(-float32(i * i + j * j) / 8.0) for i in range(-4, 5) for j in range(-4, 5))"
    outputs: [f]
    estimates: {f: [[0, 4096], [0, 4096]]}
    """, "[]"), exactness="rounding", place="pipeline")  # fmt: skip
def factor_exponentials(state: State, stage: str | None) -> State | str:
    """Weights that are exponentials of a sum over the loops of a window, as products of one a loop.

        f(x, y) = sum(g(x + i, y + j) * exp(-i * i - j * j) for i for j)
          ->
        f(x, y) = sum(g(x + i, y + j) * (exp(-i * i) * exp(-j * j)) for i for j)

    Where the window is separable by that, so that it may be computed in two steps; not where the schedule is strict.
    """
    return _run(state, "factor-exponentials")


@rule("distribute_scatters", Example(
    """
    format: 1
    name: distributed
    inputs: [{name: u, type: float32, dims: [x]}, {name: v, type: float32, dims: [x]}]
    stages:
      - name: votes
        dims: [k]
        value: "0"
        updates:
          - domain: {r: [0, 4096]}
            at: ["int32(atan2(v(r), u(r)) * 2.0) % 12"]
            value: "votes(int32(atan2(v(r), u(r)) * 2.0) % 12) + 1"
    outputs: [votes]
    estimates: {votes: [[0, 12]]}
    """, "[]"), place="pipeline")  # fmt: skip
def distribute_scatters(state: State, stage: str | None) -> State | str:
    """Functions that an update takes before data says where it writes, as a stage.

        for r: h(int32(atan2(v(r), u(r)))) += 1
          ->
        g(r) = atan2(v(r), u(r)); for r: h(int32(g(r))) += 1

    Such an update goes point by point, and functions are many times faster in vectors.
    """
    return _run(state, "distribute-scatters")


@rule("tabulate_weights", Example(
    """
    format: 1
    name: tabulated
    inputs: [{name: input, type: float32, dims: [x]}]
    stages: [{name: f, dims: [x], value: "sum(input(x + i) * exp(-float32(i * i) / 99.0) for i in range(99))"}]
    outputs: [f]
    estimates: {f: [[0, 4096]]}
    """, "[]"), place="pipeline")  # fmt: skip
def tabulate_weights(state: State, stage: str | None) -> State | str:
    """Weights that functions are needed for, as a stage: a table, computed once.

        f(x) = sum(g(x + i) * exp(-i * i) for i in 99)
          ->
        w(i) = exp(-i * i); f(x) = sum(g(x + i) * w(i) for i in 99)

    What reads no data and depends on some of the loops around it only is the same for all iterations of the others.
    """
    return _run(state, "tabulate-weights")


@rule("narrow_integers", Example(
    """
    format: 1
    name: narrowed
    inputs: [{name: input, type: uint8, dims: [x]}]
    stages: [{name: f, dims: [x], value: "uint8((int32(input(x)) + int32(input(x + 1)) + 1) // 2)"}]
    outputs: [f]
    estimates: {f: [[0, 4096]]}
    """, "[]"), place="pipeline")  # fmt: skip
def narrow_integers(state: State, stage: str | None) -> State | str:
    """Integers in the narrowest type that their bounds allow, and so stages that are not outputs.

        f(x) = int32(g(x)) + int32(g(x + 1)), where g is uint8     ->     f(x) = int16(g(x)) + int16(g(x + 1))

    Registers and caches hold twice as many elements of half the size.
    """
    return _run(state, "narrow-integers")


@rule("interleave_channels", Example(
    """
    format: 1
    name: soft
    inputs: [{name: input, type: uint8, dims: [x, y, c], storage: [c, x, y]}]
    stages:
      - {name: f, dims: [x, y, c], value: "uint16(input(x, y, c)) + uint16(input(x + 1, y, c))"}
      - {name: g, dims: [x, y, c], storage: [c, x, y], value: "uint8((f(x, y, c) + f(x, y + 1, c)) // 4)"}
    outputs: [g]
    estimates: {g: [[0, 4096], [0, 64], [0, 3]]}
    """, "[]"), place="pipeline")  # fmt: skip
def interleave_channels(state: State, stage: str | None) -> State | str:
    """Stages between interleaved images, interleaved like these, where all of them compute all channels alike.

        f(x, y, c) = g(x, y, c) + g(x + 1, y, c), planes     ->     the same, its channels side by side

    Vectors along all elements of a row are not taken apart into channels.
    """
    return _run(state, "interleave-channels")
