"""Inline reductions, compiled: in vectors and at edges, long and short, of one loop for all that is asked of them,
and over nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pytest
from support.calls import call
from support.machines import here, machine
from support.native import build, source_of
from support.shipped import assert_right

from benchmarks.problem import at_regions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.loop.program import Accumulator, If, Loop, PeeledLoop
from tilesmith.scheduler.ir.loop.traversal import walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.lowering import lower
from tilesmith.scheduler.rewrites.passes import rewrite

BYTES = {"name": "bytes", "type": "uint8", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}
REALS = {"name": "reals", "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}
PARAMS = [{"name": n, "type": "int32", "min": -9, "max": 40, "default": 3} for n in "nm"]


def pipeline(out: object, **stages: object) -> Pipeline:
    named = [{"name": n, "dims": ["x", "y"], "value": v} for n, v in (*stages.items(), ("out", out))]
    document = {"format": 1, "name": "reductions", "inputs": [BYTES, REALS], "params": PARAMS, "stages": named}
    return load(document | {"outputs": ["out"], "estimates": {"out": [[0, 64], [0, 8]]}})


def scheduled(of: Pipeline, strict: bool = False) -> Schedule:
    """One group, in vectors; everything else is inline."""
    placements = tuple(Placement(s.name, INLINE, INLINE) for s in of.stages if s.name != "out")
    groups = (Group("out", ("x.inner", "y.inner"), (), "y.inner", Vector("x", 8), (), placements),)
    return Schedule("reductions", "hand", groups, strict)


def judge(of: Pipeline, strict: bool = False, tolerance: float = 0, **params: int) -> None:
    """The rows are shorter than a vector, a bit longer, and much longer."""
    chosen = scheduled(of, strict)
    check(rewrite(of, chosen))
    source = source_of(of, chosen, here())
    library = build(source, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"))
    rng = np.random.default_rng(1)
    bytes_ = Image(rng.integers(0, 256, (9, 70), dtype=np.uint8), (-1, -1))
    inputs = {"bytes": bytes_, "reals": Image(rng.random((9, 70), dtype=np.float32) - np.float32(0.5), (-1, -1))}
    for region in (((0, 3), (0, 2)), ((-7, 13), (1, 2)), ((0, 64), (0, 3))):
        expected = interpret(of, inputs, params, {"out": region})["out"]
        status, got = call(library, source, of, inputs, params, {"out": region})
        assert status == 0
        for a, b in zip(got["out"], expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def loops_over(of: Pipeline, variable: str) -> list[Loop]:
    program = lower(rewrite(of, scheduled(of)), here())
    return [s for s in walk(program.body) if isinstance(s, Loop) and s.var.rpartition("_")[0] == variable]


def copies() -> int:
    """The number of copies of the code of a point: in vectors, and at edges."""
    return len(loops_over(pipeline("sum(int32(bytes(x + r, y)) for r in range(-40, 41))"), "r"))


def accumulators(of: Pipeline) -> int:
    """The number of accumulators that are started in all of the program."""
    return sum(isinstance(s, Accumulator) for s in walk(lower(rewrite(of, scheduled(of)), here()).body))


DOMAINS = {"short": "for r in range(-2, 5)", "long": "for r in range(-40, 41)", "run time": "for r in range(m, m + n)"}


def of_each(ops: Iterable[str], *conditions: str) -> list[tuple[str, str, str]]:
    """Every operation over every domain; conditions take turns, so that each is with each operation and each domain."""
    return [(op, d, conditions[(k + j) % len(conditions)]) for k, op in enumerate(ops) for j, d in enumerate(DOMAINS)]


@pytest.mark.parametrize(
    ("op", "domain", "where"), of_each(("sum", "product", "min", "max"), "", " if bytes(x + r, y) > 90")
)
def test_arithmetic(op: str, domain: str, where: str) -> None:
    terms = f"int32(bytes(x + r, y)) * 2 + (r | 1) {DOMAINS[domain]}{where}"
    judge(pipeline(f"{op}({terms})"), n=17, m=-3)


@pytest.mark.parametrize(("op", "domain", "where"), of_each(("any", "all"), "", " if bytes(x + r, y) != 7"))
def test_bools(op: str, domain: str, where: str) -> None:
    value = f"{op}(bytes(x + r, y) > 100 {DOMAINS[domain]}{where})"
    judge(pipeline(f"int32({value}) + 2 * int32({op}(bytes(x, y) > r * 20 {DOMAINS[domain]}))"), n=11, m=-3)


@pytest.mark.parametrize(("op", "domain", "where"), of_each(("argmin", "argmax"), "", " if (r + s + x) % 3 != 0"))
def test_arguments(op: str, domain: str, where: str) -> None:
    """Ties are many: the first one counts, in vectors and at edges."""
    terms = f"bytes(x + r, y + s) // 64 {DOMAINS[domain]} for s in range(3){where}"
    judge(pipeline(f"{op}({terms})"), n=17, m=-3)


@pytest.mark.parametrize(
    "value",
    [
        "sum(int32(bytes(x + r, y)) for r in range(90))",
        "max(int32(bytes(x - r, y)) - r for r in range(90))",
        "sum(int32(bytes(x + r, y + s)) * r for s in range(3) for r in range(90))",
        "sum(int32(bytes(x + r, y + s)) + s for s in range(70) for r in range(90))",
        "argmin(int32(bytes(x - r, y)) ^ 90 for r in range(90))[0]",
    ],
)
def test_what_is_reduced_goes_on_where_nothing_is_clamped(value: str) -> None:
    """The loop at whose ends lanes or points are clamped, and that between them, take up one after the other what is
    there."""
    of = pipeline(value)
    peeled = any(isinstance(s, PeeledLoop) for s in walk(lower(rewrite(of, scheduled(of)), here()).body))
    assert peeled or re.search(r"\br_\d+_from\b", source_of(of, scheduled(of), here()).code)
    judge(of)


@pytest.mark.parametrize("domain", DOMAINS)
def test_strict_floats_are_added_in_the_order_written(domain: str) -> None:
    terms = f"reals(x + r, y + s) * reals(x - s, y) {DOMAINS[domain]} for s in range(-1, 2)"
    judge(pipeline(f"sum({terms}) + max({terms})"), strict=True, n=17, m=-3)
    judge(pipeline(f"sum({terms}) + max({terms})"), tolerance=1e-5, n=17, m=-3)


def test_extremes_of_floats_are_joined_in_chains() -> None:
    """Unless the order matters: the extreme of several waits for the one before it."""
    of = pipeline("max(reals(x + r, y) for r in range(-9, 10)) - min(reals(x, y + r) for r in range(-10, 9))")
    for strict, chains in ((False, 4), (True, 1)):
        judge(of, strict)
        code = source_of(of, scheduled(of, strict), machine()).code
        starts = re.findall(r"\bts_max_f32x8\((?:reals_\d+|LOAD\([^;]*?\)\)|ts_near_f32x8\([^;]*?\)),\s", code)
        assert len(starts) == 2 * chains  # in the middle of a row and at its edges


NOTHING = "for r in range(m, m + n)"
EMPTY = [
    *(f"{op}(int32({of}(x + r, y)) {NOTHING})" for op in ("sum", "product", "min", "max") for of in ("bytes", "reals")),
    *(f"{op}({of}(x + r, y) {NOTHING})" for op in ("min", "max") for of in ("bytes", "reals")),
    *(f"{op}(bytes(x + r, y) > 9 {NOTHING})" for op in ("any", "all")),
]
EMPTY_ARGUMENTS = [
    f"{op}({of}(x + r, y) {loops})[{k}]"
    for op, of, loops in (
        ("argmin", "bytes", f"for s in range(2, 4) {NOTHING}"),
        ("argmax", "reals", f"{NOTHING} for s in range(2, 4)"),
    )
    for k in range(3)
]


@pytest.mark.parametrize("values", [EMPTY, EMPTY_ARGUMENTS], ids=["values", "places"])
def test_nothing_to_reduce(values: list[str]) -> None:
    """Domains that are empty at run time: where a reduction starts is its value."""
    for n in (0, -1, -9, 1):
        judge(pipeline(values), n=n, m=5)


def test_nothing_is_left_by_the_condition() -> None:
    loops = "for r in range(-2, 4) for s in range(9) if bytes(x + r, y) > 255 - s // 9"
    judge(pipeline([f"sum(s + r {loops})", f"min(bytes(x, y + s) {loops})", f"argmax(s {loops})[1]"]))
    judge(pipeline([f"argmin(bytes(x, y) {loops})[{k}]" for k in range(3)]))


def test_one_loop_for_an_argmin_and_its_value() -> None:
    best = "argmin(absd(bytes(x + r, y), bytes(x, y)) for r in range(-40, 41))"
    judge(pipeline(["best(x, y)[0] * 2", "best(x, y)[1]"], best=best))
    of = pipeline("int32(best(x, y)[0]) * 3 + best(x, y)[1]", best=best)
    judge(of)
    assert len(loops_over(of, "r")) == copies()


def test_one_loop_for_all_over_a_domain() -> None:
    """A weighted mean: what both sums need is computed once."""
    weight = "1.0 / (1.0 + abs(reals(x + r, y) - reals(x, y)))"
    loops = "for r in range(-40, 41)"
    of = pipeline(f"sum({weight} * reals(x + r, y) {loops}) / sum({weight} {loops})")
    judge(of, tolerance=1e-4)
    assert len(loops_over(of, "r")) == copies()
    assert accumulators(of) == 2 * copies()
    apart = pipeline(f"sum(reals(x + r, y) {loops}) / sum({weight} for r in range(-40, 42))")
    assert len(loops_over(apart, "r")) == 2 * copies()


def test_terms_of_reductions_inside_are_counted_where_those_of_a_loop_are_written_out() -> None:
    """Else a search for motion has 17 differences of blocks, of 48 terms each, in one iteration."""
    differences = "absd(int32(bytes(x + i + u, y + j + v)), int32(bytes(x + i, y + j)))"
    block = f"sum({differences} for j in range(6) for i in range(8))"
    of = pipeline(f"argmin({block} for v in range(-4, 5) for u in range(-8, 9))[1]")
    assert len(loops_over(of, "u")) == len(loops_over(of, "v")) > 0
    single = pipeline("sum(int32(bytes(x + u, y + v)) for v in range(-4, 5) for u in range(-8, 9))")
    assert len(loops_over(single, "u")) < len(loops_over(single, "v"))
    judge(of)


def test_stages_inside_of_a_reduction_are_counted_once_each() -> None:
    """Each is read twice by the next: one by one they would be looked into a billion times."""
    squares = {f"s{n}": f"s{n - 1}(x, y) * s{n - 1}(x, y)" for n in range(1, 31)}
    of = pipeline("sum(s30(x + i, y) for i in range(100))", s0="reals(x, y)", **squares)
    assert loops_over(of, "i")


def test_a_condition_that_stays_is_asked_outside() -> None:
    """Rows that do not count are not run through."""
    terms = "int32(bytes(x + r, y + s)) for s in range(m, m + 20) for r in range(n)"
    of = pipeline(f"sum({terms} if s % 2 == 0 and n > 2 and bytes(x + r, y) > 9 and s < 3)")
    for n in (1, 5):
        judge(of, n=n, m=-4)
    for loop in loops_over(of, "s"):
        (inside,) = (s for s in loop.body if isinstance(s, If))
        assert any(isinstance(s, Loop | PeeledLoop) for s in inside.body)
    varying = pipeline(f"sum({terms} if x % 2 == 0)")
    judge(varying, n=5, m=-4)


def image(name: str, stages: list[dict[str, object]], out: list[list[int]]) -> Pipeline:
    f = {"name": "f", "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}
    sizes = {"f": [[0, 640], [0, 480]], "out": out}
    document = {"format": 1, "name": name, "inputs": [f], "stages": stages, "outputs": ["out"], "estimates": sizes}
    return load(document)


COLUMNS = image(
    "columns",
    [
        {"name": "tall", "dims": ["x", "y"], "value": "sum(f(x, y + k) for k in range(-8, 9))"},
        {"name": "out", "dims": ["x", "y"], "value": "sum(tall(x + k, y) for k in range(-5, 6)) + f(x, y)"},
    ],
    [[0, 640], [0, 480]],
)
PLANES = image(
    "planes",
    [
        {"name": "tall", "dims": ["x", "y"], "value": "sum(f(x, y + k) for k in range(-8, 9))"},
        {"name": "out", "dims": ["x", "y", "c"], "value": "sum(tall(x + k, y) for k in range(-5, 6)) * float32(c + 1)"},
    ],
    [[0, 640], [0, 480], [0, 3]],
)
BINS = image(
    "bins",
    [
        {
            "name": "out", "dims": ["x", "y", "k"],
            "value": "sum(select(int32(f(8*x + p, 8*y + q) * 9.0) == k, f(8*x + p, 8*y + q), 0.0)"
            " for q in range(8) for p in range(8))",
        }
    ],
    [[0, 80], [0, 60], [0, 9]],
)  # fmt: skip
ROWS_TOGETHER = Group(
    "out", ("y.inner", "x.inner", "x.outer", "y.outer"), (Tile("x", None), Tile("y", 4)), "y.outer", Vector("x", 8),
    ("y",), (Placement("tall", "x.inner", "x.outer", storage="registers", vector=Vector("x", 8)),),
)  # fmt: skip
PLANES_TOGETHER = Group(
    "out", ("c.inner", "x.inner", "y.inner"), (), None, Vector("x", 8), ("c",),
    (Placement("tall", "x.inner", "y.inner", storage="registers", vector=Vector("x", 8)),),
)  # fmt: skip
BINS_TOGETHER = Group("out", ("k.inner", "x.inner", "y.inner"), (), None, Vector("x", 8), ("k",), ())


@pytest.mark.parametrize(
    ("p", "group", "loops", "regions"),
    [
        (COLUMNS, ROWS_TOGETHER, 2, [((0, 37), (0, 7)), ((-3, 9), (2, 1))]),
        (PLANES, PLANES_TOGETHER, 1, [((0, 37), (0, 2), (0, 3)), ((-3, 9), (2, 1), (1, 4))]),
        (BINS, BINS_TOGETHER, 3, [((0, 11), (0, 2), (0, 9)), ((1, 19), (1, 1), (2, 5))]),
    ],
    ids=["rows", "planes", "bins"],
)
def test_terms_that_are_seldom_computed_or_very_many_are_loops(
    p: Pipeline, group: Group, loops: int, regions: list[tuple[tuple[int, int], ...]]
) -> None:
    """Rows that are left of a tile add up in loops, but of another number of planes not what is in registers; 64 terms
    of nine bins are loops over rows of eight; of other bins so are those of vectors and of points, in that over bins.
    """
    source = source_of(p, Schedule(p.name, "by hand", (group,)), machine(vector_bytes=32))
    (seldom,) = re.findall(r"^SELDOM .*?^}", source.code, re.DOTALL | re.MULTILINE)
    assert len(re.findall(r"for \(int64_t [kq]_", seldom)) == loops
    if p is BINS:
        assert max(code.count(" = sum_") for code in source.code.split("for (int64_t q_")[1:]) < 100
    library = build(source)
    for region in regions:
        problem = at_regions(p, {"out": region}, use_estimates=False)
        inputs = {n: Image(a, tuple(lo for lo, _ in problem.input_regions[n])) for n, a in problem.inputs.items()}
        status, got = call(library, source, p, inputs, {}, {"out": region})
        assert status == 0
        assert_right(got, interpret(p, inputs, {}, {"out": region}))
