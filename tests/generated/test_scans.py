"""Scans along rows and across them, compiled: against the interpreter, at sizes around those of blocks of rows."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from support.calls import call
from support.interpreted import interpreted
from support.machines import machine
from support.native import build
from support.threads import threads

from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.pipeline.expressions import Access, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Vector
from tilesmith.scheduler.search.vectorize_and_parallelize import root_schedule

FLOATS = {"name": "input", "type": "float32", "dims": ["x", "y"]}
BYTES = {"name": "input", "type": "uint8", "dims": ["x", "y"]}
ALONG_X = {"domain": {"r": [1, "input.extent.x - 1"]}, "at": ["r", "y"]}
BACK_X = {"domain": {"r": [1, "input.extent.x - 1"]}, "at": ["input.extent.x - 1 - r", "y"]}
ALONG_Y = {"domain": {"r": [1, "input.extent.y - 1"]}, "at": ["x", "r"]}
BACK_Y = {"domain": {"r": [1, "input.extent.y - 1"]}, "at": ["x", "input.extent.y - 1 - r"]}


def scans(image: dict[str, object], value: object, *updates: tuple[dict[str, object], object]) -> Pipeline:
    stage = {"name": "f", "dims": ["x", "y"], "value": value, "updates": [{**at, "value": v} for at, v in updates]}
    estimates = {name: [[0, 640], [0, 480]] for name in ("f", "input")}
    document = {"format": 1, "name": "scans", "inputs": [image], "stages": [stage], "outputs": ["f"]}
    return load(document | {"estimates": estimates})


BOTH_X = (
    (ALONG_X, "f(r - 1, y) * 0.75 + f(r, y) * 0.25"),
    (BACK_X, "f(input.extent.x - r, y) * 0.75 + f(input.extent.x - 1 - r, y) * 0.25"),
)
BOTH_Y = (
    (ALONG_Y, "f(x, r - 1) * 0.75 + f(x, r) * 0.25"),
    (BACK_Y, "f(x, input.extent.y - r) * 0.75 + f(x, input.extent.y - 1 - r) * 0.25"),
)
SUMS = ((ALONG_X, "f(r - 1, y) + f(r, y)"), (ALONG_Y, "f(x, r - 1) + f(x, r)"))
SECOND = {"domain": {"r": [2, "input.extent.x - 2"]}, "at": ["r", "y"]}
CASES = {
    "both ways along rows": scans(FLOATS, "input(x, y)", *BOTH_X),
    "both ways across rows": scans(FLOATS, "input(x, y)", *BOTH_Y),
    "four passes": scans(FLOATS, "input(x, y)", *BOTH_X, *BOTH_Y),
    "sums of areas": scans(BYTES, "int32(input(x, y))", *SUMS),
    "sums of areas of squares": scans(BYTES, "uint64(input(x, y)) * uint64(input(x, y))", *SUMS),
    "running extremes, a tuple": scans(
        BYTES,
        ["int16(input(x, y))", "int16(input(x, y))"],
        (ALONG_X, ["min(f(r - 1, y)[0], f(r, y)[0])", "max(f(r - 1, y)[1], f(r, y)[1])"]),
    ),
    "back and along, not to the ends": scans(
        FLOATS,
        "input(x, y)",
        (
            {"domain": {"r": [2, "input.extent.x - 4"]}, "at": ["input.extent.x - 2 - r", "y"]},
            "f(input.extent.x - r, y) * 0.75 + f(input.extent.x - 2 - r, y) * 0.25",
        ),
        ({"domain": {"r": [1, "input.extent.x // 2"]}, "at": ["r", "y"]}, "f(r - 1, y) * 0.5 - f(r, y)"),
        (ALONG_X, "f(r - 1, y) * 0.5 + f(r, y)"),
    ),
    "where the input says": scans(
        BYTES, "int32(input(x, y))", ({**ALONG_X, "where": "input(r, y) > 99"}, "f(r, y) - f(r - 1, y) * 3 + r")
    ),
    "two steps back, and the input's": scans(
        FLOATS,
        "input(x, y)",
        (SECOND, "f(r, y) * 0.5 + input(r - 2, y) * 0.25 + f(r - 1, y) * 0.75 - f(r - 2, y) * 0.5 + input(r, y) * y"),
    ),
    "distances": scans(
        BYTES,
        "0 if input(x, y) > 128 else 100000",
        (ALONG_Y, "min(f(x, r), f(x, r - 1) + 1)"),
        (BACK_Y, "min(f(x, input.extent.y - 1 - r), f(x, input.extent.y - r) + 1)"),
        (ALONG_X, "min(f(r, y), f(r - 1, y) + 1)"),
        (BACK_X, "min(f(input.extent.x - 1 - r, y), f(input.extent.x - r, y) + 1)"),
    ),
    "across rows and along them": scans(FLOATS, "input(x, y)", *BOTH_Y, *BOTH_X),
    "along rows, and up across them": scans(FLOATS, "input(x, y)", *BOTH_X, BOTH_Y[1]),
    "twice across rows each way": scans(FLOATS, "input(x, y)", BOTH_Y[0], *BOTH_Y, BOTH_Y[1]),
    "across rows, of far before, along them, and across them": scans(
        BYTES,
        "int32(input(x, y))",
        ({"domain": {"r": [17, "input.extent.y - 18"]}, "at": ["x", "r"]}, "f(x, r) * 3 - f(x, r - 17) + f(x, r - 2)"),
        (BACK_X, "f(input.extent.x - r, y) * 5 + f(input.extent.x - 1 - r, y)"),
        (ALONG_Y | {"where": "f(x, r - 1) % 3 == 0"}, "f(x, r) - f(x, r - 1)"),
        ({"domain": {}, "at": ["x", "y"]}, "f(x, y) * 2 + y"),
    ),
    "up across rows, sums along them, and up again": scans(
        BYTES,
        "int32(input(x, y))",
        (BACK_Y, "f(x, input.extent.y - r) * 3 - f(x, input.extent.y - 1 - r)"),
        (ALONG_X, "f(r - 1, y) + f(r, y)"),
        (BACK_Y, "f(x, input.extent.y - r) + f(x, input.extent.y - 1 - r)"),
    ),
    "errors that are passed on": scans(
        FLOATS, "input(x, y)", (ALONG_X, "f(r, y) + (f(r - 1, y) - (255.0 if f(r - 1, y) > 127.0 else 0.0))")
    ),
    "costs along a path, by the least of some before": scans(
        BYTES,
        "uint16(input(x, y))",
        (
            {"domain": {"e": [0, "input.extent.x"], "r": [1, "input.extent.y - 1"]}, "at": ["e", "r"]},
            "input(e, r) + min(f(e, r - 1), f(max(e - 1, 0), r - 1) + 9, "
            "min(f(k, r - 1) for k in range(3)) + 90) - min(f(k, r - 1) for k in range(3))",
        ),
    ),
    "a step ahead": scans(
        BYTES,
        "int32(input(x, y))",
        (
            {"domain": {"r": [1, "input.extent.x - 2"]}, "at": ["r", "y"]},
            "f(r - 1, y) // 2 + f(r + 1, y) * 2 - input(r + 1, y)",
        ),
    ),
}
EDGES = {"boundary": {"kind": "repeat_edge"}}
OF_OTHERS = {
    "of what is clamped along the scan": scans(
        FLOATS | EDGES,
        "input(x, y)",
        (ALONG_X, "f(r - 1, y) * 0.5 + input(r + 2, y) - input(r - 3, y) + input(r, y + 1)"),
        (BACK_X, "f(input.extent.x - r, y) * 0.5 + input(input.extent.x - 2 - r, y - 1)"),
    ),
    "of what is looked up": scans(
        BYTES | EDGES,
        "int32(input(x, y))",
        (ALONG_X, "max(f(r - 1, y) - 1, 0) + input(input(r, y) % 8, y) + input(2 * r, y) + input(r, input(r, y) % 4)"),
    ),
    "of what lies further along the rows": scans(
        FLOATS | EDGES, "input(x, y)", (ALONG_X, "f(r - 1, y) * 0.5 + input(r + 9, y) - input(20 - r, y)")
    ),
}
CASES |= OF_OTHERS
BOTH_WIDTHS = (
    "four passes", "sums of areas of squares", "running extremes, a tuple", "distances", "a step ahead",
    "up across rows, sums along them, and up again", "costs along a path, by the least of some before",
)  # fmt: skip
SIZES = ((4, 3), (5, 18), (17, 16), (38, 21))
WIDTHS = (16, 64)
ON_MACHINES = [
    (case, width)
    for n, case in enumerate(CASES)
    for width in (WIDTHS if case in OF_OTHERS or case in BOTH_WIDTHS else WIDTHS[n % 2 :][:1])
]
"""Cases, and bytes of vectors: in turn, as blocks of rows of one type are transposed alike whatever is computed; both
for each type and way, and where rows are read otherwise."""


@pytest.mark.parametrize("case", sorted(OF_OTHERS))
def test_scans_run_in_blocks_of_rows_whatever_they_read_of_others(case: str) -> None:
    """Values carried from one tile to the next are a vector, of a point of each row."""
    made = compile_pipeline(OF_OTHERS[case], machine(vector_bytes=16), Options(strict=True))
    assert re.search(r"[fi]32x4 f_before\w* = ", made.source.code)


@pytest.mark.parametrize("case", ["errors that are passed on", "two steps back, and the input's"])
def test_blocks_of_rows_read_what_values_are_made_of(case: str) -> None:
    """The values are not there first: memory would have two passes of them."""
    (stage,) = compile_pipeline(CASES[case], machine(vector_bytes=16), Options(strict=True)).plan.pipeline.stages
    (update,) = stage.updates
    assert "input" in {e.name for e in walk(update.values[0]) if isinstance(e, Access)}
    assert not any(isinstance(e, Access) and e.indices == update.at and e.name == "f" for e in walk(update.values[0]))


@pytest.mark.parametrize(("case", "vector_bytes"), ON_MACHINES)
def test_scans_compute_what_the_pipeline_says(case: str, vector_bytes: int) -> None:
    of = CASES[case]
    made = compile_pipeline(of, machine(vector_bytes=vector_bytes), Options(strict=True))
    library = build(made.source, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"), vector_bytes=vector_bytes)
    rng = np.random.default_rng(7)
    for width, height in SIZES:
        image = Image(rng.integers(0, 256, (height, width)).astype(of.inputs[0].type.name), (0, 0))
        for region in (((0, width), (0, height)), ((0, max(1, width - 1)), (height // 2, 1))):
            expected = interpreted(of, {"input": image}, {}, {"f": region})["f"]
            with threads(2):
                status, got = call(library, made.source, of, {"input": image}, {}, {"f": region})
            assert status == 0
            for a, b in zip(got["f"], expected, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=f"{width} x {height}, {region}")


PIXELS = ["x", "y", "c"]


def interleaved(type_: str, value: str, *updates: tuple[str, list[str]]) -> Pipeline:
    """Scans of an image of three channels, whose elements lie pixel by pixel: a value, and the place that it is of."""
    image = {"name": "input", "type": type_, "dims": PIXELS, "storage": ["c", "x", "y"]}
    done = [
        {"domain": {"r": [1, f"input.extent.{'x' if 'r' in at[0] else 'y'} - 1"]}, "at": at, "value": v}
        for v, at in updates
    ]
    stage = {"name": "f", "dims": PIXELS, "storage": ["c", "x", "y"], "value": value, "updates": done}
    document = {"format": 1, "name": "pixels", "inputs": [image], "stages": [stage], "outputs": ["f"]}
    return load(document | {"estimates": {n: [[0, 640], [0, 480], [0, 3]] for n in ("f", "input")}})


ACROSS_PIXELS = (
    ("f(x, r - 1, c) * 0.75 + f(x, r, c) * 0.25", ["x", "r", "c"]),
    (
        "f(x, input.extent.y - r, c) * 0.75 + f(x, input.extent.y - 1 - r, c) * 0.25",
        ["x", "input.extent.y - 1 - r", "c"],
    ),
)
OF_PIXELS = {
    "both ways across rows": interleaved("float32", "input(x, y, c)", *ACROSS_PIXELS),
    "sums of areas": interleaved(
        "uint8",
        "int32(input(x, y, c))",
        ("f(r - 1, y, c) + f(r, y, c)", ["r", "y", "c"]),
        ("f(x, r - 1, c) + f(x, r, c)", ["x", "r", "c"]),
    ),
    "neighbours in another image": interleaved(
        "int32",
        "input(x, y, c) * 3",
        ("f(x, r, c) - f(x, r - 1, c) + input(max(x - 1, 0), r - 1, c)", ["x", "r", "c"]),
    ),
    "channels told apart": interleaved("int32", "input(x, y, c)", ("f(x, r - 1, c) + input(x, r, 0)", ["x", "r", "c"])),
    "places told apart": interleaved("int32", "input(x, y, c)", ("f(x, r - 1, c) * x + f(x, r, c)", ["x", "r", "c"])),
}


@pytest.mark.parametrize("case", sorted(OF_PIXELS))
@pytest.mark.parametrize("vector_bytes", [16, 32])
def test_scans_of_interleaved_pixels(case: str, vector_bytes: int) -> None:
    """Rows of fewer elements than a vector, of whole vectors and what is left; parts of images; a single channel, which
    is no flat row."""
    of = OF_PIXELS[case]
    made = compile_pipeline(of, machine(vector_bytes=vector_bytes, threads=2), Options(strict=True))
    library = build(made.source, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"), vector_bytes=vector_bytes)
    rng = np.random.default_rng(7)
    for width, height, channels in ((1, 4, 3), (5, 7, 3), (17, 9, 3), (33, 6, 3), (17, 6, 1), (17, 6, 4)):
        values = rng.integers(0, 256, (height, width, channels)).astype(of.inputs[0].type.name)
        image = Image(np.moveaxis(values, 2, 0), (0, 0, 0))
        for region in (
            ((0, width), (0, height), (0, channels)),
            ((0, max(1, width - 1)), (height // 2, 1), (channels - 1, 1)),
        ):
            (expected,) = interpreted(of, {"input": image}, {}, {"f": region})["f"]
            with threads(2):
                status, got = call(library, made.source, of, {"input": image}, {}, {"f": region})
            assert status == 0
            np.testing.assert_array_equal(got["f"][0], expected, err_msg=f"{width} x {height}, {region}")


def test_updates_of_interleaved_pixels_have_vectors_of_all_elements_of_a_row() -> None:
    """Three vectors side by side, of which none is put together of others."""
    of = OF_PIXELS["both ways across rows"]
    made = compile_pipeline(of, machine(vector_bytes=32, threads=1))
    assert {u.vector for u in made.schedule.groups[0].updates} == {Vector("x", 8)}
    for third in ("3 * xv_0", "3 * xv_0 + 8", "3 * xv_0 + 16"):
        assert re.search(rf"STORE\(f32x8, f_\d+ \+ \({re.escape(third)}\), t_\d+\)", made.source.code)
    assert "SHUFFLE" not in made.source.code
    of = OF_PIXELS["channels told apart"]
    made = compile_pipeline(of, machine(vector_bytes=32, threads=1))
    assert {u.vector for u in made.schedule.groups[0].updates} == {None}


@pytest.mark.parametrize("type_", ["int32", "uint8", "float64"])
@pytest.mark.parametrize(
    ("ways", "block"),
    [
        ("xX", "values and updates 0 to 1"),
        ("xXyY", "values and updates 0 to 2"),  # the last pass, too, before the next plane
        ("xyYX", "values and updates 0 to 1"),
    ],
)
def test_blocks_of_rows_of_several_planes(type_: str, ways: str, block: str) -> None:
    dims, updates = ["x", "y", "c"], []
    for way in ways:
        along, end = way.lower(), f"input.extent.{way.lower()}"
        at, of = (f"{end} - 1 - r", f"{end} - r") if way.isupper() else ("r", "r - 1")
        here, there = ([index if d == along else d for d in dims] for index in (at, of))
        value = f"{type_}(f({', '.join(there)}) + f({', '.join(here)}) * 3)"
        updates.append({"domain": {"r": [1, f"{end} - 1"]}, "at": here, "value": value})
    image = {"name": "input", "type": type_, "dims": dims}
    stage = {"name": "f", "dims": dims, "value": f"{type_}(input(x, y, c) * 2)", "updates": updates}
    document = {"format": 1, "name": "planes", "inputs": [image], "stages": [stage], "outputs": ["f"]}
    of = load(document | {"estimates": {n: [[0, 640], [0, 480], [0, 3]] for n in ("f", "input")}})
    platform = machine(vector_bytes=16, threads=1)
    made = compile_pipeline(of, platform, Options(schedule=root_schedule(of, platform)))
    assert f"f: {block}, by " in made.source.code
    last = made.source.code[: made.source.code.rindex(f"/* update {len(ways) - 1} of f")]
    planes = re.findall(r"\n( +)for \(int64_t c_\d+ = [^{]*{", last)
    assert len(planes) == 1
    library = build(made.source, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"))
    values = np.random.default_rng(7).integers(0, 3, (3, 37, 21)).astype(type_)
    pixels = Image(values, (0, 0, 0))
    for region in (((0, 21), (0, 37), (0, 3)), ((0, 20), (18, 17), (1, 2))):
        (expected,) = interpreted(of, {"input": pixels}, {}, {"f": region})["f"]
        status, got = call(library, made.source, of, {"input": pixels}, {}, {"f": region})
        assert status == 0
        np.testing.assert_array_equal(got["f"][0], expected)


@pytest.mark.parametrize("back", [False, True])
def test_scans_from_plane_to_plane_take_rows_in_the_order_of_memory(back: bool) -> None:
    dims, at, before = ["x", "y", "z"], "r", "r - 1"
    if back:
        at, before = "input.extent.z - 1 - r", "input.extent.z - r"
    value = f"f(x, y, {before}) * 0.5 + f(x, y, {at})"
    update = {"domain": {"r": [1, "input.extent.z - 1"]}, "at": ["x", "y", at], "value": value}
    stage = {"name": "f", "dims": dims, "value": "input(x, y, z) * 2.0", "updates": [update]}
    image = {"name": "input", "type": "float32", "dims": dims}
    document = {"format": 1, "name": "volume", "inputs": [image], "stages": [stage], "outputs": ["f"]}
    of = load(document | {"estimates": {n: [[0, 40], [0, 40], [0, 40]] for n in ("f", "input")}})
    made = compile_pipeline(of, machine(vector_bytes=32, threads=2))
    assert made.schedule.groups[0].updates[0].loops == ("x", "y", "r")
    library = build(made.source, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"), vector_bytes=32)
    volume = Image(np.random.default_rng(3).integers(0, 9, (11, 7, 19)).astype("float32"), (0, 0, 0))
    for region in (((0, 19), (0, 7), (0, 11)), ((1, 17), (3, 2), (4, 7))):
        (expected,) = interpreted(of, {"input": volume}, {}, {"f": region})["f"]
        with threads(2):
            status, got = call(library, made.source, of, {"input": volume}, {}, {"f": region})
        assert status == 0
        np.testing.assert_allclose(got["f"][0], expected, rtol=1e-5)


def test_the_least_of_a_path_is_worked_out_once_for_all_costs() -> None:
    dims, image = ["x", "y", "k"], {"name": "input", "type": "int32", "dims": ["x", "y", "k"]}
    least = "min(f(x, q - 1, r) for r in range(5))"
    step = {
        "domain": {"d": [0, 5], "q": [1, "input.extent.y - 1"]},
        "at": ["x", "q", "d"],
        "value": f"input(x, q, d) + min(f(x, q - 1, max(d - 1, 0)), {least} + 4) - {least}",
    }
    stage = {"name": "f", "dims": dims, "value": "input(x, y, k)", "updates": [step]}
    document = {"format": 1, "name": "path", "inputs": [image], "stages": [stage], "outputs": ["f"]}
    of = load(document | {"estimates": {n: [[0, 640], [0, 480], [0, 5]] for n in ("f", "input")}})
    made = compile_pipeline(of, machine(vector_bytes=16, threads=1))
    (group,) = made.plan.schedule.groups
    assert group.updates[0].loops == ("d", "x", "q")
    library = build(made.source, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"))
    for width in (3, 22):
        pixels = Image(np.random.default_rng(7).integers(0, 99, (5, 9, width)).astype(np.int32), (0, 0, 0))
        region = ((0, width), (0, 9), (0, 5))
        (expected,) = interpreted(of, {"input": pixels}, {}, {"f": region})["f"]
        status, got = call(library, made.source, of, {"input": pixels}, {}, {"f": region})
        assert status == 0
        np.testing.assert_array_equal(got["f"][0], expected)


STRIPS = {
    "down": ((ALONG_Y, "f(x, r - 1) * 3 + input(x, r)"),),
    "where": ((ALONG_Y | {"where": "input(x, r) % 3 > 0"}, "max(f(x, r - 1), f(x, r)) + input(x, r)"),),
    "up, two steps back": (
        (
            {"domain": {"r": [2, "input.extent.y - 2"]}, "at": ["x", "input.extent.y - 1 - r"]},
            "f(x, input.extent.y - r) * 5 - f(x, input.extent.y + 1 - r) + input(x, input.extent.y - 1 - r)",
        ),
    ),
}


@pytest.mark.parametrize("case", sorted(STRIPS))
@pytest.mark.parametrize("vector_bytes", [16, 64])
def test_scans_down_strips_take_steps_together(case: str, vector_bytes: int) -> None:
    of = scans(BYTES, "int32(input(x, y))", *STRIPS[case])
    of = replace(of, estimates=tuple((name, ((0, 1280), (0, 960))) for name, _ in of.estimates))  # worth threads
    made = compile_pipeline(of, machine(vector_bytes=vector_bytes))
    assert re.search(r"r_\d+ \+= [48]\)", made.source.code)
    library = build(made.source, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"), vector_bytes=vector_bytes)
    for height in (1, 2, 8, 9, 10, 11, 17, 18, 40):
        image = Image(np.random.default_rng(7).integers(0, 256, (height, 37)).astype("uint8"), (0, 0))
        region = ((0, 37), (0, height))
        (expected,) = interpreted(of, {"input": image}, {}, {"f": region})["f"]
        with threads(2):
            status, got = call(library, made.source, of, {"input": image}, {}, {"f": region})
        assert status == 0
        np.testing.assert_array_equal(got["f"][0], expected)


def test_threads_have_strips_of_rows_that_scans_go_along_side_by_side() -> None:
    of = CASES["distances"]
    made = compile_pipeline(of, machine(vector_bytes=16, threads=16))
    *_, along, back = made.schedule.groups[0].updates
    assert (along.vector, along.parallel) == (back.vector, back.parallel) == (Vector("y", 4), "y")
    assert len(re.findall(r"y_\d+ \+= 32\)", made.source.code)) == 1  # 480 rows, 16 threads, whole vectors
    library = build(made.source, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"))
    for height in (1, 31, 32, 67, 100):
        image = Image(np.random.default_rng(7).integers(0, 256, (height, 21)).astype("uint8"), (0, 0))
        region = ((0, 21), (0, height))
        (expected,) = interpreted(of, {"input": image}, {}, {"f": region})["f"]
        with threads(2):
            status, got = call(library, made.source, of, {"input": image}, {}, {"f": region})
        assert status == 0
        np.testing.assert_array_equal(got["f"][0], expected)
