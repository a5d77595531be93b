"""Splitting of separable windows: the split pipeline computes the same and requires no more."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from support.separable_windows import box, explicit, found, outer, pipeline_of, split_by_choice

from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.ir.schedule.schedule import Separation
from tilesmith.scheduler.rewrites.narrow_integers import narrowed
from tilesmith.scheduler.rewrites.passes import normalise
from tilesmith.scheduler.rewrites.split_separable import separated

BOUNDARIES = (None, "repeat_edge", "repeat_image", "mirror_image", "mirror_interior", "constant")


def assert_same(pipeline: Pipeline, tolerance: float = 1e-5) -> Pipeline:
    """Splits every window along every dim; values and regions are those of the pipeline. One of the split ones."""
    normal = normalise(pipeline)
    assert found(pipeline)
    for n, dims in enumerate(found(pipeline)):
        for dim in dims:
            cut = narrowed(separated(normal, (Separation("out", n, dim, "part"),)))
            assert_equal(pipeline, cut, tolerance)
            assert normalise(cut) is cut
    return cut


def assert_equal(pipeline: Pipeline, cut: Pipeline, tolerance: float = 1e-5) -> None:
    dims = pipeline.stage("out").dims
    regions = {"out": tuple([(-2, 9), (1, 7), (0, 3)][: len(dims)])}
    params = {q.name: 3 for q in pipeline.params}
    bounded = any(i.boundary is not None for i in pipeline.inputs)
    whole = {i.name: ((0, 6), (3, 4), (0, 3))[: len(i.dims)] for i in pipeline.inputs} if bounded else {}
    if "other" in whole:
        whole["other"] = ((-1, 5), (2, 3), (1, 2))[: len(dims)]
    whole |= {i.name: ((-4, 9),) for i in pipeline.inputs if i.dims == ("k",)}
    needed = required_regions(normalise(pipeline), regions, params, whole)
    after = required_regions(normalise(cut), regions, params, whole)
    assert {i.name: after.get(i.name) for i in pipeline.inputs} == {i.name: needed.get(i.name) for i in pipeline.inputs}
    images = {}
    for i in pipeline.inputs:
        box = whole.get(i.name) or needed[i.name]
        shape = [n for _, n in reversed(box)]
        rng = np.random.default_rng(len(shape))
        data = rng.random(shape) if i.type.is_float else rng.integers(0, 256, shape)
        images[i.name] = Image(data.astype(i.type.numpy), tuple(lo for lo, _ in box))
    expected, got = (interpret(p, images, params, regions)["out"] for p in (pipeline, cut))
    for a, b in zip(expected, got, strict=True):
        assert a.dtype == b.dtype
        if a.dtype.kind == "f":
            np.testing.assert_allclose(b, a, rtol=0, atol=tolerance * float(np.abs(a).max()))
        else:
            np.testing.assert_array_equal(b, a)


def halves(value: str, **more: str) -> tuple[str, str]:
    """The two steps of `value`, split along y."""
    cut = separated(normalise(pipeline_of(value, **more)), (Separation("out", 0, "y", "part"),))  # type: ignore[arg-type]
    return to_text(cut.stage("part").values[0]), to_text(cut.stage("out").values[0])


def test_the_first_step_is_where_the_image_is() -> None:
    """Not from its edge on: loops that need no boundary are found, and what is known of places holds."""
    for boundary in ("repeat_edge", "mirror_interior"):
        assert halves(box(3, 5), boundary=boundary)[1] == "sum(part(x + i, y) for i in range(-1, 2))"


def test_the_steps_are_written_with_few_operations() -> None:
    gauss = explicit(outer((1, 2, 1), (1, 2, 1)))
    assert halves(f"({gauss}) / 16") == (
        "image(x, y - 1) + image(x, y + 1) + image(x, y) * 2.0",
        "(part(x - 1, y) + part(x + 1, y) + part(x, y) * 2.0) / 16.0",
    )
    sobel = explicit(outer((0.25, 0.5, 0.25), (-1, 0, 1)))
    assert halves(sobel) == (
        "image(x, y - 1) + image(x, y + 1) + image(x, y) * 2.0",
        "(part(x + 1, y) - part(x - 1, y)) * 0.25",
    )
    assert halves(box(3, 5)) == (
        "sum(image(x, y + j) for j in range(-2, 3))",
        "sum(part(x + i, y) for i in range(-1, 2))",
    )
    assert halves("max(" + explicit(outer((1, 1), (1, 1))).replace(" + image", ", image") + ")") == (
        "max(image(x, y - 1), image(x, y))",
        "max(part(x - 1, y), part(x, y))",
    )


@pytest.mark.parametrize("type", ["uint8", "int16", "int32", "float32", "float64"])
@pytest.mark.parametrize("size", [(2, 2), (3, 3), (5, 3), (4, 6), (7, 7)])
def test_boxes(type: str, size: tuple[int, int]) -> None:
    wide, high = size
    for value in (
        explicit([[1] * wide] * high),
        f"sum(sum(image(x + i, y + j) for i in range({wide})) * table(j % 4) * 3 for j in range({high}))",
        box(wide, high),
        box(wide, high, op="min"),
        f"sum(sum(image(x + i, y + j) for i in range({wide})) for j in range({high})) * p + image(x, y)",
    ):
        assert found(pipeline_of(value, type=type)) == [("x", "y")]
        assert_same(pipeline_of(value, type=type))


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_boundaries(boundary: str | None) -> None:
    for value in (explicit(outer((1, 2, 1), (1, 3, 2))), box(3, 5, op="max"), box(5, 3)):
        for type in ("uint8", "float32"):
            assert_same(pipeline_of(value, type=type, boundary=boundary))


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_products_of_two_images_that_begin_elsewhere(boundary: str | None) -> None:
    both = "image(x + i, y + j) * other(x + i, y + j)"
    for value in (
        explicit(outer((1, 2, 1), (1, 3, 2)), "(image({x}, {y}) * other({x}, {y}))"),
        f"sum({both} * exp(-float32(i * i + j * j)) for j in range(-2, 3) for i in range(-1, 2))",
        box(5, 3, "absd(image(x + i, y + j), other(x + i + 1, y + j))"),
    ):
        assert_same(pipeline_of(value, boundary=boundary))


@pytest.mark.parametrize(
    "value",
    [
        explicit(outer((0.06, 0.24, 0.4, 0.24, 0.06), (0.1, 0.8, 0.1))),
        explicit(outer((-1.5, 2, 7), (1 / 3, 0.7, 1 / 7, 11))),
        explicit([[f"table({abs(i)}) * table({abs(j)})" for i in range(-2, 3)] for j in range(-2, 3)]),
        explicit([["p * p", "p", "p * q"], ["2 * p", "2", "2 * q"], ["p * q", "q", "q * q"]]),
        "sum(table(i) * table(j) * p * image(x + i, y + j) for j in range(-2, 3) for i in range(-2, 3))",
        "sum(exp(-float32(i * i)) * image(x + i, y + j) * cos(float32(j)) for j in range(-2, 3) for i in range(3))",
        "sum(p * table(j) * sum(table(i) * image(x + i, y + j) for i in range(3)) / 7 for j in range(-2, 3))",
        "sum(sum(abs(image(x + i, y + j)) for i in range(3)) * table(j) * table(-j) for j in range(-2, 3))",
        "sum(-0.5 * image(2 * x + i, 2 * y + j) for j in range(-1, 3) for i in range(-1, 3))",
        explicit(outer((1, 3, 1), (1, 3, 1)), "image(2 * {x}, (y + {y}) // 2)"),
        explicit(outer((1, 2), (1, 2)), "image(clamp({x}, -1, 4), min({y}, 3))"),
        explicit(outer((1, 1, 1), (1, 1, 1)), "abs(image({x}, {y}) - image({x} - 1, {y} + 1)) * float32({x})"),
        explicit(outer((1, 2, 1), (-1, 0, 1))) + " + image(x, y) * image(x, y) - 3",
        "sqrt(1 + abs(" + explicit(outer((1, 1), (1, 1))) + ")) - 0.5 * (" + explicit(outer((1, 1), (1, -1))) + ")",
        "max(0.5, p, " + explicit([[1] * 3] * 3).replace(" + image", ", image") + ", image(x, y) * 2)",
        "sum(image(x + i, y + 2 * j) for i in range(3) for j in range(3)) / sum(table(i) for i in range(-2, 3))",
    ],
)
def test_weights_and_places(value: str) -> None:
    assert_same(pipeline_of(value))


HERE = "int32(floor((float32({0}) + 0.5) * 0.75))"
X, Y = HERE.format("x"), HERE.format("y")


@pytest.mark.parametrize(
    "value",
    [
        # a transform by blocks, a resize whose taps depend on where they fall, one of them with a weight of the point
        "sum(image(x // 4 * 4 + i, y // 4 * 4 + j) * cos(float32(x % 4 * i)) * cos(float32(y % 4 * j)) {})",
        f"sum(image({X} + i, {Y} + j) * (float32(i) - float32(x) * 0.75) * sqrt(float32(y * j + 9)) {{}})",
        f"sum(image({X} + i, {Y} + j) * table(i) * (float32(y) * 0.75 - float32(j)) {{}}) * image(x, y)",
    ],
)
@pytest.mark.parametrize("boundary", [None, "repeat_edge"])
def test_weights_depend_on_the_dim_that_they_go_along(value: str, boundary: str | None) -> None:
    of = pipeline_of(value.format("for j in range(4) for i in range(4)"), boundary=boundary)
    assert found(of) == [("x", "y")]
    assert_same(of)


def test_weights_that_depend_on_the_other_dim_are_in_the_second_step() -> None:
    loops = "for j in range(4) for i in range(4)"
    of = pipeline_of(f"sum(image(x + i, y + j) * sqrt(float32(x * j + 9)) * float32(y + j) {loops})")
    assert found(of) == [("x",)]
    assert_same(of)
    for value in ("sqrt(float32(x * j + 9)) * float32(y * i)", "sqrt(float32(x * i + y + 9))"):
        assert found(pipeline_of(f"sum(image(x + i, y + j) * {value} {loops})")) == []
    assert found(pipeline_of(f"sum(image({X} + i, {Y} + i + j) * float32(x * i) {loops})")) == []


def test_integers_wrap() -> None:
    value = explicit(outer((100, -77, 3), (90, 14, -50)))
    assert found(pipeline_of(value, type="int32")) == [("x", "y")]
    for type in ("int32", "uint32"):
        assert_same(pipeline_of(value.replace("-", "- ") if type == "int32" else value.replace("-", ""), type=type))
    assert_same(pipeline_of("uint8(" + explicit(outer((9, 8), (7, 20))) + ") // 3 + 1", type="uint8"))


def test_terms_that_are_added_up_first() -> None:
    twice = " + ".join([explicit(outer((1, 2, 1), (1, 2, 1)))] * 2)
    assert_same(pipeline_of(twice, type="int16"))
    gone = explicit(outer((1, 2, 1), (1, 0, 1))) + " + image(x - 9, y) - image(x - 9, y)"
    assert found(pipeline_of(gone, type="int32")) == [("x", "y")]


def test_three_dims_one_after_the_other() -> None:
    value = "sum(image(x + i, y + j, c + k) for k in range(2) for j in range(-1, 2) for i in range(3))"
    for of in (
        pipeline_of(value, dims="xyc"),
        pipeline_of(" + ".join(f"image(x + {i}, y + {j}, c + {k})" for k in (0, 1) for j in (0, 1) for i in (0, 2)),
                    dims="xyc"),
    ):  # fmt: skip
        assert found(of) == [("x", "y", "c")]
        cut = separated(normalise(of), (Separation("out", 0, "c", "a"), Separation("out", 0, "y", "b")))
        assert [s.name for s in cut.stages] == ["a", "b", "out"]
        assert "b(" in to_text(cut.stage("out").values[0])
        assert_equal(of, cut)
        other = separated(normalise(of), (Separation("out", 0, "x", "a"), Separation("out", 0, "y", "b")))
        assert_equal(of, other)


def test_only_the_dims_that_are_needed() -> None:
    channels = {"name": "plane", "dims": ["x", "y"], "value": "image(x, y, 0)"}
    value = "float32(c) * (" + explicit(outer((1, 2, 1), (1, 2, 1)), "plane({x}, {y})") + ")"
    cut = assert_same(pipeline_of(value, channels, dims="xyc"))
    assert cut.stage("part").dims == ("x", "y")


def test_updates_that_are_folded() -> None:
    of = pipeline_of(0)
    updates = [{"domain": {"i": [-1, 3], "j": [-1, 3]}, "at": ["x", "y"], "value": "out(x, y) + image(x + i, y + j)"}]
    document = {"name": "out", "dims": ["x", "y"], "value": "float32(0)", "updates": updates}
    of = load(
        {
            "format": 1,
            "name": "test",
            "inputs": [{"name": "image", "type": "float32", "dims": ["x", "y"]}],
            "stages": [document],
            "outputs": ["out"],
            "estimates": {"out": [[0, 9], [0, 9]]},
        }
    )
    assert found(of) == [("x", "y")]
    assert_same(of)


@pytest.mark.slow
def test_random_windows() -> None:
    for seed in range(20):
        r = Random(seed)
        type = r.choice(("uint8", "int16", "uint16", "int32", "float32"))
        numbers = (1, 2, 3, 5, 100) if type.startswith("u") else (1, 2, 3, -1, -2, 7, 100)
        u, v = ([r.choice(numbers) for _ in range(r.randint(2, 5))] for _ in range(2))
        dims = r.choice(("x + {}", "2 * x + {}", "x // 2 + {}")), r.choice(("y + {}", "2 * y + {}", "(y + {}) // 2"))
        terms = [f"{a} * {b} * image({dims[0].format(i)}, {dims[1].format(j)})"
                 for j, a in enumerate(u) for i, b in enumerate(v)]  # fmt: skip
        r.shuffle(terms)
        value = " + ".join(terms) + r.choice(("", " + p * image(x, y) * image(x, y)", " + 3"))
        of = pipeline_of(value, type=type, boundary=r.choice(BOUNDARIES))
        assert found(of), (seed, value)
        assert_same(of)


def test_refused() -> None:
    normal = normalise(pipeline_of(explicit(outer((1, 2, 1), (1, 2, 1)))))
    whole = Separation("out", 0, "y", "part")
    for separation, rule in (
        (replace(whole, window=1), "the stage has 1 windows"),
        (replace(whole, stage="image"), "no such stage"),
        (replace(whole, dim="c"), "along x and y only"),
        (replace(whole, partial="image"), "the name is taken"),
        (replace(whole, partial="sum"), "no name for a stage"),
    ):
        with pytest.raises(IllegalSchedule, match=rule) as refused:
            separated(normal, (separation,))
        assert f"separation '{separation.partial}' of stage '{separation.stage}'" in str(refused.value)
    with pytest.raises(IllegalSchedule, match="the schedule is strict"):
        separated(normal, (whole,), strict=True)
    integers = normalise(pipeline_of(box(3, 3), type="int16"))
    assert_equal(integers, separated(integers, (whole,), strict=True))


# steps in the other order ------------------------------------------------------------


def steps(first: str, second: str, boundary: str | None = None, type: str = "float32") -> Pipeline:
    rows = {"name": "rows", "dims": ["x", "y"], "value": first}
    return pipeline_of(second, rows, type=type, boundary=boundary)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("(image(x - 1, y) + 2 * image(x, y) + image(x + 1, y)) / 4", "rows(x, y - 1) - rows(x, y + 1)"),
        ("sum(image(x + r, y) for r in range(-2, 3)) / 5", "sum(rows(x, y + r) for r in range(-3, 4)) / 7"),
        ("max(image(x - 1, y), image(x, y), image(x + 1, y))", "max(rows(x, y), rows(x, y + 1))"),
        ("min(image(x + r, y) for r in range(4))", "min(rows(x, y + r) for r in range(-2, 2))"),
        ("table(0) * image(x, y) + table(1) * (image(x - 1, y) + image(x + 1, y))",
         "table(0) * rows(x, y) + table(1) * (rows(x, y - 1) + rows(x, y + 1))"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("boundary", [None, "repeat_edge"])
def test_two_steps_are_exchanged(first: str, second: str, boundary: str | None) -> None:
    of = steps(first, second, boundary)
    chosen = split_by_choice(of)
    assert chosen.plan.schedule.separations == (Separation("out", 0, "y", "out_y", through="rows"),)
    assert "rows" not in chosen.facts.graph.stages
    assert chosen.facts.partial == {"out_y"}
    assert_equal(of, separated(normalise(of), chosen.plan.schedule.separations))
    assert split_by_choice(of, strict=True).plan.schedule.separations == ()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("image(x, y - 1) + image(x, y) + image(x, y + 1)", "rows(x - 1, y) + rows(x, y) + rows(x + 1, y)"),
        ("image(2 * x, y) + image(2 * x + 1, y)", "rows(x, 2 * y) + rows(x, 2 * y + 1)"),
        ("abs(image(x - 1, y) + image(x + 1, y))", "rows(x, y - 1) + rows(x, y + 1)"),
        ("image(x - 1, y) + image(x + 1, y)", "max(rows(x, y - 1), rows(x, y + 1))"),
        ("image(x - 1, y) + image(x + 1, y)", "rows(x, y - 1) + rows(x, y) * rows(x, y)"),
    ],
)
def test_steps_that_stay(first: str, second: str) -> None:
    assert split_by_choice(steps(first, second)).plan.schedule.separations == ()


def test_what_can_be_put_in() -> None:
    of = steps("image(x - 1, y) + image(x + 1, y)", "rows(x, y - 1) + rows(x, y + 1)")
    normal = normalise(of)
    exchange = Separation("out", 0, "y", "part", through="rows")
    assert_equal(of, separated(normal, (exchange,)))
    assert_equal(of, separated(normal, (replace(exchange, dim="x"),)))
    pair = {"name": "rows", "dims": ["x", "y"], "value": ["image(x, y)", "image(x, y)"]}
    for through, other, rule in (
        ("image", normal, "there is no stage 'image'"),
        ("out", normal, "the stage does not read 'out'"),
        ("rows", normalise(pipeline_of("rows(x, y)[0]", pair)), "it cannot be put in"),
    ):
        with pytest.raises(IllegalSchedule, match=rule):
            separated(other, (replace(exchange, through=through),))
