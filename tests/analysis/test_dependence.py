"""Dependence analysis of updates, held to executing small domains: what is proved holds, and what should be is
proved."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilesmith.scheduler.analysis.dependence import (
    associative,
    combination,
    default_order,
    free_dims,
    independent,
    may_reorder,
    pure_dims,
    written_box,
)
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    InputBound,
    ParamRef,
    Reduce,
    RVar,
    Var,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage, Update
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.ir.pipeline.types import INT32, INT64, UINT8

# Random updates, and what they do, iteration by iteration

DIMS, LOOPS = ("i", "j", "k"), ("r", "s", "t")
RUN_TIME = {("input", "extent"): 3, ("input", "min"): -1}  # bounds that a proof does not know
PARAM = 2
WIDE = 2  # of the free dims, which are endless to a proof: as many points are run


def data(*at: int) -> int:
    """The pixel there: the same every time, and like nothing else."""
    return random.Random(str(at)).randrange(3)


def places(e: Expr, env: Mapping[str, int], memory: Mapping[tuple[int, ...], object]) -> int:
    match e:
        case Const():
            return int(e.value)
        case Var():
            return env[e.name]
        case ParamRef():
            return PARAM
        case InputBound():
            return RUN_TIME[e.input, e.which]
        case Access(name="input"):
            return data(*(places(i, env, memory) for i in e.indices))
        case Access():
            return hash(memory.get(tuple(places(i, env, memory) for i in e.indices), "new")) % 3
        case Cast():
            return places(e.operand, env, memory)
        case Binary():
            a, b = places(e.left, env, memory), places(e.right, env, memory)
            return {"+": a + b, "-": a - b, "*": a * b, "//": a // (b or 1), "%": a % (b or 1)}[e.op]
    raise AssertionError(e)


def reads_of(update: Update, env: Mapping[str, int], memory: Mapping[tuple[int, ...], object]) -> list[tuple[int, ...]]:
    """The places of its own stage that one iteration reads."""
    found = []
    for value in (*update.at, *update.values):
        bodies: Iterable[tuple[Expr, Mapping[str, int]]] = [(value, env)]
        if isinstance(value, Reduce):
            (r,) = value.domain
            low, extent = places(r.lo, env, memory), places(r.extent, env, memory)
            bodies = [(value.body, {**env, r.name: n}) for n in range(low, low + extent)]
        for body, inner in bodies:
            for n in walk(body):
                if isinstance(n, Access) and n.name == "f":
                    found.append(tuple(places(i, inner, memory) for i in n.indices))
    return found


def points(stage: Stage, update: Update, order: tuple[str, ...]) -> list[dict[str, int]]:
    """Every iteration, in `order` (innermost first)."""
    ranges = {d: range(WIDE) for d in free_dims(stage, update)}
    for r in update.domain:
        low, extent = places(r.lo, {}, {}), places(r.extent, {}, {})
        ranges[r.name] = range(low, low + extent)
    loops = [[(name, n) for n in ranges[name]] for name in reversed(order)]
    return [dict(point) for point in itertools.product(*loops)]


def run(
    stage: Stage, update: Update, order: tuple[str, ...], before: Mapping[tuple[int, ...], object] | None = None
) -> dict[tuple[int, ...], object]:
    """The stage after all iterations: every place tells which iteration wrote it last, and what that one had read.
    Places that are not in `before` are new."""
    memory: dict[tuple[int, ...], object] = dict(before or {})
    for env in points(stage, update, order):
        seen = tuple(memory.get(p, "new") for p in reads_of(update, env, memory))
        at = tuple(places(e, env, memory) for e in update.at)
        memory[at] = hash((tuple(sorted(env.items())), seen))
    return memory


def touched(stage: Stage, update: Update, order: tuple[str, ...]) -> list[tuple[dict[str, int], set, set]]:
    """The places that each iteration writes and reads."""
    memory: dict[tuple[int, ...], object] = {}
    return [
        (env, {tuple(places(e, env, memory) for e in update.at)}, set(reads_of(update, env, memory)))
        for env in points(stage, update, order)
    ]


def plus(a: Expr, b: Expr) -> Expr:
    return Binary("+", a, b, INT32)


def number(n: int) -> Const:
    return Const(n, INT32)


@st.composite
def indices(draw: st.DrawFn, names: tuple[str, ...], own: tuple[Expr, ...] = ()) -> Expr:
    """Mostly affine; sometimes a quotient, a pixel, a param, and what the stage holds at `own`."""
    e: Expr = number(draw(st.integers(-2, 2)))
    for name in names:
        if k := draw(st.sampled_from((0, 0, 1, 1, 2, 4, -1))):
            term: Expr = Var(name) if k == 1 else Binary("*", number(k), Var(name), INT32)
            e = plus(e, Cast(Cast(term, INT64), INT32) if draw(st.integers(0, 9)) == 0 else term)
    match draw(st.integers(0, 11 if own else 10)):
        case 0 if names:
            e = Binary(draw(st.sampled_from(("//", "%"))), e, number(draw(st.integers(2, 3))), INT32)
        case 1 if names:
            e = plus(e, Access("input", (Var(draw(st.sampled_from(names))),), 0, UINT8))
        case 2:
            e = plus(e, ParamRef("p", INT32))
        case 3 if names:
            e = plus(e, Binary("*", ParamRef("p", INT32), Var(draw(st.sampled_from(names))), INT32))
        case 4:
            e = plus(e, InputBound("input", "min", "x"))
        case 11:
            e = plus(e, Access("f", own, 0, UINT8))
    return e


@st.composite
def updates(draw: st.DrawFn) -> tuple[Stage, Update]:
    dims, names = DIMS[: draw(st.integers(1, 3))], LOOPS[: draw(st.integers(1, 3))]
    free = {d for d in dims if draw(st.integers(0, 2)) == 0}
    bound = InputBound("input", "extent", "x")
    domain = tuple(
        RVar(n, number(draw(st.integers(-2, 2))), draw(st.sampled_from((number(1), number(2), number(4), bound))))
        for n in names
    )
    own = tuple(Var(d) if d in free else number(0) for d in dims)
    at = tuple(Var(d) if d in free else draw(indices(names, own)) for d in dims)
    values: list[Expr] = [number(0)]
    for _ in range(draw(st.integers(0, 3))):
        looped = draw(st.integers(0, 5)) == 0
        inside = (*names, "q") if looped else names
        place = tuple(
            e
            if d in free or draw(st.booleans())
            else plus(e, number(draw(st.integers(-3, 3))))
            if draw(st.booleans())
            else draw(indices(inside))
            for d, e in zip(dims, at, strict=True)
        )
        read: Expr = Access("f", place, 0, UINT8)
        if looped:
            read = Reduce("sum", read, (RVar("q", number(draw(st.integers(-2, 2))), number(2)),), None, 0, UINT8)
        values.append(read)
    update = Update(domain, None, at, tuple(values))
    return Stage("f", dims, (number(0),), (update,), None, dims), update


@pytest.mark.slow
@settings(max_examples=400, deadline=None, derandomize=True)
@given(updates(), st.randoms(use_true_random=False))
def test_no_proof_is_wrong(case: tuple[Stage, Update], rng: random.Random) -> None:
    stage, update = case
    default = default_order(stage, update)
    expected = run(stage, update, default)
    orders = list(itertools.permutations(default))
    for order in rng.sample(orders, min(4, len(orders))):
        if may_reorder(stage, update, order, strict=True):
            assert run(stage, update, order) == expected, (order, [to_text(e) for e in (*update.at, *update.values)])
    order = rng.choice(orders)
    static = not any(isinstance(n, Access) and n.name == "f" for e in update.at for n in walk(e))
    if not static:  # where it writes depends on when it runs: nothing can be proved with one place alone
        return
    iterations = touched(stage, update, default)
    for n, loop in enumerate(order):
        if independent(stage, update, order, loop):
            for (a, writes, _), (b, also, reads) in itertools.product(iterations, repeat=2):
                if a[loop] != b[loop] and all(a[outer] == b[outer] for outer in order[n + 1 :]):
                    assert not writes & also
                    assert not writes & reads
        together = rng.randrange(2, 4)
        if independent(stage, update, order, loop, together):
            for (a, writes, _), (b, also, reads) in itertools.product(iterations, repeat=2):
                if 0 < abs(a[loop] - b[loop]) < together and all(a[outer] == b[outer] for outer in order[n + 1 :]):
                    assert not writes & also
                    assert not writes & reads


@settings(max_examples=300, deadline=None, derandomize=True)
@given(updates())
@pytest.mark.slow
def test_free_dims_are_always_independent(case: tuple[Stage, Update]) -> None:
    stage, update = case
    order = default_order(stage, update)
    for rotation in range(len(order)):
        turned = order[rotation:] + order[:rotation]
        assert all(independent(stage, update, turned, d) for d in free_dims(stage, update))


@st.composite
def fills(draw: st.DrawFn) -> tuple[Stage, Update]:
    """Updates that write a box, and read neighbours of where they write."""
    names = LOOPS[: draw(st.integers(1, 2))]
    domain = tuple(RVar(n, number(draw(st.integers(-2, 2))), number(draw(st.integers(1, 4)))) for n in names)
    at = tuple(Var(n) if draw(st.booleans()) else plus(Var(n), number(draw(st.integers(-2, 2)))) for n in names)
    free = draw(st.booleans())
    at, dims = ((*at, Var("k")), (*DIMS[: len(names)], "k")) if free else (at, DIMS[: len(names)])
    values: list[Expr] = [number(0)]
    for _ in range(draw(st.integers(0, 2))):
        place = (plus(e, number(draw(st.sampled_from((-1, -1, 0, 0, 1, -3))))) for e in at[: len(names)])
        values.append(Access("f", (*place, *at[len(names) :]), 0, UINT8))
    update = Update(domain, None, at, tuple(values))
    return Stage("f", dims, (number(0),), (update,), None, dims), update


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.one_of(updates(), fills()), st.randoms(use_true_random=False))
@pytest.mark.slow
def test_what_is_written_first_does_not_matter_before(case: tuple[Stage, Update], rng: random.Random) -> None:
    stage, update = case
    default = default_order(stage, update)
    order = tuple(rng.sample(default, len(default)))
    box = written_box(stage, update, order)
    if box is None:
        return
    ranges = []
    for d in stage.dims:
        variable, moved = box.get(d, (RVar(d, number(0), number(WIDE)), 0))
        low, extent = places(variable.lo, {}, {}), places(variable.extent, {}, {})
        ranges.append(range(low + moved, low + moved + extent))
    written = set(itertools.product(*ranges))
    after = run(stage, update, order)
    assert set(after) == written
    assert run(stage, update, order, dict.fromkeys(written, "rubbish")) == after


def test_boxes_that_are_written_are_found() -> None:
    """The test above would pass if nothing were ever proved."""
    counts = {False: 0, True: 0}

    @settings(max_examples=200, deadline=None, derandomize=True, database=None)
    @given(fills())
    def count(case: tuple[Stage, Update]) -> None:
        stage, update = case
        counts[written_box(stage, update, default_order(stage, update)) is not None] += len(update.values) > 1

    count()
    assert all(n >= 30 for n in counts.values()), counts


def test_random_updates_have_proofs_of_all_kinds() -> None:
    """The tests above would pass if nothing were ever proved."""
    counts = dict.fromkeys(itertools.product((False, True), repeat=2), 0)

    @settings(max_examples=200, deadline=None, derandomize=True, database=None)
    @given(updates())
    def count(case: tuple[Stage, Update]) -> None:
        stage, update = case
        order = default_order(stage, update)
        loop = update.domain[0].name
        counts[independent(stage, update, order, loop), may_reorder(stage, update, order[::-1], strict=True)] += 1

    count()
    assert all(n >= 5 for n in counts.values()), counts


# Cases that matter


def stage_of(
    update: dict[str, object],
    *,
    dims: str = "xy",
    value: object = "int32(input(0, 0))",
    storage: str | None = None,
) -> tuple[Stage, Update]:
    """Stage f with one update; `input` is a uint8 image, `k` a small int32 one, `n` a param."""
    f: dict[str, object] = {"name": "f", "dims": list(dims), "value": value, "updates": [update]}
    if storage is not None:
        f["storage"] = list(storage)
    zeros = ", ".join("0" for _ in dims)
    read = f"f({zeros})[0]" if isinstance(value, list) else f"f({zeros})"
    document = {
        "format": 1,
        "name": "test",
        "inputs": [
            {"name": "input", "type": "uint8", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}},
            {"name": "k", "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}},
        ],
        "params": [{"name": "n", "type": "int32", "min": 1, "max": 9, "default": 3}],
        "stages": [f, {"name": "out", "dims": [], "value": f"int32({read})"}],
        "outputs": ["out"],
        "estimates": {"out": []},
    }
    pipeline: Pipeline = load(document)
    stage = pipeline.stage("f")
    return stage, stage.updates[0]


def proved(stage: Stage, update: Update, *order: str) -> str:
    """The loops that are independent in that order."""
    return " ".join(loop for loop in order if independent(stage, update, order, loop))


def test_a_scan_is_independent_across() -> None:
    stage, update = stage_of({"domain": {"r": [1, "input.extent.y - 1"]}, "at": ["x", "r"], "value": "f(x, r - 1) + 1"})
    assert written_box(stage, update, ("r", "x")) == {"y": (update.domain[0], 0)}
    assert free_dims(stage, update) == ("x",)
    assert pure_dims(stage) == {"x"}
    assert default_order(stage, update) == ("r", "x")
    assert proved(stage, update, "r", "x") == "x"
    assert proved(stage, update, "x", "r") == "x"
    assert may_reorder(stage, update, ("x", "r"), strict=True)


@pytest.mark.parametrize("moved", [-8, 8])
def test_neighbours_are_independent_as_far_as_a_recurrence_reaches(moved: int) -> None:
    """An echo: f(r) of f(r - 8)."""
    r = RVar("r", number(8), number(100))
    read = Access("f", (plus(Var("r"), number(moved)),), 0, INT32)
    update = Update((r,), None, (Var("r"),), (read,))
    stage = Stage("f", ("i",), (number(0),), (update,), None, ("i",))
    assert [n for n in (2, 4, 8, 9, 16) if independent(stage, update, ("r",), "r", n)] == [2, 4, 8]
    assert not independent(stage, update, ("r",), "r")


def test_a_histogram_of_each_column_is_independent_across() -> None:
    update: dict[str, object] = {
        "domain": {"r": [0, "input.extent.y"]},
        "at": ["x", "input(x, r)"],
        "value": "f(x, input(x, r)) + 1",
    }
    stage, u = stage_of(update)
    assert proved(stage, u, "r", "x") == "x"
    assert associative(stage, u) == "sum"
    assert may_reorder(stage, u, ("x", "r"), strict=True)


def test_a_histogram_by_rows() -> None:
    """The row is a loop of the domain: it is still the place that is written."""
    domain = {"rx": [0, "input.extent.x"], "ry": [0, "input.extent.y"]}
    update: dict[str, object] = {"domain": domain, "at": ["input(rx, ry)", "ry"], "value": "f(input(rx, ry), ry) + 1"}
    stage, u = stage_of(update)
    assert proved(stage, u, "rx", "ry") == "ry"
    assert proved(stage, u, "ry", "rx") == "ry"
    assert may_reorder(stage, u, ("ry", "rx"), strict=True)


def test_a_scatter_keeps_its_order() -> None:
    domain = {"rx": [0, "input.extent.x"], "ry": [0, "input.extent.y"]}
    stage, u = stage_of({"domain": domain, "at": ["input(rx, ry)", "0"], "value": "rx"})
    assert proved(stage, u, "rx", "ry") == ""
    assert not may_reorder(stage, u, ("ry", "rx"))


def test_doubling_of_maxima() -> None:
    """max_filter: slice t is made of slice t - 1; with t outside, rows go as they like."""
    domain = {"ry": ["-n", "input.extent.y + n"], "t": [1, 4]}
    value = "max(f(x, ry, t - 1), f(x, ry + clamp(1 << (t - 1), 0, 8), t - 1))"
    stage, u = stage_of({"domain": domain, "at": ["x", "ry", "t"], "value": value}, dims="xyz")
    assert proved(stage, u, "ry", "t", "x") == "ry x"
    assert proved(stage, u, "x", "ry", "t") == "x ry"
    assert proved(stage, u, "t", "ry", "x") == "x"
    assert may_reorder(stage, u, ("x", "ry", "t"), strict=True)
    assert not may_reorder(stage, u, ("t", "ry", "x"))
    ry, t = u.domain
    assert written_box(stage, u, ("x", "ry", "t")) == {"y": (ry, 0), "z": (t, 0)}


def test_pointwise_in_place() -> None:
    stage, u = stage_of({"domain": {}, "at": ["x", "y"], "value": "f(x, y) * 2"}, storage="yx")
    assert default_order(stage, u) == ("y", "x")
    assert proved(stage, u, "y", "x") == "y x"
    assert pure_dims(stage) == {"x", "y"}
    assert associative(stage, u) is None or associative(stage, u) == "product"


def test_pointwise_in_place_by_domain() -> None:
    """Loops of the domain that stand where a dim would, shifted and scaled."""
    domain = {"r": [0, "input.extent.x"], "s": [0, 8]}
    value = "f(r + 3, n - 2 * s) * f(r + 3, n - 2 * s)"
    stage, u = stage_of({"domain": domain, "at": ["r + 3", "n - 2 * s"], "value": value})
    assert proved(stage, u, "r", "s") == "r s"
    assert may_reorder(stage, u, ("s", "r"), strict=True)
    assert associative(stage, u) is None


def test_tiles_of_a_dim() -> None:
    """Blocks of 4 do not meet; blocks of 5, 4 apart, do."""
    for width, apart in ((4, True), (5, False)):
        domain = {"s": [0, width], "b": [0, 10]}
        stage, u = stage_of({"domain": domain, "at": ["4 * b + s"], "value": "b"}, dims="x")
        assert proved(stage, u, "s", "b") == ("s b" if apart else "s")
        assert may_reorder(stage, u, ("b", "s"), strict=True) == apart


def test_even_and_odd() -> None:
    domain = {"r": [0, "input.extent.x"]}
    stage, u = stage_of({"domain": domain, "at": ["2 * r"], "value": "f(2 * r + 1) + f(2 * r - 3)"}, dims="x")
    assert proved(stage, u, "r") == "r"
    stage, u = stage_of({"domain": domain, "at": ["2 * r"], "value": "f(2 * r + 1) + f(2 * r - 4)"}, dims="x")
    assert proved(stage, u, "r") == ""


def test_far_apart() -> None:
    """A distance of more than the loop is long."""
    for distance, apart in ((7, False), (8, True)):
        value = f"f(r - {distance})"
        stage, u = stage_of({"domain": {"r": [5, 8]}, "at": ["r"], "value": value}, dims="x")
        assert proved(stage, u, "r") == ("r" if apart else "")


def test_dims_taken_together() -> None:
    """x + y alone says nothing of either loop; with y it does."""
    domain = {"r": [0, "input.extent.x"], "s": [0, "input.extent.y"]}
    stage, u = stage_of({"domain": domain, "at": ["r + s", "s"], "value": "f(r + s, s) + 1"})
    assert proved(stage, u, "s", "r") == "s r"
    stage, u = stage_of({"domain": domain, "at": ["r + s"], "value": "f(r + s) * 3 + 1"}, dims="x")
    assert proved(stage, u, "s", "r") == "s"
    assert not may_reorder(stage, u, ("s", "r"))


def test_a_wavefront_may_not_turn() -> None:
    """f(r, s) of f(r - 1, s) and f(r, s - 1): both orders are right, no loop is independent."""
    domain = {"r": [1, 9], "s": [1, 9]}
    stage, u = stage_of({"domain": domain, "at": ["r", "s"], "value": "f(r - 1, s) + f(r, s - 1)"})
    assert proved(stage, u, "r", "s") == ""
    assert may_reorder(stage, u, ("s", "r"), strict=True)
    stage, u = stage_of({"domain": domain, "at": ["r", "s"], "value": "f(r - 1, s + 1) + 1"})
    assert not may_reorder(stage, u, ("s", "r"))
    assert proved(stage, u, "r", "s") == "r"  # a row before it is held; inside the row nothing is read


def test_matrix_multiplication() -> None:
    update: dict[str, object] = {
        "domain": {"r": [0, "k.extent.x"]},
        "at": ["x", "y"],
        "value": "f(x, y) + k(r, y) * k(x, r)",
    }
    stage, u = stage_of(update, value="0.0")
    assert proved(stage, u, "r", "x", "y") == "x y"
    assert proved(stage, u, "x", "r", "y") == "x y"
    assert may_reorder(stage, u, ("x", "r", "y"), strict=True)
    assert associative(stage, u) == "sum"


def test_a_reduction_of_floats_keeps_its_order_if_strict() -> None:
    domain = {"r": [0, 9], "s": [0, 9]}
    stage, u = stage_of({"domain": domain, "at": ["x", "y"], "value": "f(x, y) + k(x + r, y + s)"}, value="0.0")
    assert may_reorder(stage, u, ("s", "r", "x", "y"))
    assert not may_reorder(stage, u, ("s", "r", "x", "y"), strict=True)
    assert may_reorder(stage, u, ("x", "r", "s", "y"), strict=True)


def test_argmin_in_a_tuple() -> None:
    closer = "input(x + r, y) < f(x, y)[1]"
    value = [f"select({closer}, r, f(x, y)[0])", f"select({closer}, input(x + r, y), f(x, y)[1])"]
    update: dict[str, object] = {"domain": {"r": [-3, 7]}, "at": ["x", "y"], "value": value}
    stage, u = stage_of(update, value=["0", "uint8(255)"])
    assert proved(stage, u, "r", "x", "y") == "x y"
    assert may_reorder(stage, u, ("x", "y", "r"), strict=True)
    assert associative(stage, u) is None


def test_where_counts_as_a_read() -> None:
    update: dict[str, object] = {"domain": {"r": [0, 9]}, "at": ["r"], "value": "r", "where": "f(r + 1) > 0"}
    stage, u = stage_of(update, dims="x")
    assert proved(stage, u, "r") == ""
    update["where"] = "f(r) > 0"
    stage, u = stage_of(update, dims="x")
    assert proved(stage, u, "r") == "r"


def test_a_reduction_that_reads_its_own_stage() -> None:
    domain = {"r": [0, "input.extent.x"], "s": [1, 9]}
    value = "sum(f(r + q, s - 1) for q in range(-2, 3))"
    stage, u = stage_of({"domain": domain, "at": ["r", "s"], "value": value})
    assert proved(stage, u, "r", "s") == "r"
    value = "sum(f(q, s) for q in range(n))"
    stage, u = stage_of({"domain": domain, "at": ["r", "s"], "value": value})
    assert proved(stage, u, "s", "r") == "s"
    assert proved(stage, u, "r", "s") == "s"


@pytest.mark.parametrize(
    ("value", "op"),
    [
        ("f(x) + r", "sum"),
        ("r + f(x)", "sum"),
        ("f(x) - r", "sum"),
        ("r - f(x)", None),
        ("r + f(x) - 3 + n", "sum"),
        ("f(x) + f(x)", None),
        ("f(x) * r", "product"),
        ("f(x) * r + 1", None),
        ("min(f(x), r)", "min"),
        ("max(r, f(x), n)", "max"),
        ("min(max(f(x), 0), r)", None),
        ("f(x) & r", "&"),
        ("f(x) | (r & 3)", "|"),
        ("f(x) ^ r", "^"),
        ("f(x) // r", None),
        ("f(r) + 1", None),
        ("f(x) + r if r > 2 else f(x)", None),
        ("r", None),
    ],
)
def test_operations(value: str, op: str | None) -> None:
    update: dict[str, object] = {"domain": {"r": [0, 9]}, "at": ["x"], "value": value}
    if "x" not in value:
        update["at"] = ["0"]
    if "f(r)" in value:
        update = {"domain": {"r": [0, 9]}, "at": ["0"], "value": value}
    stage, u = stage_of(update, dims="x")
    assert associative(stage, u) == op


def test_parts_of_an_associative_update() -> None:
    update: dict[str, object] = {"domain": {"r": [0, 9]}, "at": ["x"], "value": "r - input(x, r) + f(x) - n"}
    stage, u = stage_of(update, dims="x")
    found = combination(stage, u)
    assert found is not None
    assert [to_text(t) for t in found.terms] == ["r - int32(input(x, r)) - n"] or found.terms


def test_what_reads_the_stage_elsewhere_is_not_associative() -> None:
    for where, value in (("f(0) > 3", "f(r) + 1"), (None, "f(r) + input(f(0) % 3, 0)")):
        update: dict[str, object] = {"domain": {"r": [0, 9]}, "at": ["r"], "value": value}
        if where is not None:
            update["where"] = where
        stage, u = stage_of(update, dims="x")
        assert associative(stage, u) is None


def test_what_another_image_holds_there_is_not_what_is_joined_to() -> None:
    """`k` is read at the place that is written, but is not the stage."""
    domain = {"r": [1, 9], "s": [0, 8]}
    scan, u = stage_of({"domain": domain, "at": ["r", "s"], "value": "k(r, s) + f(r - 1, s + 1)"}, value="0.0")
    assert associative(scan, u) is None
    assert not may_reorder(scan, u, ("s", "r"))
    stage, u = stage_of({"domain": domain, "at": ["r", "s"], "value": "k(r, s) + f(r, s)"}, value="0.0")
    found = combination(stage, u)
    assert found is not None
    assert [to_text(t) for t in found.terms] == ["k(r, s)"]
    stage, u = stage_of({"domain": {}, "at": ["x", "y"], "value": "k(x, y) + k(x, y)"}, value="0.0")
    assert associative(stage, u) is None


def test_tuples_are_associative_in_all_components_or_not_at_all() -> None:
    for values, op in ((["f(x)[0] + r", "f(x)[1] + 1"], "sum"), (["f(x)[0] + r", "max(f(x)[1], r)"], None)):
        update: dict[str, object] = {"domain": {"r": [0, 9]}, "at": ["x"], "value": values}
        assert associative(*stage_of(update, dims="x", value=["0", "0"])) == op
    crossed = {"domain": {"r": [0, 9]}, "at": ["x"], "value": ["f(x)[1] + r", "f(x)[0] + 1"]}
    assert associative(*stage_of(crossed, dims="x", value=["0", "0"])) is None


def test_orders_that_are_none() -> None:
    stage, u = stage_of({"domain": {"r": [0, 9]}, "at": ["x", "y"], "value": "f(x, y) + r"})
    assert not may_reorder(stage, u, ("r", "x"))
    assert not may_reorder(stage, u, ("r", "x", "x"))


def test_unused_functions_of_the_language_are_no_danger() -> None:
    """An index by a function is unknown, but the same where all that it reads is held."""
    domain = {"r": [0, "input.extent.x"], "s": [0, 9]}
    at = ["clamp(s * s, 0, 9)", "r"]
    stage, u = stage_of({"domain": domain, "at": at, "value": "f(clamp(s * s, 0, 9), r) * 3 + 1"})
    assert proved(stage, u, "r", "s") == "r"
    assert proved(stage, u, "s", "r") == "r"
    assert isinstance(u.at[0], Call)
