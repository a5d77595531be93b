"""Rfactor: a factored pipeline computes what the pipeline computes, of domains of every size, and requires no more."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from tilesmith.scheduler.analysis.dependence import pure_dims
from tilesmith.scheduler.analysis.stage_graph import is_plain
from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.expressions import Access, Const, Reduce, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Factor
from tilesmith.scheduler.rewrites.passes import normalise
from tilesmith.scheduler.rewrites.rfactor import factored, reductions

PHOTO = {"name": "photo", "type": "uint8", "dims": ["x", "y"]}
REALS = {"name": "reals", "type": "float32", "dims": ["x", "y"]}
SIZES = [(1, 1), (2, 3), (3, 5), (8, 4), (9, 7), (13, 1), (16, 12)]


def pipeline_of(*stages: dict[str, object], outputs: Sequence[str] = ("out",), **estimates: object) -> Pipeline:
    """`n` and `m` are params from -9 to 99."""
    params = [{"name": n, "type": "int32", "min": -9, "max": 99, "default": 3} for n in "nm"]
    dims = {str(s["name"]): s["dims"] for s in stages}
    found = {name: [[0, 16]] * len(dims[name]) for name in outputs}  # type: ignore[arg-type]
    return load(
        {
            "format": 1,
            "name": "test",
            "inputs": [PHOTO, REALS],
            "params": params,
            "stages": list(stages),
            "outputs": list(outputs),
            "estimates": found | estimates,
        }
    )


def stage(name: str, dims: str, value: object, **more: object) -> dict[str, object]:
    return {"name": name, "dims": list(dims), "value": value, **more}


def images(width: int, height: int) -> dict[str, Image]:
    rng = np.random.default_rng(width * 100 + height)
    photo = rng.integers(0, 256, (height, width)).astype(np.uint8)
    return {"photo": Image(photo, (-2, 3)), "reals": Image(rng.random((height, width)).astype(np.float32), (-2, 3))}


def assert_same(
    pipeline: Pipeline,
    factors: Sequence[Factor],
    sizes: Sequence[tuple[int, int]] = tuple(SIZES),
    params: Sequence[dict[str, int]] = ({},),
    tolerance: float = 0,
) -> Pipeline:
    """Compares values and required regions; the factored pipeline."""
    cut = factored(pipeline, factors)
    normal, normal_cut = normalise(pipeline), normalise(cut)
    regions = {name: tuple((1, 5) for _ in pipeline.stage(name).dims) for name in pipeline.outputs}
    for (width, height), values in itertools.product(sizes, params):
        inputs = images(width, height)
        expected = interpret(pipeline, inputs, values, regions)
        for of in (cut, normal_cut):
            got = interpret(of, inputs, values, regions)
            for name, arrays in expected.items():
                for a, b in zip(arrays, got[name], strict=True):
                    np.testing.assert_allclose(b, a, rtol=tolerance)
                    assert a.dtype == b.dtype
        known = {"n": 3, "m": 3} | values
        boxes = {"photo": ((-2, width), (3, height)), "reals": ((-2, width), (3, height))}
        whole = required_regions(normal, regions, known, boxes)
        less = required_regions(normal_cut, regions, known, boxes)
        for name in ("photo", "reals"):
            for (lo, extent), (low, cut_extent) in zip(whole.get(name, ()), less.get(name, ()), strict=False):
                assert lo <= low
                assert low + cut_extent <= lo + extent
            assert (name in less) == (name in whole)
    return cut


def both(stage: str, number: int, variable: str, parts: int, partial: str = "part") -> list[Factor]:
    return [Factor(stage, number, variable, parts, partial, interleaved) for interleaved in (False, True)]


def in_rows(stage: str, number: int, variable: str, parts: int, row: int) -> Factor:
    return Factor(stage, number, variable, parts, "part", True, row)


LOOPS = " ".join(
    f"for {r} in range(photo.min.{d}, photo.min.{d} + photo.extent.{d})" for r, d in (("r", "x"), ("s", "y"))
)


@pytest.mark.parametrize(("parts", "row"), [(2, 2), (2, 4), (3, 5)])
def test_parts_of_neighbours_take_as_many_in_their_turn(parts: int, row: int) -> None:
    pipeline = pipeline_of(stage("total", "", f"sum(int32(photo(r, s)) {LOOPS})"), stage("out", "x", "total() + x"))
    cut = assert_same(pipeline, [in_rows("total", 0, "r", parts, row)])
    (domain,) = [r.domain for r in reductions(cut.stage("part")) if isinstance(r, Reduce)]
    assert sum(isinstance(r.extent, Const) and r.extent.value == row for r in domain) == 1


def test_strips_have_no_rows_of_neighbours() -> None:
    pipeline = pipeline_of(stage("out", "x", f"sum(int32(photo(r, s)) {LOOPS})"))
    with pytest.raises(IllegalSchedule, match="in a row"):
        factored(pipeline, [Factor("out", 0, "r", 4, "part", neighbours=8)])


@pytest.mark.slow
@pytest.mark.parametrize("parts", [3, 8])
@pytest.mark.parametrize(
    "value",
    [
        f"sum(int32(photo(r, s)) * (r + 2) {LOOPS})",
        f"product(photo(r, s) | 1 {LOOPS})",
        f"min(photo(r, s) - s {LOOPS} if photo(r, s) % 2 == 0)",
        f"max(photo(r, s) {LOOPS})",
        f"any(photo(r, s) > 250 and r > 2 {LOOPS})",
        f"all(photo(r, s) > 3 {LOOPS} if r != s)",
    ],
)
def test_a_reduction_of_the_whole_image(value: str, parts: int) -> None:
    pipeline = pipeline_of(stage("total", "", value), stage("out", "x", "int32(total()) + x"))
    for variable in "rs":
        for factor in both("total", 0, variable, parts):
            cut = assert_same(pipeline, [factor])
            part = cut.stage("part")
            assert part.dims == part.storage == (variable,)
            assert is_plain(part)
            assert is_plain(cut.stage("total"))


@pytest.mark.parametrize("interleaved", [False, True])
def test_only_dims_that_the_terms_use(interleaved: bool) -> None:
    value = "photo(x, y) + sum(int32(photo(x, s)) for s in range(photo.min.y, photo.min.y + photo.extent.y))"
    pipeline = pipeline_of(stage("f", "xy", value, storage=["y", "x"]), stage("out", "", "f(0, 4)"))
    cut = assert_same(pipeline, [Factor("f", 0, "s", 3, "columns", interleaved)], [(4, n) for n in (2, 3, 5, 12)])
    part = cut.stage("columns")
    assert part.dims == ("x", "s")
    assert part.storage == (("s", "x") if interleaved else ("x", "s"))


@pytest.mark.slow
def test_domains_of_every_size() -> None:
    """Empty, negative, smaller than the parts."""
    value = "sum(int32(photo(clamp(x + r, -2, 0), 3)) * r for r in range(m, m + n))"
    pipeline = pipeline_of(stage("out", "x", value))
    params = [{"n": n, "m": m} for n in (-9, -4, -1, 0, 1, 2, 3, 4, 5, 7, 8, 9, 31) for m in (-7, 0, 3)]
    for parts in (2, 3, 4, 8):
        for factor in both("out", 0, "r", parts):
            assert_same(pipeline, [factor], [(3, 1)], params)


@pytest.mark.slow
def test_empty_domains_require_no_more() -> None:
    """The first value of an empty range is read, as far as a bound can tell; so it is of the parts."""
    value = "sum(int32(photo(r, 3)) for r in range(m, m + n))"
    scatter = {"domain": {"r": ["m", "n"]}, "at": ["photo(r, 3) % 4"], "value": "out(photo(r, 3) % 4) + r"}
    for pipeline in (pipeline_of(stage("out", "x", value)), pipeline_of(stage("out", "x", "0", updates=[scatter]))):
        params = [{"n": n, "m": m} for n in range(-5, 12) for m in (-2, 0)]
        for parts in (2, 4):
            for factor in both("out", 0, "r", parts):
                assert_same(pipeline, [factor], [(20, 1)], params)


def test_constant_domains() -> None:
    for n in (4, 5, 6, 8, 11):
        pipeline = pipeline_of(stage("out", "x", f"sum(int32(photo(x + r, 3)) * r for r in range(-2, {n - 2}))"))
        for parts in (2, 4):
            for factor in both("out", 0, "r", parts):
                assert_same(pipeline, [factor], [(20, 1)])
        with pytest.raises(IllegalSchedule, match=rf"{n + 1} parts of {n} iterations"):
            factored(pipeline, [Factor("out", 0, "r", n + 1, "part")])


HISTOGRAM = {
    "domain": {"rx": ["photo.min.x", "photo.extent.x"], "ry": ["photo.min.y", "photo.extent.y"]},
    "at": ["photo(rx, ry) // 16"],
    "value": "hist(photo(rx, ry) // 16) + 1",
}


@pytest.mark.slow
@pytest.mark.parametrize("parts", [2, 5])
def test_a_histogram(parts: int) -> None:
    for where in ({}, {"where": "(rx + ry) % 2 == 0"}):
        hist = stage("hist", "i", "uint32(7) + i", updates=[{**HISTOGRAM, **where}])
        pipeline = pipeline_of(hist, stage("out", "x", "hist(x + 3)"))
        for variable in ("rx", "ry"):
            for factor in both("hist", 0, variable, parts):
                cut = assert_same(pipeline, [factor])
                part = cut.stage("part")
                assert variable in pure_dims(part)
                assert part.storage == ("i", variable)
                assert len(normalise(cut).stage("hist").updates) == factor.interleaved  # what is left of the rounds


@pytest.mark.parametrize(("storage", "expected"), [("ic", "irc"), ("ci", "cir")])
def test_tables_of_a_scatter_lie_one_after_the_other(storage: str, expected: str) -> None:
    """Slower than the dims that it scatters in, whatever it keeps in place; the stage itself takes what is left."""
    place = "photo(r, 3) // 16"
    update = {"domain": {"r": ["-2", "photo.extent.x"]}, "at": [place, "c"], "value": f"hist({place}, c) + c"}
    hist = stage("hist", "ic", "i", updates=[update], storage=[*storage])
    cut = assert_same(pipeline_of(hist, stage("out", "x", "hist(x + 3, x)")), [Factor("hist", 0, "r", 4, "part", True)])
    assert "".join(cut.stage("part").storage) == expected
    (scatter,) = cut.stage("part").updates
    assert scatter.where is None
    merge, rest = cut.stage("hist").updates
    assert [r.name for u in (merge, rest) for r in u.domain] == ["r", "r"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "start"),
    [
        ("out(p) + photo(r, 3)", "int32(4)"),
        ("out(p) - photo(r, 3)", "int32(4)"),
        ("out(p) * (int32(photo(r, 3)) | 1)", "3"),
        ("min(out(p), int32(photo(r, 3)))", "99"),
        ("max(out(p), r)", "1"),
        ("out(p) & photo(r, 3)", "-1 - x"),
        ("out(p) | photo(r, 3)", "x"),
        ("out(p) ^ photo(r, 3)", "x"),
        ("out(p) and photo(r, 3) > 9", "x != 2"),
        ("out(p) or photo(r, 3) > 99", "x == 2"),
        ("out(p) & photo(r, 3)", "uint8(99)"),
        ("out(p) & (photo(r, 3) > 9)", "x != 2"),
        ("out(p) ^ (photo(r, 3) > 9)", "x != 2"),
    ],
)
def test_operations_of_scatters(value: str, start: str) -> None:
    for place in ("(photo(r, 3) % 5)", "r"):
        update = {
            "domain": {"r": ["-2", "photo.extent.x"]},
            "at": [place],
            "value": value.replace("p)", f"{place})", 1),
        }
        pipeline = pipeline_of(stage("out", "x", start, updates=[update]))
        for factor in both("out", 0, "r", 4):
            assert_same(pipeline, [factor], [(1, 1), (3, 2), (9, 1), (16, 1)])


@pytest.mark.parametrize(
    "index",
    [
        "r - r",
        "2 * r - r",
        "x + r - r",
        "r - (x + r - 7)",
        "clamp(-r + r, -2, 9)",
        "r * 3 - (r + 1) * 2",
        "r + photo(r, 3) % 4 - r",
        "photo(r - r, 3) % 4",
        "(r - r + 3) // 2",
    ],
)
def test_a_variable_that_an_index_has_several_times(index: str) -> None:
    """Folded, the update has numbers in its place, and the bounds are exact; of the parts they are no wider."""
    for value in (f"out(x) | photo({index}, 3)", f"out(x) + photo({index}, 3)"):
        update = {"domain": {"r": [1, 7]}, "at": ["x"], "value": value}
        pipeline = pipeline_of(stage("out", "x", "0", updates=[update]))
        for factor in both("out", 0, "r", 4):
            assert_same(pipeline, [factor], [(24, 1)])


@pytest.mark.parametrize("index", ["r - r", "2 * r - r", "r * (1 << 20) * 4096 - r"])
def test_a_variable_that_a_place_has_several_times(index: str) -> None:
    """Of what is written, of a condition, and of values, which may wrap."""
    update = {
        "domain": {"r": [1, 7]},
        "at": ["r * 2 - r"],
        "value": f"out(r * 2 - r) + ({index}) * 3",
        "where": "photo(r - r, 3) != r * 3 - r",
    }
    pipeline = pipeline_of(stage("out", "x", "0", updates=[update]))
    for factor in both("out", 0, "r", 4):
        assert_same(pipeline, [factor], [(24, 1)])


def test_tuples() -> None:
    values = ["out(photo(r, 3) % 5)[0] + r", "out(photo(r, 3) % 5)[1] + photo(r, 3)"]
    scatter = {"domain": {"r": ["-2", "photo.extent.x"]}, "at": ["photo(r, 3) % 5"], "value": values}
    pipeline = pipeline_of(stage("out", "x", ["x", "uint8(3)"], updates=[scatter]))
    for factor in both("out", 0, "r", 4):
        assert_same(pipeline, [factor])
    gathered = {
        "domain": {"r": ["-2", "photo.extent.x"]},
        "at": ["x"],
        "value": ["out(x)[0] + r * x", "out(x)[1] + photo(r, 3)"],
        "where": "r % 3 != x % 3",
    }
    pipeline = pipeline_of(stage("out", "x", ["x", "uint8(3)"], updates=[gathered]))
    for factor in both("out", 0, "r", 4):
        cut = assert_same(pipeline, [factor])
        assert not normalise(cut).stage("out").updates


def test_an_update_of_every_point_is_a_reduction_of_each() -> None:
    """Matrix multiplication, between two other updates."""
    domain = {"r": ["photo.min.y", "photo.extent.y"]}
    update = {"domain": domain, "at": ["x", "y"], "value": "f(x, y) + photo(-2, r) * int32(photo(x % 1 - 2, r)) * y"}
    before = {"domain": {}, "at": ["x", "y"], "value": "f(x, y) + 1"}
    after = {"domain": {"s": [0, 3]}, "at": ["s", "y"], "value": "f(s + 1, y) // 2"}
    pipeline = pipeline_of(stage("f", "xy", "x", updates=[before, update, after]), stage("out", "x", "f(x, 2)"))
    for factor in both("f", 1, "r", 4):
        cut = assert_same(pipeline, [factor])
        assert len(cut.stage("f").updates) == 3
        assert len(normalise(cut).stage("f").updates) == 1
        assert is_plain(cut.stage("part"))


def test_what_another_stage_holds_there_is_a_term() -> None:
    """The parts of it do not read the stage that they are parts of."""
    update = {"domain": {"r": [-1, 16]}, "at": [], "value": "min(g(), f())"}
    pipeline = pipeline_of(
        stage("g", "", "int32(photo(-2, 3))"), stage("f", "", "99", updates=[update]), stage("out", "x", "f() + x")
    )
    for factor in both("f", 0, "r", 3):
        part = assert_same(pipeline, [factor]).stage("part")
        assert {n.name for v in part.values for n in walk(v) if isinstance(n, Access)} == {"g"}


def test_floats_are_close_and_refused_if_strict() -> None:
    loops = LOOPS.replace("photo", "reals")
    scatter = {**HISTOGRAM, "value": "hist(photo(rx, ry) // 16) + reals(rx, ry)"}
    sums = pipeline_of(stage("hist", "i", f"sum(reals(r, s) {loops}) * float32(i)"), stage("out", "x", "hist(x)"))
    adds = pipeline_of(stage("hist", "i", "0.0", updates=[scatter]), stage("out", "x", "hist(x)"))
    for pipeline, variable in ((sums, "r"), (adds, "rx")):
        for factor in both("hist", 0, variable, 4):
            assert_same(pipeline, [factor], tolerance=1e-5)
            with pytest.raises(IllegalSchedule, match="strict"):
                factored(pipeline, [factor], strict=True)


def test_factors_of_factors() -> None:
    """Strips of rows for threads, then lanes inside them."""
    sums = pipeline_of(stage("total", "", f"sum(int32(photo(r, s)) * r {LOOPS})"), stage("out", "x", "total() * x"))
    rows, lanes = Factor("total", 0, "s", 3, "strips"), Factor("strips", 0, "r", 4, "lanes", interleaved=True)
    cut = assert_same(sums, [rows, lanes])
    assert cut.stage("lanes").dims == ("s", "r")
    assert cut.stage("lanes").storage == ("r", "s")
    assert [s.name for s in cut.stages] == ["lanes", "strips", "total", "out"]
    hist = pipeline_of(stage("hist", "i", "0", updates=[HISTOGRAM]), stage("out", "x", "hist(x)"))
    cut = assert_same(hist, [Factor("hist", 0, "ry", 3, "strips"), Factor("strips", 0, "rx", 2, "lanes", True)])
    assert cut.stage("lanes").dims == ("i", "ry", "rx")
    again = assert_same(hist, [Factor("hist", 0, "ry", 4, "strips"), Factor("hist", 0, "ry", 2, "pairs")])
    assert again.stage("pairs").dims == ("i", "ry")


def test_reductions_are_numbered() -> None:
    """Values first, each different reduction once; then updates."""
    value = "sum(r for r in range(n)) + max(sum(s + t for s in range(3)) for t in range(n)) * sum(r for r in range(n))"
    update = {"domain": {"r": [0, "n"]}, "at": ["r"], "value": "out(r) + 1"}
    pipeline = pipeline_of(stage("out", "x", value, updates=[update]))
    assert len(reductions(pipeline.stage("out"))) == 4
    factors = [Factor("out", 0, "r", 2, "a"), Factor("out", 1, "t", 2, "b"), Factor("out", 2, "r", 2, "c")]
    params = [{"n": n} for n in (0, 1, 3, 5)]
    assert_same(pipeline, factors, [(1, 1)], params)
    index = pipeline_of(stage("f", "x", "argmin(photo(r, 3) for r in range(-2, 9))[0]"), stage("out", "x", "f(x)"))
    assert len(reductions(index.stage("f"))) == 1


def test_names_do_not_collide() -> None:
    value = "sum(sum(int32(photo(r - r_0, 3)) for r in range(n)) * x for r_0 in range(4))"
    pipeline = pipeline_of(stage("out", "x", value))
    for factor in both("out", 1, "r", 2):
        with pytest.raises(IllegalSchedule, match="inside of another reduction"):
            factored(pipeline, [factor])
    value = "sum(int32(photo(r - r_0 + r_1 + 3, 3)) for r in range(n) for r_0 in range(2) for r_1 in range(2))"
    pipeline = pipeline_of(stage("out", "x", value))
    for factor in both("out", 0, "r", 2):
        assert_same(pipeline, [factor], [(16, 1)], [{"n": n} for n in (0, 1, 2, 5)])


@pytest.mark.parametrize(
    ("factor", "rule"),
    [
        (Factor("none", 0, "r", 2, "part"), "no such stage"),
        (Factor("f", 6, "r", 2, "part"), "has 6 reductions"),
        (Factor("f", -1, "r", 2, "part"), "has 6 reductions"),
        (Factor("f", 0, "s", 2, "part"), "no such variable"),
        (Factor("f", 0, "r", 1, "part"), "1 parts"),
        (Factor("f", 0, "r", 1 << 17, "part"), "parts"),
        (Factor("f", 1, "r", 2, "part"), "argmin"),
        (Factor("f", 3, "r", 2, "part"), "inside of another reduction"),
        (Factor("f", 5, "r", 2, "part"), "not f"),
        (Factor("scan", 0, "r", 2, "part"), "not f"),
        (Factor("f", 4, "r", 9, "part"), "9 parts of 4"),
        (Factor("f", 0, "r", 2, "out"), "taken"),
        (Factor("f", 0, "r", 2, "photo"), "taken"),
        (Factor("f", 0, "r", 2, "n"), "taken"),
        (Factor("f", 0, "r", 2, "sum"), "no name"),
        (Factor("f", 0, "r", 2, "for"), "no name"),
        (Factor("f", 0, "r", 2, "1x"), "no name"),
        (Factor("wide", 0, "r", 2, "part"), "more than 5 dims"),
    ],
)
def test_refused(factor: Factor, rule: str) -> None:
    nested = "min(max(r * t for r in range(n)) for t in range(2, 9))"
    f = stage(
        "f",
        "x",
        f"sum(r for r in range(n)) + argmin(photo(r, 3) for r in range(n))[0] + {nested}",
        updates=[
            {"domain": {"r": [0, 4]}, "at": ["x"], "value": "f(x) + r"},
            {"domain": {"r": [0, 4]}, "at": ["r"], "value": "f(r) + f(r + 1)"},
        ],
    )
    wide = stage("wide", "abcde", "a", updates=[
        {"domain": {"r": [0, 9]}, "at": ["r", "b", "c", "d", "e"], "value": "wide(r, b, c, d, e) + b + c + d + e"}
    ])  # fmt: skip
    scan = stage("scan", "x", "0", updates=[{"domain": {"r": [1, 8]}, "at": ["r"], "value": "f(r) + scan(r - 1)"}])
    pipeline = pipeline_of(f, wide, scan, stage("out", "x", "f(x) + scan(x) + wide(0, 1, 2, 3, 4)"))
    with pytest.raises(IllegalSchedule, match=rule) as caught:
        factored(pipeline, [factor])
    assert f"'{factor.partial}'" in str(caught.value)
    assert f"'{factor.stage}'" in str(caught.value)
