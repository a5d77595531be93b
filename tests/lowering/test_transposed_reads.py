"""Stages that read rows of memory as columns do so in blocks, which are transposed in registers."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from support.lowered_values import assert_computes, program_of

from tilesmith.scheduler.analysis.transposed_reads import dims_along_rows
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.loop.ops import Gather
from tilesmith.scheduler.ir.loop.program import Apart, Body, Define, Loop
from tilesmith.scheduler.ir.loop.traversal import walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Tile, UpdateLoops, Vector

INTERLEAVED = {"dims": ["x", "y", "c"], "storage": ["c", "x", "y"]}
PLANES = {"dims": ["x", "y"]}


def pipeline(value: str, type_: str = "uint8", shape: Mapping[str, object] = PLANES) -> Pipeline:
    """One stage of `value`, which has the type of its input `a`."""
    out = {"name": "out", **shape, "value": value}
    estimates = [[0, 320], [0, 240], [0, 3]][: len(out["dims"])]
    image = {"name": "a", "type": type_, **shape}
    return load(
        {"format": 1, "name": "turn", "inputs": [image], "stages": [out], "outputs": ["out"],
         "estimates": {"out": estimates, "a": [estimates[1], estimates[0], *estimates[2:]]}}
    )  # fmt: skip


def group(p: Pipeline, lanes: int) -> Group:
    """Tiles of 64 x 64; channels are unrolled."""
    tiles, loops = (Tile("y", 64), Tile("x", 64)), ("x.inner", "y.inner", "x.outer", "y.outer")
    if p.stages[0].dims == ("x", "y"):
        return Group("out", loops, tiles, None, Vector("x", lanes), (), ())
    return Group("out", ("c.inner", *loops), tiles, None, Vector("x", lanes), ("c",), ())


def often(body: Body) -> list[object]:
    """The statements of a program but those that stand apart, as they run seldom."""
    found: list[object] = []
    for s in body:
        if not isinstance(s, Apart):
            found += [s, *(x for part in vars_of(s) for x in often(part))]
    return found


def vars_of(s: object) -> list[Body]:
    return [getattr(s, name) for name in ("body", "otherwise") if isinstance(getattr(s, name, None), tuple)]


TURNS = {
    "transposed": "a(y, x)",
    "clockwise": "a(y, a.extent.y - 1 - x)",
    "back": "a(a.extent.x - 1 - y, x)",
    "across": "a(a.extent.x - 1 - y, a.extent.y - 1 - x)",
    "neighbours": "max(a(y, x), a(y + 1, x))",
    "both": "min(a(y, x), a(x, y))",
}


@pytest.mark.parametrize(("type_", "lanes"), [("uint8", 32), ("uint8", 64), ("uint16", 16), ("float32", 8)])
@pytest.mark.parametrize("turn", TURNS)
def test_rows_are_read_as_columns(turn: str, type_: str, lanes: int) -> None:
    """Rows that are no whole blocks, and images of fewer rows than these have."""
    p = pipeline(TURNS[turn], type_)
    program = program_of(p, [group(p, lanes)], lanes * {"uint8": 1, "uint16": 2, "float32": 4}[type_])
    made = [s.op for s in often(program.body) if isinstance(s, Define)]
    assert not any(isinstance(op, Gather) for op in made)
    more = 1 if turn == "neighbours" else 0
    for width, height in ((70, 37), (33, 5)):
        sizes = {"a": ((0, height + more), (0, width))}
        sizes = {"a": ((0, max(width, height)), (0, max(width, height)))} if turn == "both" else sizes
        assert_computes(p, program, [((0, width), (0, height))], sizes)


@pytest.mark.parametrize("turn", ["a(y, x, c)", "a(y, a.extent.y - 1 - x, c)"])
def test_pixels_are_read_as_columns(turn: str) -> None:
    """All channels of a block are transposed together."""
    p = pipeline(turn, shape=INTERLEAVED)
    program = program_of(p, [group(p, 32)])
    loops = [s for s in often(program.body) if isinstance(s, Loop) and s.step.const == 16]
    assert loops
    assert not any(isinstance(s, Define) and isinstance(s.op, Gather) for x in loops for s in often(x.body))
    assert_computes(p, program, [((0, 70), (0, 37), (0, 3))], {"a": ((0, 37), (0, 70), (0, 3))})


def test_longer_values_than_what_is_read_have_fewer_rows() -> None:
    """Bytes as floats: eight rows of sixteen bytes are a block."""
    p = pipeline("float32(a(y, x)) * 2.0")
    program = program_of(p, [group(p, 8)])
    assert not any(isinstance(s, Define) and isinstance(s.op, Gather) for s in often(program.body))
    assert_computes(p, program, [((0, 21), (0, 37))], {"a": ((0, 37), (0, 21))})


INLINED = Placement("turned", INLINE, INLINE)
DOWN = {"domain": {"r": [1, 71]}, "at": ["x", "r"], "value": "max(acc(x, r), acc(x, r - 1))"}
ALONG = {"domain": {"q": [1, 95]}, "at": ["q", "y"], "value": "max(acc(q, y), acc(q - 1, y))"}


@pytest.mark.parametrize("updates", [[DOWN], [ALONG, DOWN]], ids=["one pass", "in a sweep"])
def test_values_before_updates_are_read_in_blocks(updates: list[object]) -> None:
    """Updates run over the whole of a dim, which so has points for blocks."""
    p = load(
        {
            "format": 1,
            "name": "turn",
            "inputs": [{"name": "a", "type": "int32", **PLANES}],
            "stages": [
                {"name": "turned", **PLANES, "value": "a(y, x)"},
                {"name": "acc", **PLANES, "value": "turned(x, y)", "updates": updates},
                {"name": "out", **PLANES, "value": "acc(x, y) // 2"},
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 96], [0, 72]]},
        }
    )
    passes = {1: UpdateLoops(("x", "r"), Vector("x", 8)), 2: UpdateLoops(("q", "y"))}
    loops = tuple(passes[n] for n in range(len(updates), 0, -1))
    acc = Placement("acc", "y.outer", "y.outer", False, order=("x", "y"), vector=Vector("x", 8), updates=loops)
    tiles, order = (Tile("x", None), Tile("y", None)), ("x.inner", "y.inner", "y.outer", "x.outer")
    program = program_of(p, [Group("out", order, tiles, None, Vector("x", 8), (), (INLINED, acc))])
    assert not any(isinstance(s, Define) and isinstance(s.op, Gather) for s in often(program.body))
    assert_computes(p, program, [((0, 96), (0, 72)), ((0, 96), (0, 21))], {"a": ((0, 72), (0, 96))})


def test_stages_that_are_inline_are_looked_through() -> None:
    """Memory decides, where it is read."""
    document = {
        "format": 1,
        "name": "turn",
        "inputs": [{"name": "a", "type": "uint8", **PLANES}],
        "stages": [
            {"name": "turned", **PLANES, "value": "a(y - 3, x)"},
            {"name": "out", **PLANES, "value": "turned(x, y) // 2"},
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 64], [0, 64]]},
    }
    p = load(document)
    dims = {"a": ("x", "y"), "turned": ("x", "y")}
    turned, out = p.stages
    rows = lambda name: (dims[name], dims[name][:1], 1)  # noqa: E731
    assert dims_along_rows(out, "x", {"turned": turned}, rows) == {"y": 1}
    assert dims_along_rows(out, "x", {}, rows) == {}
    assert dims_along_rows(turned, "y", {}, rows) == {}


def test_stages_that_are_inline_are_looked_through_once() -> None:
    """Sixty exchanges of a sorting network are as many stages, but 2 ** 60 ways from the last to the image."""
    pair = lambda f: [f"min({f}(x, y)[0], {f}(x, y)[1])", f"max({f}(x, y)[0], {f}(x, y)[1])"]  # noqa: E731
    document = {
        "format": 1,
        "name": "network",
        "inputs": [{"name": "a", "type": "uint8", **PLANES}],
        "stages": [
            {"name": "f0", **PLANES, "value": ["a(y, x)", "a(y + 1, x)"]},
            *({"name": f"f{n}", **PLANES, "value": pair(f"f{n - 1}")} for n in range(1, 60)),
        ],
        "outputs": ["f59"],
        "estimates": {"f59": [[0, 64], [0, 64]]},
    }
    p = load(document)
    inlined = {s.name: s for s in p.stages}
    rows = lambda name: (("x", "y"), ("x",), 1)  # noqa: E731
    assert dims_along_rows(p.stages[-1], "x", inlined, rows) == {"y": 1}


@pytest.mark.parametrize("value", ["a(y // 2, x)", "a(min(y, 30), x)", "a(2 * y, x)"])
def test_what_steps_otherwise_is_gathered(value: str) -> None:
    """Blocks are for rows one after the other."""
    p = pipeline(value)
    program = program_of(p, [group(p, 32)])
    assert any(isinstance(s, Define) and isinstance(s.op, Gather) for s in walk(program.body))
    assert_computes(p, program, [((0, 40), (0, 18))])
