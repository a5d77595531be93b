"""Reductions: written out or loops, in chains, side by side; values at every length and of every kind."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.lowered import LANES, Lowered, evaluated, pipeline
from support.lowered_values import assert_computes, assert_evaluated_right, program_of
from support.machines import machine
from support.native import source_of

from tilesmith.platforms.core import Core, Registers
from tilesmith.scheduler.features.operations.reduction_loops import has_long_reduction, long_sums
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.index import sym
from tilesmith.scheduler.ir.loop.ops import Call, Copy, FusedProduct, Load
from tilesmith.scheduler.ir.loop.printer import print_body
from tilesmith.scheduler.ir.loop.program import Accumulator, Define, Loop, PeeledLoop
from tilesmith.scheduler.ir.loop.traversal import walk
from tilesmith.scheduler.ir.loop.values import Lane
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Vector
from tilesmith.scheduler.lowering import reductions
from tilesmith.scheduler.lowering.index_vectorization import Frame
from tilesmith.scheduler.lowering.reductions import reduced, together


@pytest.mark.parametrize("inline", [False, True])
def test_points_are_computed_side_by_side(inline: bool) -> None:
    """Also where the reduction is inline in the stage that is computed: a convolution and what is done with it."""
    total = "sum(a(c, x + i, y + j) * w(k, c, i, j) for j in range(3) for i in range(3) for c in range(32))"
    value = "max(o(k, x, y), 0.0)" if inline else f"max({total}, 0.0)"
    stages = [{"name": "o", "dims": ["k", "x", "y"], "value": total}] if inline else []
    pipeline = load(
        {
            "format": 1,
            "name": "conv",
            "inputs": [
                {"name": "a", "type": "float32", "dims": ["c", "x", "y"]},
                {"name": "w", "type": "float32", "dims": ["k", "c", "i", "j"]},
            ],
            "stages": [*stages, {"name": "out", "dims": ["k", "x", "y"], "value": value}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 32], [0, 56], [0, 56]], "w": [[0, 32], [0, 32], [0, 3], [0, 3]]},
        }
    )
    placements = (Placement("o", INLINE, INLINE),) if inline else ()
    group = Group("out", ("k.inner", "x.inner", "y.inner"), (), None, Vector("k", 8), (), placements)
    code = source_of(pipeline, Schedule("conv", "by hand", (group,)), machine(vector_bytes=32)).code
    accumulators = re.findall(r"f32x8 sum_\d+ = ", code)
    assert len(accumulators) >= 8


def test_lanes_of_sums_side_by_side_are_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One trial evaluates a term of each of them, in which what they share is evaluated once."""
    jobs: list[int] = []
    lanes = reductions._lanes
    monkeypatch.setattr(reductions, "_lanes", lambda ev, each: jobs.append(len(each)) or lanes(ev, each))
    test_points_are_computed_side_by_side(inline=False)
    assert max(jobs) >= 4


IMAGE = np.random.default_rng(0).uniform(-2, 2, 400).astype(np.float32)
BYTES = np.random.default_rng(1).integers(0, 256, 400).astype(np.uint8)
KINDS = {
    "sum": "sum(f(x + k) for k in range({n}))",
    "from below 0": "sum(f(x - k) * float32(k) for k in range(-{n}, 0))",
    "product": "product(0.5 + f(x + k) * 0.1 for k in range({n}))",
    "min": "min(f(x + k) * f(x + k + 1) for k in range({n}))",
    "max": "max(f(x + k) - f(x) for k in range({n}))",
    "any": "select(any(f(x + k) > 1.9 for k in range({n})), 1.0, 0.0)",
    "all": "select(all(f(x + k) > -1.9 for k in range({n})), 1.0, 0.0)",
    "where": "sum(f(x + k) for k in range({n}) if f(x + k) > 0)",
    "where it is the same in all lanes": "sum(f(x + k) for k in range({n}) if k % 2 == 0)",
    "where it is the same for all terms": "sum(f(x + k) for k in range({n}) if f(x) > 0 and f(x + k) < 1)",
    "argmax where it is the same for all terms": "max(-9.0, argmax(f(x + k) for k in range({n}) if f(x) > 0)[1])",
    "where no term is": "max(-9.0, max(f(x + k) for k in range({n}) if f(x + k) > 5))",
    "argmin": "float32(argmin(f(x + k) for k in range({n}))[0]) + argmin(f(x + k) for k in range({n}))[1]",
    "argmax where": "float32(argmax(f(x + k) for k in range({n}) if k > 1)[0])",
    "the first of many that are least": "float32(argmin(floor(f(x + k)) for k in range({n}))[0])",
    "two variables": "sum(f(x + 3 * k + j) for k in range({n}) for j in range(2))",
    "one in another": "sum(f(x + k) * max(f(k + j) for j in range(3)) for k in range({n}))",
    "of no lane": "f(x) + sum(f(k) for k in range({n}))",
    "of the image's size": "sum(f(x + k) for k in range(f.extent.x - 400 + {n}))",
    "of nothing": "f(x) + product(f(x + k) for k in range(f.extent.x - 399 - {n}))",
}  # fmt: skip
"""Over `n` terms."""


@pytest.mark.parametrize("lanes", [1, LANES])
@pytest.mark.parametrize("n", [1, 2, 17, 100])
@pytest.mark.parametrize("value", KINDS.values(), ids=KINDS)
def test_every_kind_at_every_length(value: str, n: int, lanes: int) -> None:
    assert_evaluated_right(pipeline(value.format(n=n)), IMAGE, 3 if "-k" not in value else 120, lanes=lanes)


@pytest.mark.parametrize("n", [3, 70])
@pytest.mark.parametrize(
    "value",
    [
        "sum(int32(f(x + k)) * int32(f(x + 2 * k)) for k in range({n}))",
        "sum(f(x + k) for k in range({n}))",
        "max(f(x + k) for k in range({n}) if f(x + k) < 9)",
    ],
)
def test_integers_wrap(value: str, n: int) -> None:
    assert_evaluated_right(pipeline(value.format(n=n), type="uint8"), BYTES, 5)


def test_iterations_that_clamp_nothing_are_a_loop_of_their_own() -> None:
    """Long sums whose vectors clamp lane by lane: all but the last few iterations of an autocorrelation."""
    at = "f(clamp(x + k, 0, f.extent.x - 1))"
    text = evaluated(pipeline(f"sum({at} * f(k) for k in range(f.extent.x))"), exact=True).text()
    ends, middle = text.split("middle")
    assert "clamped" in ends
    assert "clamped" not in middle
    assert "peeled" not in evaluated(pipeline(f"sum({at} for k in range(63))"), exact=True).text()


@pytest.mark.parametrize("kind", ["constant", "repeat_edge", "mirror_image"])
@pytest.mark.parametrize(
    "value",
    [
        "sum(f(k) * f(x + k) for k in range(f.extent.x))",
        "float32(argmin(f(x - k) * f(k - 3) for k in range(f.extent.x))[0])",
        "sum(f(2 * x - k) for k in range(f.extent.x)) + max(f(x + 3 * k) for k in range(70))",
    ],
)
def test_long_reductions_across_a_boundary(value: str, kind: str) -> None:
    boundary = {"kind": kind} | ({"value": 0.5} if kind == "constant" else {})
    document = {
        "format": 1, "name": "p", "inputs": [{"name": "f", "type": "float32", "dims": ["x"], "boundary": boundary}],
        "stages": [{"name": "out", "dims": ["x"], "value": value}], "outputs": ["out"], "estimates": {"out": [[0, 64]]},
    }  # fmt: skip
    p = load(document)
    program = program_of(p, [Group("out", ("x.inner",), (), None, Vector("x", 16), (), ())])
    assert any(isinstance(s, PeeledLoop) for s in walk(program.body)) or kind == "mirror_image"
    assert_computes(p, program, [((-9, 60),), ((70, 40),)], sizes={"f": ((0, 90),)})


def defined(p: Pipeline, strict: bool = False, registers: Registers | None = None) -> Lowered:
    """The output, evaluated by a builder that is strict or not, of a machine whose registers are shared out so."""
    lowered = Lowered(p)
    lowered.builder.strict = strict
    lowered.builder.core = Core(registers=registers or Registers())
    lowered.evaluator.value(lowered.stages["out"].values[0], lowered.frame)
    return lowered


def longest_chain(lowered: Lowered) -> int:
    """How many extremes wait for each other, at most."""
    length: dict[str, int] = {}
    for s in lowered.inside:
        if isinstance(s, Define) and isinstance(s.op, Call):
            length[s.result.name] = 1 + max(length.get(a.name, 0) for a in s.op.args)
    return max(length.values())


def test_long_extremes_of_floats_are_four_chains() -> None:
    p = pipeline("max(f(x + k) for k in range(32))")
    assert longest_chain(defined(p)) == 32 // 4 - 1 + 2
    assert longest_chain(defined(p, strict=True)) == 32 - 1
    assert longest_chain(defined(p, registers=Registers(extremes=8))) == 32 // 8 - 1 + 3
    assert longest_chain(defined(pipeline("max(f(x + k) for k in range(15))"))) == 15 - 1
    assert longest_chain(defined(pipeline("max(f(x + k) for k in range(32))", type="int16"))) == 32 - 1


@pytest.mark.parametrize(
    ("value", "lanes", "loops"),
    [
        ("sum(f(x + k) for k in range(64))", LANES, 0),
        ("sum(f(x + k) for k in range(65))", LANES, 1),
        ("sum(f(x + k) for k in range(9))", 1, 0),
        ("sum(f(x + k) for k in range(10))", 1, 1),
        ("sum(f(x + k + j) for k in range(20) for j in range(8))", LANES, 1),
        ("sum(f(x + k + j) for k in range(20) for j in range(8))", 1, 2),
        ("sum(f(x + k + j) for k in range(20) for j in range(33))", LANES, 2),
        ("sum(exp(f(x + k + j)) for k in range(8) for j in range(8))", LANES, 0),
        ("sum(pow(f(x + k + j), tanh(f(x))) for k in range(8) for j in range(8))", LANES, 1),
        ("sum(f(x) * max(f(k + j) for j in range(64)) for k in range(64))", LANES, 0),
        ("sum(f(x) * max(f(k + j + i) for j in range(8) for i in range(8)) for k in range(65))", LANES, 1),
        ("sum(max(f(x + k + j) for j in range(65)) for k in range(9))", LANES, 9),
        ("sum(max(f(x + k + j) for j in range(65)) for k in range(10))", LANES, 2),
    ],
)  # fmt: skip
def test_few_terms_are_written_out_and_many_are_loops(value: str, lanes: int, loops: int) -> None:
    lowered = evaluated(pipeline(value), lanes)
    assert sum(isinstance(s, Loop) for s in walk(tuple(lowered.inside))) == loops


@pytest.mark.parametrize(
    ("value", "long"),
    [
        ("sum(f(k, x) * f(y, k) for k in range(8))", 0),
        ("sum(f(k, x) * f(y, k) for k in range(9))", 1),
        ("f(x, y) * max(sum(f(k, x) * f(k, y) for k in range(16)), 0)", 1),
        ("sum(f(x + k, y) * f(k, 0) for k in range(64))", 0),  # a filter: its taps are the same for all points
        ("sum(f(x + k, y) * f(k, x) for k in range(64))", 0),  # a filter of x: every point of a row has it
        ("sum(f(x + k, y) * f(y, j) for k in range(4) for j in range(4))", 0),
    ],
)  # fmt: skip
def test_products_of_matrices_are_loops_from_nine_terms_on(value: str, long: int) -> None:
    (out,) = pipeline(value, dims=("x", "y")).stages
    assert long_sums(out, {}, {}) == long


def test_stages_with_long_reductions_are_found_through_what_they_inline() -> None:
    p = pipeline("g(x) + g(x + 1)", ("g", "sum(f(x + k) for k in range(65))"))
    g, out = p.stages
    assert has_long_reduction(g, {})
    assert has_long_reduction(out, {"g": g})
    assert not has_long_reduction(out, {})
    assert long_sums(g, {}, {}) == 1
    assert long_sums(out, {"g": g}, {"g": 4.0}) == 4
    assert not has_long_reduction(pipeline("sum(f(x + k) for k in range(64))").stages[0], {})


def at(lowered: Lowered, moved: int) -> Frame:
    return lowered.evaluator.frame({"x": Lane(sym("x") + moved, tuple(range(LANES)))})


@pytest.mark.parametrize(("n", "loops"), [(100, 1), (20, 0)])
def test_points_side_by_side_share_their_loop_and_their_loads(n: int, loops: int) -> None:
    lowered = Lowered(pipeline(f"sum(f(x + k) * f(k) for k in range({n}))"))
    ev, value = lowered.evaluator, lowered.stages["out"].values[0]
    frames = [at(lowered, 0), at(lowered, 1)]
    together(ev, [value], frames)
    statements = len(lowered.inside)
    found = [reduced(ev, value, frame) for frame in frames]
    assert found[0] != found[1]
    assert len(lowered.inside) == statements, "both are done already"
    everything = list(walk(tuple(lowered.inside)))
    assert sum(isinstance(s, Loop) for s in everything) == loops
    assert sum(isinstance(s, Accumulator) for s in everything) == 2 * loops
    weights = [line for line in lowered.text().splitlines() if "load f[k" in line and "x" not in line.split("]")[0]]
    assert len(weights) <= 1


def test_chains_of_inline_stages_are_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 16 reads the one before it three times, as the steps of a maximum do that looks after NaN."""
    chain = [("m0", "max(f(x + k) for k in range(20))")]
    for n in range(1, 17):
        before = f"m{n - 1}(x)"
        chain.append((f"m{n}", f"select({before} > f(x) or {before} != {before}, {before}, f(x))"))
    lowered, looked = Lowered(pipeline("m16(x)", *chain)), list[str]()
    ev = lowered.evaluator
    monkeypatch.setattr(
        ev, "inlined_frame", lambda e, frame: (looked.append(e.name), type(ev).inlined_frame(ev, e, frame))[1]
    )
    together(ev, lowered.stages["out"].values, [at(lowered, 0), at(lowered, 1)])
    assert set(looked) == {name for name, _ in chain}
    assert len(looked) < 200


@pytest.mark.parametrize(("reductions", "loops"), [(4, 1), (5, 5)])
def test_reductions_over_one_domain_share_its_loop_while_registers_last(reductions: int, loops: int) -> None:
    """Two points of each: eight accumulators are in one loop, of ten each reduction has its own."""
    terms = [
        f"{op}(f(x + k) * {n}.0 for k in range(100))" for n, op in enumerate(("sum", "min", "max", "sum", "product"))
    ]
    lowered = Lowered(pipeline(" + ".join(terms[:reductions])))
    together(lowered.evaluator, lowered.stages["out"].values, [at(lowered, 0), at(lowered, 1)])
    assert sum(isinstance(s, Loop) for s in lowered.inside) == loops


@pytest.mark.parametrize(("points", "crowded"), [(8, False), (9, True)])
def test_sums_without_room_for_as_many_registers_again_are_computed_in_order(points: int, crowded: bool) -> None:
    """Products are added as they are made, and what several sums share is held, on a machine of 16 registers."""
    lowered = Lowered(pipeline("sum(f(x + i + j) * f(i + 2 * j) for i in range(90) for j in range(3))"))
    together(lowered.evaluator, lowered.stages["out"].values, [at(lowered, n) for n in range(points)])
    defined = [s for s in walk(tuple(lowered.inside)) if isinstance(s, Define)]
    fused = [s for s in defined if isinstance(s.op, FusedProduct)]
    assert len(fused) == (3 * points if crowded else 0)
    held = {s.op.a.name for s in defined if isinstance(s.op, Copy) and s.op.held}
    loaded = [s.result for s in defined if isinstance(s.op, Load) and s.result.lanes > 1]
    assert {v.name for v in loaded} >= held
    assert len(held) == (points if crowded else 0), "all but the first and the last of those that the points read"
    assert len(loaded) == points + 2


def test_scalars_have_room() -> None:
    """Also where a machine has no vectors."""
    value = "sum(a(k) * w(k, c) for k in range(100))"
    pipeline = load(
        {
            "format": 1,
            "name": "scalars",
            "inputs": [
                {"name": "a", "type": "float32", "dims": ["k"]},
                {"name": "w", "type": "float32", "dims": ["k", "c"]},
            ],
            "stages": [{"name": "out", "dims": ["c"], "value": value}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 12]]},
        }
    )
    group = Group("out", ("c.inner",), (), None, None, ("c",), ())
    code = source_of(pipeline, Schedule("scalars", "by hand", (group,)), machine(vector_bytes=0)).code
    assert "ts_fma" not in code


def test_sums_without_room_keep_products_apart_if_strict() -> None:
    """They are rounded as they are written."""
    lowered = Lowered(pipeline("sum(f(x + i + j) * f(i + 2 * j) for i in range(90) for j in range(3))"))
    lowered.evaluator.builder.strict = True
    together(lowered.evaluator, lowered.stages["out"].values, [at(lowered, n) for n in range(9)])
    defined = [s for s in walk(tuple(lowered.inside)) if isinstance(s, Define)]
    assert not any(isinstance(s.op, FusedProduct) for s in defined)


def test_a_single_point_has_nothing_beside_it() -> None:
    lowered = Lowered(pipeline("sum(f(x + k) for k in range(100))"))
    together(lowered.evaluator, lowered.stages["out"].values, [lowered.frame])
    assert print_body(tuple(lowered.inside)) == ""


def test_a_condition_of_the_outer_loop_is_asked_there() -> None:
    text = evaluated(pipeline("sum(f(x + k + j) for k in range(70) for j in range(70) if k > 3)")).text()
    assert text.index("for k_") < text.index("if () and") < text.index("for j_")
    assert text.count("select") == 0


@pytest.mark.parametrize("n", [20, 100])
def test_a_condition_of_the_point_is_asked_once(n: int) -> None:
    lowered = evaluated(pipeline(f"sum(f(x + k) * f(k) for k in range({n}) if f(x) > 0)"))
    assert lowered.text().count("select") == 1
    assert "select" in print_body(tuple(lowered.inside)).splitlines()[-1]
