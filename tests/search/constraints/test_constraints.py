"""Decisions that the caller fixes: their document, what contradicts itself, and what admits them."""

from dataclasses import replace

import pytest
from support.machines import machine
from support.small_pipelines import F, blur, harris, pipeline, stage, x, y

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import Options, schedule_key
from tilesmith.scheduler.errors import DocumentError, FixedContradiction, ScheduleError
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.search import SearchOptions, autoschedule
from tilesmith.scheduler.search.constraints.constraints import Fixed
from tilesmith.scheduler.search.constraints.document import from_document, load, to_document

WHOLE = {
    "blur_x": {"compute": "y.inner", "store": "x.outer", "storage": "memory", "order": ["x", "y"], "vector": 16},
    "blur_y": {
        "compute": "root",
        "vector": 16,
        "loops": ["x.inner", "y.inner", "x.outer", "y.outer"],
        "parallel": "y.outer",
        "unroll": [],
        "stream": False,
        "prefetch": 0,
        "tiles": {"x": 256, "y": None},
    },
}
BLUR = Group(
    "blur_y",
    ("x.inner", "y.inner", "x.outer", "y.outer"),
    (Tile("x", 256), Tile("y", None)),
    "y.outer",
    Vector("x", 16),
    (),
    (Placement("blur_x", "y.inner", "x.outer", True, "memory", ("x", "y"), Vector("x", 16)),),
)


def test_documents_come_back() -> None:
    fixed = from_document(WHOLE)
    assert to_document(fixed) == WHOLE
    assert from_document(to_document(fixed)) == fixed
    assert not from_document({})
    assert hash(fixed) == hash(from_document(dict(reversed(WHOLE.items()))))


def test_null_is_none_of_it() -> None:
    fixed = from_document({"b": {"parallel": None, "vector": None, "tiles": {"x": None}}}).of("b")
    assert (fixed.parallel, fixed.vector, fixed.tiles, fixed.unroll) == ("none", 1, (("x", None),), None)


@pytest.mark.parametrize(
    ("document", "pointer", "message"),
    [
        ([], "", "an object of stages"),
        ({"blur_x": {"computed": "inline"}}, "/blur_x/computed", "no such key"),
        ({"blur_x": {"compute": "somewhere"}}, "/blur_x/compute", "'inline', 'root', or a loop"),
        ({"blur_x": {"vector": 3}}, "/blur_x/vector", "1, 2, 4"),
        ({"blur_x": {"storage": "disk"}}, "/blur_x/storage", "'memory' or 'registers'"),
        ({"blur_y": {"tiles": {"x": 0}}}, "/blur_y/tiles/x", "greater than or equal to 1"),
        ({"blur_y": {"loops": ["x"]}}, "/blur_y/loops/0", "a loop such as"),
        ({"blurx": {"compute": "inline"}}, "/blurx", "the pipeline has no stage 'blurx'"),
        ({"blur_y": {"tiles": {"z": 8}}}, "/blur_y/tiles/z", "the stage 'blur_y' has no dim 'z'"),
        ({"blur_x": {"order": ["x", "c"]}}, "/blur_x/order/1", "no dim 'c'"),
        ({"blur_y": {"parallel": "z.outer"}}, "/blur_y/parallel", "no loop 'z.outer'"),
        ({"blur_x": {"compute": "c.inner"}}, "/blur_x/compute", "no loop 'c.inner'"),
    ],
)
def test_what_is_wrong_has_its_place(document: object, pointer: str, message: str) -> None:
    with pytest.raises(DocumentError) as error:
        load(document, blur())
    (problem,) = error.value.problems
    assert problem.pointer == pointer
    assert message in problem.message


def test_near_names_are_offered() -> None:
    with pytest.raises(DocumentError) as error:
        load({"blurx": {"compute": "inline"}, "blur_y": {"parallel": "y.out"}}, blur())
    assert [p.pointer for p in error.value.problems] == ["/blur_y/parallel"]
    with pytest.raises(DocumentError) as error:
        load({"blurx": {"compute": "inline"}, "blur_y": {"loops": ["z.inner"]}}, blur())
    assert [p.hint for p in error.value.problems] == ["did you mean 'y.inner'?", "did you mean 'blur_x'?"]


def test_stages_that_are_computed_as_others_are_told_with_these() -> None:
    with pytest.raises(DocumentError) as error:
        load({"vert_log": {"compute": "root"}}, pipelines.load("max_filter"))
    (problem,) = error.value.problems
    assert problem.message == "the stage 'vert_log' is computed as others, a stage a level"
    assert problem.hint == "fix these: " + ", ".join(f"vert_log_{n}" for n in range(6))


@pytest.mark.parametrize(
    ("document", "pointer", "message"),
    [
        ({"blur_y": {"compute": "inline"}}, "/blur_y/compute", "an output of the pipeline"),
        ({"blur_x": {"compute": "inline", "vector": 8}}, "/blur_x/vector", "inline (compute): it has no vector"),
        ({"blur_x": {"compute": "inline", "tiles": {"x": 8}}}, "/blur_x/tiles", "it has no tiles"),
        ({"blur_x": {"compute": "y.inner", "tiles": {"x": 8}}}, "/blur_x/compute", "the output of a group (tiles)"),
        ({"blur_x": {"compute": "root", "store": "y.outer"}}, "/blur_x/store", "stored at root"),
        ({"blur_y": {"compute": "y.inner"}}, "/blur_y/compute", "the output of a group"),
        ({"blur_x": {"compute": "x.outer", "store": "y.inner"}}, "/blur_x/store", "outside of y.inner"),
        ({"blur_x": {"compute": "x.outer", "storage": "registers"}}, "/blur_x/storage", "not at x.outer"),
        ({"blur_x": {"compute": "root", "storage": "registers"}}, "/blur_x/storage", "not in registers"),
        ({"blur_y": {"loops": ["x.outer", "y.inner"]}}, "/blur_y/loops", "outside of all intra-tile"),
        ({"blur_y": {"loops": ["x.inner", "x.inner"]}}, "/blur_y/loops", "twice"),
        ({"blur_y": {"loops": ["x.inner", "y.inner"], "order": ["y", "x"]}}, "/blur_y/order", "another order"),
        ({"blur_y": {"parallel": "y.inner", "tiles": {"x": 8}}}, "/blur_y/parallel", "'x.outer' is outside of it"),
        ({"blur_y": {"unroll": ["x"], "tiles": {"x": 64}}}, "/blur_y/unroll", "at most 32"),
        (
            {"blur_x": {"compute": "x.inner", "store": "y.inner"}, "blur_y": {"loops": ["y.inner", "x.inner"]}},
            "/blur_x/store",
            "in the loops of its group",
        ),
        (
            {"blur_x": {"compute": "y.inner"}, "blur_y": {"unroll": ["y"]}},
            "/blur_x/compute",
            "unrolled in its group (unroll)",
        ),
    ],
)
def test_contradictions_name_the_decision(document: object, pointer: str, message: str) -> None:
    with pytest.raises(FixedContradiction) as error:
        load(document, blur())
    assert error.value.code == "fixed_contradiction"
    (problem,) = error.value.problems
    assert problem.pointer == pointer
    assert message in problem.message


def test_contradictions_between_stages() -> None:
    with pytest.raises(FixedContradiction, match="read by the groups of 'Ix' and 'Iy'"):
        load({"gray": {"compute": "y.inner"}, "Ix": {"compute": "root"}, "Iy": {"compute": "root"}}, harris())
    with pytest.raises(FixedContradiction, match=r"its consumer 'Ix' is computed at y\.outer"):
        load({"gray": {"compute": "y.inner"}, "Ix": {"compute": "y.outer"}}, harris())
    stages = [
        stage("a", "xy", F("input")(x, y) * 2.0),
        stage("b", "xy", F("a")(x, y) * 2.0),
        stage("out", "xyc", F("b")(x, y) * 2.0),
    ]
    of = pipeline("channels", stages, {"out": (64, 64, 3)})
    with pytest.raises(FixedContradiction, match=r"has no loop 'c\.inner'"):
        load({"a": {"compute": "c.inner"}, "b": {"compute": "root"}}, of)


def test_updates_need_memory_and_keep_dims() -> None:
    grid = pipelines.load("bilateral_grid")
    with pytest.raises(FixedContradiction, match="which need memory"):
        load({"histogram": {"compute": "inline"}}, grid)
    with pytest.raises(FixedContradiction, match="does not keep 'z' in place"):
        load({"histogram": {"tiles": {"z": 8}}}, grid)


def test_every_schedule_admits_what_it_is() -> None:
    found = autoschedule(blur(), machine()).schedule
    assert Fixed().admits(found) is None
    assert from_document(WHOLE).admits_group(BLUR) is None
    assert from_document({"blur_y": {"loops": ["x.inner", "y.outer"]}}).admits_group(BLUR) is None


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"blur_x": {"compute": "inline"}}, "'blur_x' is computed at y.inner, not inline"),
        ({"blur_x": {"compute": "root"}}, "'blur_x' is computed at y.inner, not at root"),
        ({"blur_x": {"store": "y.outer"}}, "'blur_x' is stored at x.outer, not at y.outer"),
        ({"blur_x": {"storage": "registers"}}, "'blur_x' is in memory, not in registers"),
        ({"blur_x": {"vector": 1}}, "'blur_x' has 16 lanes, not no vectors"),
        ({"blur_x": {"order": ["y", "x"]}}, "the dims of 'blur_x' are in the order x, y, not y, x"),
        ({"blur_x": {"parallel": None}}, "'blur_x' is not the output of a group, so that it has no parallel"),
        ({"blur_y": {"tiles": {"y": 32}}}, "the tile of 'y' of 'blur_y' is whole, not 32"),
        ({"blur_y": {"parallel": None}}, "the parallel loop of 'blur_y' is y.outer, not none"),
        ({"blur_y": {"unroll": ["y"]}}, "'blur_y' is unrolled in none, not y"),
        ({"blur_y": {"stream": True}}, "'blur_y' is written by ordinary stores, not by streaming stores"),
        ({"blur_y": {"prefetch": 512}}, "'blur_y' prefetches 0 bytes ahead, not 512"),
        ({"blur_y": {"vector": 32}}, "'blur_y' has 16 lanes, not 32 lanes"),
        ({"blur_y": {"compute": "x.outer"}}, "'blur_y' is the output of a group, not computed at x.outer"),
    ],
)
def test_the_first_thing_that_is_otherwise(document: object, reason: str) -> None:
    assert from_document(document).admits(Schedule("blur", "m", (BLUR,))) == reason


def test_inline_stages_have_nothing_of_their_own() -> None:
    group = replace(BLUR, placements=(Placement("blur_x", INLINE, INLINE),))
    assert (
        from_document({"blur_x": {"vector": 8}}).admits_group(group) == "'blur_x' is inline, so that it has no vector"
    )


def test_taco2019_takes_no_fixed_decisions() -> None:
    options = SearchOptions("taco2019", fixed=from_document({"blur_x": {"compute": "inline"}}))
    with pytest.raises(ScheduleError, match="method 'taco2019' takes no fixed decisions"):
        autoschedule(blur(), machine(), options)


def test_the_key_has_what_is_fixed() -> None:
    inline, root = (Options(fixed=from_document({"blur_x": {"compute": c}})) for c in ("inline", "root"))
    keys = {schedule_key(blur(), machine(), o) for o in (Options(), inline, root)}
    assert len(keys) == 3


def test_what_the_search_asks() -> None:
    fixed = from_document(
        {
            "a": {"compute": "inline"},
            "b": {"compute": "root"},
            "c": {"compute": "y.inner"},
            "d": {"vector": 8},
            "e": {"tiles": {"x": 64, "y": None}},
        }
    )
    assert [fixed.inline(n) for n in "abcdef"] == [True, False, False, False, False, None]
    assert [fixed.root(n) for n in "abcdef"] == [False, True, False, None, True, None]
    assert [fixed.level(n) for n in "abc"] == [None, None, "y.inner"]
    assert [fixed.tile("e", d, 7) for d in "xyz"] == [64, None, 7]
