"""Code of a point: operations, transfers, registers."""

from __future__ import annotations

import re

import pytest
from support.group_work import ORDERS, outputs_work, works
from support.small_pipelines import E, F, c, harris, pipeline, stage, total, x, y

from tilesmith.cost_models.work import Transfer, Work
from tilesmith.platforms import catalog
from tilesmith.scheduler.compiler import generate
from tilesmith.scheduler.features.groups.execution_mode import Run, Running
from tilesmith.scheduler.features.groups.fusion_group import effective, members_of
from tilesmith.scheduler.features.groups.group_counts import Levels
from tilesmith.scheduler.features.groups.loop_nest import Nest, axis
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.features.schedule_features import counts_of
from tilesmith.scheduler.features.work.simd_work import worked_counts
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.expressions import Call, Cast, Const
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.rewrites.passes import normalise, rewrite
from tilesmith.scheduler.search.vectorize_and_parallelize import root_schedule


def test_operations_of_inlined_stages_are_counted_where_they_are_read() -> None:
    found = works(
        harris(30, 19), ORDERS[0], {"gray": Levels(1, 2), "Ix": Levels(1, 2), "Iy": Levels(1, 2)}, {"x": 30, "y": 19}, 8
    )
    operations = dict(list(found.values())[-1].operations)["f32"]
    assert operations.multiply >= 27  # the products of Ix and Iy, at nine places


@pytest.mark.parametrize(
    ("place", "quotients"),
    [(E(Const(2, INT32)), 1 / 8), (x, 1.0), (x % 16, 1.0), (y % 16, 1 / 8)],
    ids=["one", "row", "remainder of the row", "remainder of another dim"],
)
def test_what_is_inline_and_the_same_for_a_vector_is_computed_once_for_it(place: E, quotients: float) -> None:
    root = E(Call("sqrt", (F("input")(x, 0).e,), FLOAT32))
    stages = [stage("weight", "x", root), stage("out", "xy", F("weight")(place) * F("input")(x, y))]
    (work,) = works(pipeline("weighted", stages, {"out": (32, 8)}), ORDERS[0], {}, {"x": 32, "y": 8}, 8).values()
    assert dict(work.operations)["f32"].divide == quotients


@pytest.mark.parametrize(("index", "quotients"), [("v", 1.0), ("y", 1 / 8)], ids=["place of data", "row"])
def test_what_a_table_reads_at_a_place_that_data_says_is_computed_for_each_point(index: str, quotients: float) -> None:
    document = {
        "format": 1, "name": "tables", "inputs": [{"name": "image", "type": "uint8", "dims": ["x", "y"]}],
        "stages": [
            {"name": "root", "dims": ["v"], "value": "sqrt(float32(v))"},
            {"name": "curve", "dims": ["v", "y"], "value": f"root({index}) * float32(v)"},
            {"name": "out", "dims": ["x", "y"], "value": "curve(int32(image(x, y)), y)"},
        ],
        "outputs": ["out"], "estimates": {"out": [[0, 32], [0, 8]]},
    }  # fmt: skip
    (work,) = works(load(document), ORDERS[0], {}, {"x": 32, "y": 8}, 8).values()
    assert dict(work.operations)["f32"].divide == quotients


def test_what_several_inline_stages_load_is_converted_once() -> None:
    """Both gradients of a point read six elements each, of eight in all: neither reads the point itself."""
    left, right, above, below = (
        " + ".join(f"float32(image({place.format(k)}))" for k in (-1, 0, 1))
        for place in ("x - 1, y + {}", "x + 1, y + {}", "x + {}, y - 1", "x + {}, y + 1")
    )
    values = {"gx": f"({right}) - ({left})", "gy": f"({below}) - ({above})", "out": "max(gx(x, y), gy(x, y))"}
    document = {
        "format": 1, "name": "gradients", "inputs": [{"name": "image", "type": "uint8", "dims": ["x", "y"]}],
        "stages": [{"name": name, "dims": ["x", "y"], "value": value} for name, value in values.items()],
        "outputs": ["out"], "estimates": {"out": [[0, 32], [0, 8]]},
    }  # fmt: skip
    (work,) = works(load(document), ORDERS[0], {}, {"x": 32, "y": 8}, 8).values()
    assert dict(work.operations)["f32"].convert == 8


def test_what_stages_of_one_loop_load_is_chosen_and_clamped_once() -> None:
    """Sums and greatest elements of columns within a constant boundary, which are kept in registers."""
    column = [f"image(x, y + {k})" for k in (-1, 0, 1)]
    values = {
        "sums": " + ".join(column),
        "most": f"max({', '.join(column)})",
        "out": "sums(x - 1, y) + sums(x + 1, y) + most(x - 1, y) + most(x + 1, y)",
    }
    image = {"name": "image", "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "constant", "value": 0.0}}
    document = {
        "format": 1, "name": "columns", "inputs": [image],
        "stages": [{"name": name, "dims": ["x", "y"], "value": value} for name, value in values.items()],
        "outputs": ["out"], "estimates": {name: [[0, 64], [0, 8]] for name in ("image", "out")},
    }  # fmt: skip
    levels = {name: Levels(0, 1, True) for name in ("sums", "most")}
    found = works(load(document), ORDERS[0], levels, {"x": 64, "y": 8}, 8)
    both = [found["sums"], found["most"]]
    assert sum(dict(w.operations)["f32"].select for w in both) == 3 + 2  # two choose the greatest
    assert [sum(t.times for t in w.edges.loads) for w in both if w.edges is not None] == [1.5, 1.5]


def _enlarged(rows: str, by: int) -> Work:
    """The work of a stage that enlarges an image and is kept in registers, by readers of `rows`."""
    up, ring = F("up"), F("ring")
    stages = [
        stage("up", "xyc", F("input")(x // by, y, c)),
        stage("ring", "xyc", up(x, y, c) + 1),
        stage("out", "xyc", ring(x, y, c) + (up(x, y, c) if rows == "out" else ring(x, y + 1, c))),
    ]
    facts = gather(normalise(pipeline("enlarged", stages, {"out": (64, 16, 2)}, {"input": "xyc"})))
    members = members_of(facts, "out", facts.graph.stages)
    axes = {d: axis(d, e, [e]) for d, e in (("x", 64), ("y", 16), ("c", 2))}
    nest = Nest("out", ("c.inner", "x.inner", "y.inner"), axes)
    levels = {"up": Levels(1, 2, True), "ring": Levels(1, 3)}
    running = Running({"up": Run("x", 8, True), "ring": Run("x", 8), "out": Run("x", 8)})
    counts = worked_counts(members, effective(members, frozenset(), {}, {"up"}), nest, levels, 1, running).at((0,))
    (found,) = (s.work for s in counts.stages if s.stage == "up" and s.work is not None)
    return found


@pytest.mark.parametrize(("rows", "by", "way"), [("out", 2, "shared"), ("ring", 2, "shared"), ("out", 3, "gathered")])
def test_elements_that_several_lanes_read_are_one_load(rows: str, by: int, way: str) -> None:
    """In a loop that stages share and in one of their own, where they are the same lanes in each vector."""
    (found,) = (t for t in _enlarged(rows, by).loads if t.way != "aligned")
    assert (found.way, found.stride) == (way, by if way == "shared" else 1)


@pytest.mark.parametrize(
    ("place", "lanes", "way"),
    [
        (x // 4 * 4 + (x + 2) % 4, 8, "unaligned"),
        (x // 4 * 4 + (x + 2) % 4, 2, "gathered"),
        (x - (x + 1) % 3, 8, "gathered"),
        (x // 3 * 3, 8, "near"),
        (x // 48 * 48, 8, "gathered"),
    ],
)
def test_places_in_another_order_in_each_vector_are_gathered(place: E, lanes: int, way: str) -> None:
    """But for those that go one way: these are near each other."""
    of = pipeline("ordered", [stage("out", "xy", F("input")(place, y))], {"out": (64, 16)}, {"input": "xy"})
    assert {t.way for t in outputs_work(of, lanes).loads} - {"aligned"} == {way}


@pytest.mark.parametrize(("place", "way"), [(x * -1 + 63, "reversed"), (x // 2, "shared"), (x * 2, "strided")])
def test_rows_that_are_read_at_several_rates_are_read_in_order(place: E, way: str) -> None:
    """As those of a picture and of its mirror image: each line of places is one of its own."""
    f = F("input")
    of = pipeline(
        "lines", [stage("out", "xy", f(x, y) + f(place, y) + f(x + 1, y))], {"out": (64, 16)}, {"input": "xy"}
    )
    assert [t.way for t in outputs_work(of, 8).loads] == ["aligned", "unaligned", way]


@pytest.mark.parametrize(("place", "way"), [(x // 8, "uniform"), (x // 16 + 1, "uniform"), (x // 12, "gathered")])
def test_what_all_lanes_read_is_one_load(place: E, way: str) -> None:
    """Vectors without a multiple of the divisor inside of them."""
    of = pipeline("blocks", [stage("out", "xy", F("input")(place, y))], {"out": (64, 16)}, {"input": "xy"})
    assert {t.way for t in outputs_work(of, 8).loads} == {way}


def test_what_is_inline_and_the_same_in_every_vector_is_worked_out_before() -> None:
    cosine = E(Call("cos", (Cast((x % 4).e, FLOAT32),), FLOAT32))
    stages = [stage("weights", "x", cosine), stage("out", "xy", F("weights")(x) * F("input")(x, y))]
    of = pipeline("repeated", stages, {"out": (64, 16)}, {"input": "xy"})
    assert sum(o.multiply + o.add for _, o in outputs_work(of, 8).operations) == 1
    assert sum(o.multiply + o.add for _, o in outputs_work(of, 2).operations) > 5


@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("rows", [(0,), (-1, 0, 2)], ids=str)
@pytest.mark.parametrize("shifts", [(0,), (0, 2), (-1, 0, 1), (-9, 9), (3, 5), tuple(range(-17, 10))], ids=str)
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_held_in_registers_is_what_the_code_keeps(
    stream: bool, shifts: tuple[int, ...], rows: tuple[int, ...], lanes: int
) -> None:
    """However few elements of a window are read, all of its vectors wait for the last of them; of each row that streams
    the vector before does, and two say which lanes are whose."""
    f = F("f")
    reads = [f(x + a, y + b) for a in shifts for b in rows]
    stages = [stage("f", "xy", F("input")(x, y) + 1), stage("out", "xy", total(reads))]
    of = pipeline("windows", stages, {"out": (256, 64)})
    group = Group(
        output="out",
        loops=("y.inner", "x.inner", "x.outer", "y.outer"),
        tiles=(Tile("x", None), Tile("y", 4)),
        parallel=None,
        vector=Vector("x", lanes),
        unroll=("y",),
        placements=(Placement("f", "x.inner", "x.outer", storage="registers", vector=Vector("x", lanes)),),
        stream=stream,
    )
    schedule, platform = Schedule("windows", "by hand", (group,)), catalog.get("epyc-9655")
    (counts,) = counts_of(rewrite(of, schedule), platform)
    code = generate(of, schedule, platform).code
    assert counts.stages[-1].work is not None
    (size, vectors), *streamed = counts.stages[-1].work.held
    windows = "".join(re.findall(r"^struct windows\d+ {\n(.*?)^};", code, re.MULTILINE | re.DOTALL))
    assert (size, vectors) == (4, windows.count("f_before"))
    assert [n for _, n in streamed] == [3 * windows.count("out_before")] * stream
    assert not stream or counts.stages[-1].work.loads[-1] == Transfer("shuffled", 4, 1.0)


def test_neighbours_that_are_summed_are_vectors_wherever_a_remainder_moves_them() -> None:
    """Blocks of eight, displaced by what `k` says."""
    of = load(
        {
            "format": 1, "name": "displaced",
            "inputs": [{"name": n, "type": "uint8", "dims": ["x", "y"]} for n in "ab"],
            "stages": [{"name": "out", "dims": ["x", "y", "k"], "value":
                        "sum(uint16(absd(a(8 * x + p, y), b(8 * x + p + k % 9, y + k // 9))) for p in range(8))"}],
            "outputs": ["out"], "estimates": {"out": [[0, 640], [0, 64], [0, 81]]},
        }
    )  # fmt: skip
    platform = catalog.get("i7-6700")
    (counts,) = counts_of(rewrite(of, root_schedule(of, platform)), platform)
    work = counts.stages[-1].work
    assert work is not None
    assert {t.way for t in work.loads} == {"unaligned"}
    assert {(t.bytes, t.times) for t in work.loads} == {(8, 1)}, "eight bytes of each point are one element"
    assert dict(work.operations)["i64"].add == 2, "one instruction for eight, and one for the sum"


@pytest.mark.parametrize(("reach", "alike"), [(1, 1), (3, 3), (7, 7)])
def test_shifts_along_a_window_are_of_two_registers_to_either_side(reach: int, alike: int) -> None:
    reads = [F("f")(x + a, y) for a in range(-reach, reach + 1)]
    stages = [stage("f", "xy", F("input")(x, y) + 1), stage("out", "xy", total(reads))]
    of = pipeline("window", stages, {"out": (256, 64)})
    placement = Placement("f", "x.inner", "y.inner", storage="registers", vector=Vector("x", 8))
    loops, tiles = ("x.inner", "y.inner", "x.outer", "y.outer"), (Tile("x", None), Tile("y", None))
    schedule = Schedule("window", "by hand", (Group("out", loops, tiles, None, Vector("x", 8), (), (placement,)),))
    (counts,) = counts_of(rewrite(of, schedule), catalog.get("i7-6700"))
    assert counts.stages[-1].work is not None
    (shifted,) = (t for t in counts.stages[-1].work.loads if t.way == "shuffled")
    assert (shifted.times, shifted.stride) == (pytest.approx(2 * reach), alike)
