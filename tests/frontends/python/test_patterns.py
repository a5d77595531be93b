"""Functional patterns: their laws, their types, and random programs of them against NumPy."""

from __future__ import annotations

import doctest
import random
import sys
from typing import Any

import numpy as np
import pytest

from tilesmith import platforms
from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.frontends.document.document import canonical_json, load, to_document
from tilesmith.scheduler.frontends.python import patterns as p
from tilesmith.scheduler.frontends.python.files import module_of
from tilesmith.scheduler.frontends.python.frontend import (
    Image,
    Param,
    Stage,
    Var,
    constant,
    float32,
    int32,
    maximum,
    minimum,
    mirror_image,
    mirror_interior,
    repeat_edge,
    repeat_image,
    uint8,
    uint16,
)
from tilesmith.scheduler.interpreter import interpreter
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.pipelines import load as shipped

ROWS, COLUMNS = 12, 18
SIZES = {"n": ROWS, "m": COLUMNS}
n, m = p.Size("n"), p.Size("m")


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(-100, 100, shape).astype(np.int32)


def program(value: p.Array, **images: Any) -> Pipeline:
    return p.pipeline("test", {"output": value}, sizes={n: ROWS, m: COLUMNS})


def computed(value: p.Array, *arrays: np.ndarray[Any, Any], **params: float) -> np.ndarray[Any, Any]:
    """The elements of an array of the images `a`, `b`, ..."""
    pipeline = program(value)
    assert load(to_document(pipeline)) == pipeline
    images = {name: interpreter.Image(array, (0,) * array.ndim) for name, array in zip("ab", arrays, strict=False)}
    (result,) = interpreter.interpret(pipeline, images, params, {"output": pipeline.estimate("output")}).values()
    return result[0]


A = p.image("a", int32, n, m)
B = p.image("b", int32, n, m)
LINE = p.image("a", int32, m)
PIXELS, OTHERS, POINTS = numbers(ROWS, COLUMNS), numbers(ROWS, COLUMNS) * 3, numbers(COLUMNS)


def text(value: p.Array) -> str:
    """The expression of each element."""
    return to_document(program(value))["stages"][0]["value"]


def double(v):
    return v * 2


def increment(v):
    return v + 1


def test_the_docstring_runs() -> None:
    results = doctest.testmod(p)
    assert results.attempted > 8
    assert results.failed == 0


class TestHarris:
    def made(self) -> Pipeline:
        return module_of("examples/patterns/harris.py").harris()

    def test_the_listings_are_the_shipped_pipeline(self) -> None:
        assert canonical_json(self.made()) == canonical_json(shipped("harris"))
        assert self.made() == shipped("harris")

    def test_it_is_the_same_every_time(self) -> None:
        assert canonical_json(self.made()) == canonical_json(self.made())

    @pytest.mark.slow
    def test_the_code_is_the_same(self) -> None:
        machine = platforms.load("i7-6700")
        first, second = (compile_pipeline(made, machine).source.code for made in (self.made(), shipped("harris")))
        assert first == second


class TestLaws:
    def test_join_after_split_is_nothing(self) -> None:
        assert text(LINE >> p.split(1) >> p.join) == "a(x)"
        wide = p.image("a", int32, 6 * m)
        assert text(wide >> p.split(6) >> p.join) == text(wide)
        assert p.type_of(wide >> p.split(6) >> p.join) == p.type_of(wide)

    def test_split_after_join_is_nothing(self) -> None:
        tiles = p.image("a", int32, n, 8)
        assert text(tiles >> p.join >> p.split(8)) == text(tiles)
        assert p.type_of(tiles >> p.join >> p.split(8)) == "[n][8] int32"

    def test_transpose_twice_is_nothing(self) -> None:
        assert text(A >> p.transpose >> p.transpose) == text(A)
        assert text(A >> p.transpose) == "a(y, x)"

    def test_maps_fuse(self) -> None:
        assert text(LINE >> p.map(double) >> p.map(increment)) == text(LINE >> p.map(lambda v: increment(double(v))))
        assert text(LINE >> (p.map(double) >> p.map(increment))) == "a(x) * 2 + 1"

    def test_map_of_nothing_is_nothing(self) -> None:
        assert text(A >> p.map(lambda row: row)) == text(A)

    def test_maps_and_transposes_change_places(self) -> None:
        twice = p.map(p.map(double))
        assert text(A >> twice >> p.transpose) == text(A >> p.transpose >> twice)

    def test_a_reduction_of_a_map_is_one_reduction(self) -> None:
        window = p.slide(3)
        apart = LINE >> window >> p.map(p.map(double) >> p.reduce(p.add, 0))
        at_once = LINE >> window >> p.map(p.reduce(lambda total, v: total + v * 2, 0))
        assert text(apart) == text(at_once) == "a(x - 1) * 2 + a(x) * 2 + a(x + 1) * 2"

    def test_slide_after_pad_has_the_old_length(self) -> None:
        assert p.type_of(LINE >> p.pad(1, 1, repeat_edge) >> p.slide(3)) == "[m][3] int32"

    @pytest.mark.parametrize(
        ("array", "expected"),
        [
            (LINE >> p.slide(5), "[m - 4][5] int32"),
            (p.image("a", uint8, 2 * n + 1) >> p.slide(3, 2), "[n][3] uint8"),
            (p.image("a", uint8, 9) >> p.slide(3, 2), "[4][3] uint8"),
            (p.image("a", uint8, 6 * n) >> p.split(3), "[2 * n][3] uint8"),
            (A >> p.join, "[m * n] int32"),
            (A >> p.transpose, "[m][n] int32"),
            (p.zip(A, B), "[n] ([m] int32, [m] int32)"),
            (p.zip(LINE, LINE >> p.map(float32)), "[m] (int32, float32)"),
            (LINE >> p.drop(1, 3), "[m - 4] int32"),
            (LINE >> p.pad(2, 3, constant(0)), "[m + 5] int32"),
            (A >> p.map(p.reduce(maximum, 0)), "[n] int32"),
        ],
    )
    def test_types(self, array: p.Array, expected: str) -> None:
        assert p.type_of(array) == expected == str(array)


class TestValues:
    def test_rows_are_joined(self) -> None:
        assert (computed(A >> p.join, PIXELS) == PIXELS.reshape(-1)).all()

    @pytest.mark.parametrize(
        ("boundary", "mode"),
        [
            (repeat_edge, {"mode": "edge"}),
            (repeat_image, {"mode": "wrap"}),
            (mirror_image, {"mode": "symmetric"}),
            (mirror_interior, {"mode": "reflect"}),
            (constant(7), {"mode": "constant", "constant_values": 7}),
        ],
    )
    def test_boundaries(self, boundary: Any, mode: dict[str, Any]) -> None:
        padded = A >> p.pad(2, 1, boundary) >> p.map(p.pad(3, 4, boundary))
        assert (computed(padded, PIXELS) == np.pad(PIXELS, ((2, 1), (3, 4)), **mode)).all()

    def test_the_boundary_of_rows_may_be_another(self) -> None:
        padded = A >> p.pad(2, 0, constant(-1)) >> p.map(p.pad(0, 5, repeat_edge))
        expected = np.pad(np.pad(PIXELS, ((2, 0), (0, 0)), constant_values=-1), ((0, 0), (0, 5)), mode="edge")
        assert (computed(padded, PIXELS) == expected).all()

    @pytest.mark.parametrize(
        ("function", "start", "expected"),
        [
            (p.add, 0, np.sum),
            (p.add, 5, lambda a, axis: 5 + a.sum(axis)),
            (minimum, 0, lambda a, axis: a.min(axis).clip(max=0)),
            (maximum, -100, np.max),
        ],
    )
    def test_a_size_is_reduced_in_a_loop(self, function: Any, start: int, expected: Any) -> None:
        assert (computed(A >> p.map(p.reduce(function, start)), PIXELS) == expected(PIXELS, axis=1)).all()
        assert (
            computed(A >> p.transpose >> p.map(p.reduce(function, start)), PIXELS) == expected(PIXELS, axis=0)
        ).all()

    def test_reductions_in_reductions(self) -> None:
        def products_with(row):
            return B >> p.map(lambda other: p.zip(row, other) >> p.map(p.mul) >> p.reduce(p.add, 0))

        products = A >> p.map(products_with)
        assert (computed(products, PIXELS, OTHERS) == PIXELS @ OTHERS.T).all()

    def test_tuples_of_several(self) -> None:
        three = p.zip(LINE, LINE >> p.map(double), LINE >> p.map(increment)) >> p.map(lambda a, b, c: a * b - c)
        assert (computed(three, POINTS) == POINTS * POINTS * 2 - (POINTS + 1)).all()

    def test_a_stage_of_tuples(self) -> None:
        pairs = p.let("pairs", p.zip(LINE, LINE >> p.map(double)))
        assert p.type_of(pairs) == "[m] (int32, int32)"
        assert (computed(pairs >> p.map(p.mul), POINTS) == POINTS * POINTS * 2).all()

    def test_a_name_in_a_function_is_a_stage(self) -> None:
        def squared(v):
            root = p.let("root", v + 1)
            return root * root

        pipeline = program(A >> p.map(p.map(squared)))
        assert [s.name for s in pipeline.stages] == ["root", "output"]
        assert (computed(A >> p.map(p.map(lambda v: p.let("r", v + 1) * 2)), PIXELS) == (PIXELS + 1) * 2).all()

    def test_a_name_outside_of_the_inner_map_has_the_axes_it_needs(self) -> None:
        def row_over_sum(row):
            total = p.let("total", row >> p.reduce(p.add, 0))
            return row >> p.map(lambda v: v - total)

        value = A >> p.map(row_over_sum)
        assert [(s.name, s.dims) for s in program(value).stages] == [("total", ("x",)), ("output", ("x", "y"))]
        assert (computed(value, PIXELS) == PIXELS - PIXELS.sum(1, keepdims=True)).all()

    def test_params_and_stages_of_the_other_front_end(self) -> None:
        x, gain, table = Var("x"), Param("gain", int32, default=3), Image("table", uint8, "i")
        brighter = Stage("brighter")
        brighter[x] = uint16(table[x]) + 1
        value = p.image("a", uint8, m) >> p.map(lambda v: int32(brighter[v]) * gain)
        pipeline = p.pipeline("looked_up", {"output": value}, sizes={m: 8})
        images = {
            "a": interpreter.Image(np.arange(8, dtype=np.uint8), (0,)),
            "table": interpreter.Image(np.arange(256, dtype=np.uint8)[::-1].copy(), (0,)),
        }
        (result,) = interpreter.interpret(pipeline, images, {"gain": 2}, {"output": ((0, 8),)}).values()
        assert result[0].tolist() == [(255 - v + 1) * 2 for v in range(8)]


def tuples_of_arrays() -> Any:
    return p.let("rows", p.zip(A, B))


class TestErrors:
    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            (lambda: p.zip(LINE, LINE >> p.drop(1)), "different lengths: [m] int32, [m - 1] int32"),
            (lambda: p.zip(LINE), "two arrays or more"),
            (lambda: LINE >> p.slide(3, 2), "no number of windows of 3, 2 apart, are all of [m] int32"),
            (lambda: p.image("a", uint8, 4) >> p.slide(5), "no number of windows of 5"),
            (lambda: p.slide(0), "the size is 0"),
            (lambda: LINE >> p.split(4), "4 does not divide the length of [m] int32"),
            (lambda: LINE >> p.join, "an array of arrays is needed, not [m] int32"),
            (lambda: LINE >> p.transpose, "an array of arrays is needed"),
            (lambda: LINE >> p.map(p.map(double)), "an array is needed, not int32"),
            (lambda: p.map(double)(3), "an array is needed, not int"),
            (lambda: LINE >> p.map(lambda v: v / 2), "[type_error]"),
            (lambda: LINE >> p.map(lambda v: None), "the function returned NoneType"),
            (lambda: LINE >> p.reduce(lambda a, b: a + b, 0), "of more than 32 elements the function has to be"),
            (lambda: A >> p.reduce(p.add, 0), "the elements have to be numbers"),
            (lambda: LINE >> p.slide(3) >> p.map(p.reduce(p.add, uint8(0))), "gives int32, and the start is uint8"),
            (lambda: LINE >> p.pad(-1, 0, repeat_edge), "`drop` takes some away"),
            (lambda: p.image("a", uint8, 3) >> p.drop(2, 1), "cannot be dropped"),
            (tuples_of_arrays, "numbers, or tuples of them: [n] ([m] int32, [m] int32)"),
            (lambda: p.image("a", uint8, *[n] * 6), "1 to 5 axes"),
            (lambda: p.let("w", p.image("a", int32, n, n, n, n) >> p.slide(3) >> p.map(p.slide(3))), "at most 5 axes"),
            (lambda: p.pipeline("q", {"o": LINE}, sizes={}), "sizes has no number for m"),
            (lambda: program(_two_of_one_name()), "two things are named 'twin'"),
            (lambda: p.let("s", p.image("a", int32, n * m) >> p.pad(1, 1, repeat_edge)), "tells"),
            (lambda: p.zip([[1, 2], [3]], LINE), "different lengths"),
        ],
    )
    def test_they_name_the_reason_and_this_file(self, wrong: Any, message: str) -> None:
        with pytest.raises(p.PatternError) as caught:
            wrong()
        assert message in str(caught.value)
        assert "test_patterns.py:" in str(caught.value)

    def test_they_name_the_lines_of_the_pattern_and_of_its_use(self) -> None:
        halves = p.split(4)
        with pytest.raises(p.PatternError) as caught:
            LINE >> halves
        written, applied = (f"{__file__}:{sys._getframe().f_lineno - k}" for k in (3, 1))
        assert str(caught.value).startswith(f"split at {written}, applied at {applied}: 4 does not divide")


def _two_of_one_name() -> p.Array:
    first = p.let("twin", LINE >> p.map(double))
    return p.zip(first, p.let("twin", LINE)) >> p.map(p.add)


Both = tuple[p.Array, np.ndarray[Any, Any]]


def windows_along(axis: int, size: int, step: int, function: Any, of: Any) -> Any:
    """Windows of rows or columns, each reduced to a number."""

    def step_of(value: p.Array, array: np.ndarray[Any, Any]) -> Both:
        each = p.slide(size, step) >> p.map(p.reduce(function, 0))
        seen = np.lib.stride_tricks.sliding_window_view(array, size, axis)
        seen = seen[::step] if axis == 0 else seen[:, ::step]
        return along(axis, each)(value), of(seen, axis=-1, initial=0).astype(np.int32)

    return step_of


def along(axis: int, pattern: p.Pattern) -> p.Pattern:
    return p.map(pattern) if axis else p.Pattern(p.transpose) >> p.map(pattern) >> p.transpose


def random_step(draw: random.Random, name: str) -> Any:
    """A pattern, or a few, with what NumPy does for the same."""
    axis, k, width = draw.randrange(2), draw.randrange(1, 4), draw.randrange(1, 3)
    around = [(0, 0), (0, 0)]
    around[axis] = (k, width)
    boundary, mode = draw.choice(
        [(repeat_edge, "edge"), (repeat_image, "wrap"), (mirror_image, "symmetric"), (mirror_interior, "reflect")]
    )
    kept = (slice(k, None), slice(None)) if axis == 0 else (slice(None), slice(k, None))

    def less_sum(row: p.Array) -> p.Array:
        return row >> p.map(lambda e: e - p.let(name, row >> p.reduce(p.add, 0)))

    shifted = along(axis, p.drop(1) >> p.pad(0, 1, constant(3)))
    return draw.choice(
        [
            lambda v, a: (v >> p.map(p.map(lambda e: e * k - 1)), a * k - 1),
            lambda v, a: (p.transpose(v), a.T),
            windows_along(axis, k, width, p.add, np.sum),
            windows_along(axis, k, width, maximum, np.max),
            lambda v, a: (along(axis, p.pad(k, width, boundary))(v), np.pad(a, around, mode=mode)),
            lambda v, a: (along(axis, p.pad(k, width, constant(5)))(v), np.pad(a, around, constant_values=5)),
            lambda v, a: (along(axis, p.drop(k))(v), a[kept]),
            lambda v, a: (v >> p.join >> p.split(k), a.reshape(-1, k)),
            lambda v, a: (v >> p.split(k) >> p.map(p.transpose) >> p.map(p.join), interleaved(a, k)),
            lambda v, a: (p.zip(v, v >> shifted) >> p.map(p.zip) >> p.map(p.map(p.add)), a + shifted_array(a, axis)),
            lambda v, a: (v >> p.map(less_sum), a - a.sum(1, keepdims=True, dtype=np.int32)),
        ]
    )


def interleaved(a: np.ndarray[Any, Any], rows: int) -> np.ndarray[Any, Any]:
    return a.reshape(-1, rows, a.shape[1]).transpose(0, 2, 1).reshape(-1, rows * a.shape[1])


def shifted_array(a: np.ndarray[Any, Any], axis: int) -> np.ndarray[Any, Any]:
    moved = np.roll(a, -1, axis)
    moved[(-1, slice(None)) if axis == 0 else (slice(None), -1)] = 3
    return moved


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_compute_what_numpy_does(seed: int) -> None:
    draw = random.Random(seed)
    value, array = p.image("a", int32, 6 * n, 4 * m), numbers(12, 12)
    for k in range(draw.randrange(2, 8)):
        try:
            made, expected = random_step(draw, f"inner_{k}")(value, array)
        except p.PatternError:
            continue  # sizes that do not divide, for every n and m
        except ValueError:  # NumPy's: for these n and m there is nothing left
            continue
        if min(expected.shape) < 4 or expected.size > 2000:
            continue
        value, array = made, expected
        if draw.random() < 0.6:
            value = p.let(f"named_{k}", value)
    pipeline = p.pipeline("random", {"output": value}, sizes={n: 2, m: 3})
    images = {"a": interpreter.Image(numbers(12, 12), (0, 0))}
    (result,) = interpreter.interpret(pipeline, images, {}, {"output": pipeline.estimate("output")}).values()
    assert result[0].shape == array.shape
    assert (result[0] == array).all()
