"""Every rule of legality: a schedule that breaks it is refused with the stage and the rule."""

from dataclasses import replace

import pytest
from support.machines import machine
from support.random_schedules import random_schedule
from support.small_pipelines import F, blur, harris, pipeline, pyramid, stage, unsharp, x, y

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Tile, UpdateLoops, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import autoschedule

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
        check(rewrite(of or blur(), schedule))


def _placed(**changes: object) -> Schedule:
    return _schedule(replace(GOOD, placements=(replace(GOOD.placements[0], **changes),)))


def test_sliding_blur_is_legal() -> None:
    check(rewrite(blur(), _schedule(GOOD)))


@pytest.mark.slow
@pytest.mark.parametrize("of", [blur, harris, unsharp, pyramid], ids=lambda f: f.__name__)
def test_random_schedules_are_legal(of) -> None:
    pipeline = of()
    for seed in range(60):
        check(rewrite(pipeline, random_schedule(pipeline, seed, registers=seed % 2 == 0)))


@pytest.mark.slow
def test_random_schedules_are_reproducible_and_broad() -> None:
    drawn = [random_schedule(harris(), seed) for seed in range(40)]
    assert drawn[:20] == [random_schedule(harris(), seed) for seed in range(20)]
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
        ({"order": ("y", "x"), "compute": "x.inner"}, "not its innermost loop"),
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


def test_vectors_may_run_outside_of_other_loops() -> None:
    check(rewrite(blur(), _placed(order=("y", "x"))))


def test_registers_are_legal_at_the_vectorised_loop() -> None:
    check(rewrite(blur(), _placed(storage="registers", compute="x.inner", store="y.inner")))


def _row(stages: list[dict[str, object]], placements: tuple[Placement, ...]) -> tuple[Pipeline, Schedule]:
    """Stages of one row of vectors, the last of them the output."""
    out = str(stages[-1]["name"])
    of = load(
        {
            "format": 1,
            "name": "row",
            "inputs": [{"name": "image", "type": "int32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
            "stages": [{"dims": ["x", "y"], **s} for s in stages],
            "outputs": [out],
            "estimates": {out: [[0, 100], [0, 40]]},
        }
    )
    return of, Schedule("row", "hand", (Group(out, LOOPS[:2], (), None, Vector("x", 8), (), placements),))


def _in_registers(*names: str) -> tuple[Placement, ...]:
    return tuple(Placement(n, "x.inner", "y.inner", storage="registers", vector=Vector("x", 8)) for n in names)


@pytest.mark.parametrize(
    "read", ["a(x // 2, y)", "a(2 * x, y)", "a(3, y)", "a(-x, y)", "a(x, y) + a(x // 2, y)", "a(x, x)"]
)
def test_registers_are_read_by_shifts_along_the_row(read: str) -> None:
    of, schedule = _row(
        [{"name": "a", "value": "image(x, y) * 3"}, {"name": "b", "value": f"{read} + 1"}], _in_registers("a")
    )
    _refused(schedule, "stage 'a' in the group of 'b': .*other than shifts along 'x'", of)


@pytest.mark.parametrize("read", ["b(x, y) + a(x - x % 3, y)", "b(x // 16 * 16 + (x + 8) % 16, y)", "b(x - x % 3, y)"])
def test_registers_are_read_in_the_same_order_in_each_vector(read: str) -> None:
    """Orders of eight lanes: by themselves, and through what is inline."""
    stages = [{"name": "a", "value": "image(x, y) * 3"}, {"name": "b", "value": "a(x + 1, y) * 2"}]
    of, schedule = _row([*stages, {"name": "c", "value": read}], (*_in_registers("a"), Placement("b", INLINE, INLINE)))
    _refused(schedule, "beside registers 'a' is read in another order in each vector", of)
    stages.append({"name": "c", "value": "b(x // 8 * 8 + (x + 4) % 8, y)"})
    of, schedule = _row(stages, (*_in_registers("a"), Placement("b", INLINE, INLINE)))
    check(rewrite(of, schedule))


def test_registers_may_be_read_by_shifts_of_shifts() -> None:
    stages = [
        {"name": "a", "value": "image(x // 2, y) * 3"},
        {"name": "b", "value": "sum(a(x + r, y + 1) for r in range(-1, 2))"},
        {"name": "c", "value": "b(x - 1, y) + b(x + 1, y - 2) + a(x, y)"},
    ]
    of, schedule = _row(stages, _in_registers("a", "b"))
    check(rewrite(of, schedule))


def test_what_lives_for_a_vector_beside_registers_is_read_by_shifts_and_has_no_updates() -> None:
    stages = [
        {"name": "a", "value": "image(x, y) * 3"},
        {"name": "b", "value": "a(x - 1, y) + a(x + 1, y)"},
        {"name": "c", "value": "b(x, y) + a(x // 2, y)"},
    ]
    beside = Placement("a", "x.inner", "x.inner")
    of, schedule = _row(stages, (beside, *_in_registers("b")))
    _refused(schedule, "stage 'a' in the group of 'c': .*other than shifts", of)
    group = replace(schedule.groups[0], placements=(beside, replace(beside, stage="b")))
    check(rewrite(of, replace(schedule, groups=(group,))))
    image = "image.extent.x"
    stages[0]["updates"] = [{"domain": {"r": [0, image]}, "at": ["x", "y"], "value": "a(x, y) * 2 + image(r, y)"}]
    stages[2]["value"] = "b(x, y)"
    of, schedule = _row(stages, (replace(beside, store="y.inner"), *_in_registers("b")))
    _refused(schedule, "stage 'a' in the group of 'c': updates are not computed at the vectorised loop", of)


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
        ({"stream": True, "vector": None}, "streaming stores"),
        ({"stream": True, "vector": Vector("y", 16), "loops": ("y.inner", "x.inner", *LOOPS[2:])}, "not fastest"),
        ({"prefetch": -1}, "bytes ahead"),
        ({"placements": ()}, "'blur_x': no group has it"),
    ],
)
def test_a_bad_group_is_refused(changes: dict[str, object], words: str) -> None:
    _refused(_schedule(replace(GOOD, **changes)), words)


def test_groups_cover_every_live_stage_once_in_order() -> None:
    root = Group("blur_x", ("x.inner", "y.inner"), (), None, None, (), ())
    tail = replace(GOOD, placements=())
    check(rewrite(blur(), _schedule(root, tail)))
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


def test_every_group_that_reads_a_stage_may_compute_its_own() -> None:
    two = pipeline(
        "blur",
        [stage("a", "xy", F("input")(x, y)), stage("b", "xy", F("a")(x, y)), stage("c", "xy", F("a")(x, y))],
        {"b": (8, 8), "c": (8, 8)},
    )
    plain = ("x.inner", "y.inner")
    a = Placement("a", INLINE, INLINE)
    b, c = (Group(n, plain, (), None, None, (), (a,)) for n in "bc")
    check(rewrite(two, _schedule(b, c)))
    placed = replace(c, placements=(replace(a, compute="y.inner", store="y.inner"),))
    check(rewrite(two, _schedule(b, placed)))
    alone = Group("a", plain, (), None, None, (), ())
    _refused(_schedule(alone, b, c), "'a': it is scheduled twice, and the output of a group", two)
    _refused(_schedule(b, placed, alone), "'a': it is scheduled twice, and the output of a group", two)
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


def _of(document: dict[str, object]) -> Pipeline:
    return load({"format": 1, "name": "blur", **document})


COLUMNS = _of(
    {
        "inputs": [{"name": "input", "type": "uint8", "dims": ["x", "y"]}],
        "stages": [
            {"name": "twice", "dims": ["x", "y"], "value": "uint32(input(x, y)) * 2"},
            {
                "name": "sums",
                "dims": ["x", "y"],
                "value": "twice(x, y)",
                "updates": [{"domain": {"r": [1, 31]}, "at": ["x", "r"], "value": "sums(x, r - 1) + sums(x, r)"}],
            },
            {"name": "out", "dims": ["x", "y"], "value": "sums(x, y) // 2"},
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 64], [0, 32]]},
    }
)
SUMS = Group(
    "sums",
    ("y.inner", "x.inner", "x.outer"),
    (Tile("x", 16),),
    "x.outer",
    Vector("y", 4),
    (),
    (Placement("twice", "x.inner", "x.outer"),),
    (UpdateLoops(("x", "r"), Vector("x", 8)),),
)
OUT = Group("out", ("x.inner", "y.inner"), (), None, None, (), ())


def _sums(**changes: object) -> Schedule:
    return _schedule(replace(SUMS, **changes), OUT)


def test_updates_are_tiled_vectorised_and_run_by_threads() -> None:
    check(rewrite(COLUMNS, _sums()))
    alone = replace(SUMS, tiles=(), loops=("y.inner", "x.inner"), parallel=None, placements=())
    check(
        rewrite(
            COLUMNS,
            _schedule(
                replace(
                    alone,
                    placements=(Placement("twice", INLINE, INLINE),),
                    updates=(UpdateLoops(("r", "x"), None, "x"),),
                ),
                OUT,
            ),
        )
    )
    inside = Placement("sums", "x.outer", "x.outer", updates=(UpdateLoops(("x", "r"), Vector("x", 8)),))
    out = Group(
        "out", ("x.inner", "y.inner", "x.outer"), (Tile("x", 16),), "x.outer", None, (),
        (Placement("twice", INLINE, INLINE), inside),
    )  # fmt: skip
    check(rewrite(COLUMNS, _schedule(out)))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tiles": (Tile("y", 8),), "loops": ("y.inner", "x.inner", "y.outer"), "parallel": None, "placements": (
            Placement("twice", INLINE, INLINE),)}, "'y.outer' is tiled, .* an update does not keep in place"),
        ({"loops": ("x.inner", "y.inner", "x.outer"), "vector": None}, "is the level of 'twice', but 'y.inner'"),
        ({"updates": (UpdateLoops(("x", "r")), UpdateLoops(("x", "r")))}, "1 updates, and the schedule 2"),
        ({"updates": (UpdateLoops(("x",)),)}, "update 0: its loops must be r, x"),
        ({"updates": (UpdateLoops(("x", "r"), Vector("r", 4)),)}, "iterations of 'r' are independent cannot be proved"),
        ({"updates": (UpdateLoops(("x", "r"), Vector("y", 4)),)}, "vectorised in 'y', which is no loop of it"),
        ({"updates": (UpdateLoops(("x", "r"), Vector("x", 5)),)}, "power of two"),
        ({"updates": (UpdateLoops(("r", "x"), None, "x"),)}, "threads inside of what threads"),
        ({"updates": (UpdateLoops(("r", "x"), None, "r"),)}, "not its outermost loop"),
    ],
)  # fmt: skip
def test_a_bad_schedule_of_updates_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(IllegalSchedule, match=words):
        check(rewrite(COLUMNS, _sums(**changes)))


@pytest.mark.parametrize("threads", [("y", None), ("y", "x"), (None, "y")])
def test_threads_share_the_blocks_of_a_sweep_or_outermost_loops(threads: tuple[str | None, str | None]) -> None:
    """Blocks of rows that one update keeps in place and the next one goes through; vectors may run across them."""
    along = {"domain": {"r": [1, 63]}, "at": ["r", "y"], "value": "sums(r - 1, y) + sums(r, y)"}
    down = {"domain": {"r": [1, 31]}, "at": ["x", "r"], "value": "sums(x, r - 1) + sums(x, r)"}
    table = {"name": "sums", "dims": ["x", "y"], "value": "input(x, y)", "updates": [along, down]}
    image = {"name": "input", "type": "int32", "dims": ["x", "y"]}
    estimates = {"sums": [[0, 64], [0, 32]]}
    of = _of({"inputs": [image], "stages": [table], "outputs": ["sums"], "estimates": estimates})
    updates = UpdateLoops(("r", "y"), Vector("y", 8), threads[0]), UpdateLoops(("x", "r"), None, threads[1])
    schedule = _schedule(Group("sums", ("x.inner", "y.inner"), (), None, None, (), (), updates))
    if threads == ("y", None):
        check(rewrite(of, schedule))
    else:
        _refused(schedule, "vectorised and parallel|not its outermost loop", of)


def test_threads_share_strips_of_an_outermost_loop_over_vectors() -> None:
    along = {"domain": {"r": [1, 63]}, "at": ["r", "y"], "value": "sums(r - 1, y) + sums(r, y)"}
    down = {"domain": {"r": [1, 31]}, "at": ["x", "r"], "value": "sums(x, r - 1) + sums(x, r)"}
    table = {"name": "sums", "dims": ["x", "y"], "value": "input(x, y)", "updates": [down, along]}
    image = {"name": "input", "type": "int32", "dims": ["x", "y"]}
    estimates = {"sums": [[0, 64], [0, 32]]}
    of = _of({"inputs": [image], "stages": [table], "outputs": ["sums"], "estimates": estimates})
    for columns in (None, "x"):
        updates = UpdateLoops(("x", "r"), Vector("x", 8), columns), UpdateLoops(("r", "y"), Vector("y", 8), "y")
        schedule = _schedule(Group("sums", ("x.inner", "y.inner"), (), None, None, (), (), updates))
        if columns is None:
            check(rewrite(of, schedule))
        else:
            _refused(schedule, "not its outermost loop", of)


def test_updates_need_memory_and_run_in_one_group() -> None:
    inside = (Placement("twice", INLINE, INLINE), Placement("sums", INLINE, INLINE))
    _refused(_schedule(replace(OUT, placements=inside)), "inline, but it has updates", COLUMNS)
    other = replace(COLUMNS.stage("out"), name="other")
    two = replace(COLUMNS, stages=(*COLUMNS.stages, other), outputs=("out", "other"))
    kept = tuple(replace(p, compute="y.inner", store="y.inner") for p in inside)
    groups = (replace(OUT, placements=kept), replace(OUT, output="other", placements=kept))
    _refused(_schedule(*groups), "'sums': it is in several groups, but has updates", two)


def test_a_stage_that_others_take_the_place_of_is_refused_with_these() -> None:
    of = pipelines.load("max_filter")
    found = autoschedule(of, machine()).schedule
    (group,) = found.groups
    (first, *rest) = group.placements
    other = replace(group, placements=(replace(first, stage="vert"), *rest))
    _refused(replace(found, groups=(other,)), "it is computed as others, a stage a level: vert_4, vert_9", of)
