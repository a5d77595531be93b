"""Every rule of legality: a schedule that breaks it is refused with the stage and the rule."""

from dataclasses import replace

import pytest
from support.random_schedules import random_schedule
from support.small_pipelines import F, blur, harris, pipeline, pyramid, stage, unsharp, x, y

from scheduler.errors import IllegalSchedule
from scheduler.lang.expr import Const, RVar, Var
from scheduler.lang.pipeline import Pipeline, Update
from scheduler.lang.types import FLOAT32, INT32
from scheduler.legality import check
from scheduler.schedule import INLINE, Group, Placement, Schedule, Tile, Vector

LOOPS = ("x.inner", "y.inner", "x.outer", "y.outer")
GOOD = Group(
    "blur_y",
    LOOPS,
    (Tile("x", None), Tile("y", 32)),
    "y.outer",
    Vector("x", 16),
    (),
    (Placement("blur_x", "y.inner", "x.outer", vector=Vector("x", 16), order=("x", "y")),),
)


def _schedule(*groups: Group) -> Schedule:
    return Schedule("blur", "hand", groups)


def _refused(schedule: Schedule, words: str, of: Pipeline | None = None) -> None:
    with pytest.raises(IllegalSchedule, match=words):
        check(of or blur(), schedule)


def _placed(**changes: object) -> Schedule:
    return _schedule(replace(GOOD, placements=(replace(GOOD.placements[0], **changes),)))


def test_sliding_blur_is_legal() -> None:
    check(blur(), _schedule(GOOD))


@pytest.mark.parametrize("of", [blur, harris, unsharp, pyramid], ids=lambda f: f.__name__)
def test_random_schedules_are_legal(of) -> None:
    for seed in range(60):
        check(of(), random_schedule(of(), seed, registers=seed % 2 == 0))


def test_random_schedules_are_reproducible_and_broad() -> None:
    drawn = [random_schedule(harris(), seed) for seed in range(80)]
    assert drawn == [random_schedule(harris(), seed) for seed in range(80)]
    groups = [g for s in drawn for g in s.groups]
    placements = [p for g in groups for p in g.placements]
    assert {g.parallel is None for g in groups} == {True, False}
    assert {g.vector is None for g in groups} == {True, False}
    assert any(p.compute == INLINE for p in placements)
    assert any(p.compute != p.store for p in placements)
    assert {p.fold for p in placements} == {True, False}
    assert any(len(s.groups) == 1 for s in drawn)
    assert any(len(s.groups) > 5 for s in drawn)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"compute": "z.inner"}, "compute level 'z.inner' is no loop"),
        ({"store": "z.inner"}, "store level 'z.inner' is no loop"),
        ({"compute": "x.outer", "store": "y.inner"}, "store level is inside its compute level"),
        ({"compute": INLINE}, "inline must be both"),
        ({"compute": INLINE, "store": INLINE}, "neither vectors nor storage"),
        ({"order": ("x",)}, "not a permutation"),
        ({"order": ("y", "x")}, "not its innermost loop"),
        ({"vector": Vector("z", 8)}, "none of its dims"),
        ({"vector": Vector("x", 12)}, "power of two"),
        ({"vector": Vector("x", 1)}, "power of two"),
        ({"storage": "registers"}, "computed at the vectorised loop"),
        ({"storage": "registers", "compute": "x.inner", "store": "x.outer"}, "exactly one loop further out"),
        ({"storage": "registers", "compute": "x.inner", "store": "y.inner", "fold": False}, "folded"),
        (
            {"storage": "registers", "compute": "x.inner", "store": "y.inner", "vector": Vector("x", 8)},
            "as many lanes",
        ),
    ],
)
def test_a_bad_placement_is_refused(changes: dict[str, object], words: str) -> None:
    _refused(_placed(**changes), f"stage 'blur_x' in the group of 'blur_y': .*{words}")


def test_registers_are_legal_at_the_vectorised_loop() -> None:
    check(blur(), _placed(storage="registers", compute="x.inner", store="y.inner"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loops": ("x.inner", "x.outer", "y.inner", "y.outer")}, "mix"),
        ({"loops": LOOPS[:3]}, "loops must be"),
        ({"loops": (*LOOPS[:3], "x.outer")}, "loops must be"),
        ({"tiles": (Tile("x", None), Tile("y", 0))}, "smaller than 1"),
        ({"tiles": (Tile("x", None), Tile("x", 4))}, "two tiles"),
        ({"tiles": (Tile("x", None), Tile("z", 4))}, "none of its dims"),
        ({"parallel": "x.outer"}, "not its outermost loop"),
        ({"vector": Vector("y", 16)}, "not the innermost one"),
        ({"unroll": ("x",)}, "unrolled and vectorised"),
        ({"unroll": ("z",)}, "none of its dims"),
        ({"unroll": ("y", "y")}, "unrolled twice"),
        ({"tiles": (Tile("x", None), Tile("y", 64)), "unroll": ("y",)}, "more than 32 iterations"),
        ({"tiles": (Tile("x", None), Tile("y", 4)), "unroll": ("y",)}, "'y.inner' is unrolled"),
        ({"placements": ()}, "'blur_x': no group has it"),
    ],
)
def test_a_bad_group_is_refused(changes: dict[str, object], words: str) -> None:
    _refused(_schedule(replace(GOOD, **changes)), words)


def test_groups_cover_every_live_stage_once_in_order() -> None:
    root = Group("blur_x", ("x.inner", "y.inner"), (), None, None, (), ())
    tail = replace(GOOD, placements=())
    check(blur(), _schedule(root, tail))
    _refused(_schedule(tail, root), "'blur_x', which is not in the group")
    _refused(_schedule(root, GOOD), "scheduled twice")
    _refused(_schedule(root), "no group has it")
    _refused(_schedule(root, tail, replace(root, output="other")), "'other': no output")
    _refused(replace(_schedule(GOOD), pipeline="other"), "not for 'blur'")


def test_a_member_is_not_read_outside_its_group() -> None:
    two = pipeline(
        "blur",
        [stage("a", "xy", F("input")(x, y)), stage("b", "xy", F("a")(x, y)), stage("c", "xy", F("a")(x, y))],
        {"b": (8, 8), "c": (8, 8)},
    )
    plain = ("x.inner", "y.inner")
    b = Group("b", plain, (), None, None, (), (Placement("a", INLINE, INLINE),))
    c = Group("c", plain, (), None, None, (), ())
    _refused(_schedule(b, c), "'c' in the group of 'c': it reads 'a'", two)


def test_an_inline_stage_may_be_inline_in_every_group_that_reads_it() -> None:
    two = pipeline(
        "blur",
        [stage("a", "xy", F("input")(x, y)), stage("b", "xy", F("a")(x, y)), stage("c", "xy", F("a")(x, y))],
        {"b": (8, 8), "c": (8, 8)},
    )
    plain = ("x.inner", "y.inner")
    a = Placement("a", INLINE, INLINE)
    b, c = (Group(n, plain, (), None, None, (), (a,)) for n in "bc")
    check(two, _schedule(b, c))
    placed = replace(c, placements=(replace(a, compute="y.inner", store="y.inner"),))
    _refused(_schedule(b, placed), "'a': it is scheduled twice, and not inline both times", two)
    _refused(_schedule(b, replace(c, placements=(a, a))), "group of 'c': a stage has two placements", two)


def test_a_producer_is_not_computed_inside_its_consumer() -> None:
    graph = harris(64, 64)
    names = [s.name for s in graph.stages[:-1]]
    at = {"Ix": ("x.outer", "x.outer"), "gray": ("y.inner", "y.inner"), "Iy": ("y.inner", "x.outer")}
    placements = tuple(Placement(n, *at.get(n, (INLINE, INLINE))) for n in names)
    group = Group("harris", LOOPS, GOOD.tiles, None, None, (), placements)
    _refused(
        Schedule("harris", "hand", (group,)),
        "'gray' in the group of 'harris': computed at 'y.inner', inside the level of its consumer 'Ix'",
        graph,
    )
    _refused(
        Schedule("harris", "hand", (replace(group, placements=placements[::-1]),)), "placed before 'trace'|reads", graph
    )


def test_updates_run_at_root() -> None:
    r = RVar("r", Const(0, INT32), Const(4, INT32))
    value = F("hist")(x).e
    update = Update((r,), None, (Var("x"),), ((F("hist")(x) + F("data")(x, y)).e,))
    update = replace(update, domain=(replace(r, name="y"),))
    special = replace(stage("hist", "x", F("seed")(x)), updates=(update,))
    graph = pipeline(
        "blur",
        [stage("data", "xy", F("input")(x, y)), stage("seed", "x", F("input")(x, 0)), special],
        {"hist": (8,)},
    )
    assert value.type == FLOAT32
    data = Group("data", ("x.inner", "y.inner"), (), None, None, (), ())
    seed = Placement("seed", INLINE, INLINE)
    hist = Group("hist", ("x.inner",), (), None, None, (), (seed,))
    check(graph, _schedule(data, hist))
    _refused(_schedule(data, replace(hist, vector=Vector("x", 4))), "no tiles, threads, vectors", graph)
    _refused(
        _schedule(data, replace(hist, placements=(replace(seed, compute="x.inner", store="x.inner"),))),
        "inline or at root",
        graph,
    )
    both = replace(hist, placements=(Placement("data", INLINE, INLINE), seed))
    _refused(_schedule(both), "'data' in the group of 'hist': inline, but an update", graph)
    consumer = pipeline("blur", [*graph.stages, stage("out", "x", F("hist")(x))], {"out": (8,)})
    out = Group("out", ("x.inner",), (), None, None, (), (Placement("hist", INLINE, INLINE),))
    _refused(
        _schedule(data, replace(out, placements=(seed, *out.placements))), "must be the output of a group", consumer
    )
