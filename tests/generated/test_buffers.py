"""The contract of the C function: bounds queries, regions that do not suffice, mistakes, and any strides."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import pytest
from support.buffers import E_ARGUMENT, E_REGION, OK, invoke, query, region_of, view
from support.calls import Buffer, Region
from support.machines import here
from support.native import build
from support.shipped import assert_right, loaded, problem

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise


def compiled(pipeline: Pipeline) -> tuple[ctypes.CDLL, CSource]:
    source = compile_pipeline(pipeline, here()).source
    return build(source), source


@cache
def shipped(name: str) -> tuple[ctypes.CDLL, CSource]:
    return compiled(loaded(name))


def call_blur(source: Buffer | None, output: Buffer | None) -> int:
    return invoke(*shipped("blur"), [source, output])


def image(width: int, height: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 65536, (height, width)).astype(np.uint16)


REGION: Region = ((5, 40), (-3, 20))
REQUIRED: Region = ((5, 42), (-3, 22))


# Queries


def test_an_input_without_data_is_told_its_region() -> None:
    source, output = query(((0, 0), (0, 0))), view(out := np.full((20, 40), 7, np.uint16), (5, -3))
    assert call_blur(source, output) == E_REGION
    assert region_of(source) == REQUIRED
    assert region_of(output) == REGION
    assert (out == 7).all()


def test_an_output_without_data_asks_too() -> None:
    source, output = view(image(3, 3), (0, 0)), query(REGION)
    assert call_blur(source, output) == E_REGION
    assert region_of(source) == REQUIRED


@pytest.mark.parametrize("low", [(6, -3), (5, -2), (4, -3), (5, -4)], ids=str)
def test_an_input_that_is_too_small_is_told_what_is_required(low: tuple[int, int]) -> None:
    """The image has the right size but for its place, by one."""
    source, output = view(image(42, 22), low), view(out := np.full((20, 40), 7, np.uint16), (5, -3))
    assert call_blur(source, output) == E_REGION
    assert region_of(source) == REQUIRED
    assert (out == 7).all()


def test_what_a_query_answers_suffices() -> None:
    source, output = query(((0, 1), (0, 1))), view(out := np.zeros((20, 40), np.uint16), (5, -3))
    call_blur(source, output)
    (x, width), (y, height) = region_of(source)
    data = image(width, height)
    assert call_blur(view(data, (x, y)), output) == OK
    expected = interpret(loaded("blur"), {"input": Image(data, (x, y))}, {}, {"blur_y": REGION})
    np.testing.assert_array_equal(out, expected["blur_y"][0])


@pytest.mark.parametrize("name", ["harris", "interpolate", "unsharp", "sobel"])
def test_queries_answer_as_the_analysis_does(name: str) -> None:
    library, source = shipped(name)
    p = problem(name, "shifted")
    arguments: list[Buffer] = []
    for i in p.pipeline.inputs:
        places = [(lo, n) for lo, n in zip(p.inputs[i.name].min, p.inputs[i.name].array.shape[::-1], strict=True)]
        arguments.append(query(tuple(places)))
    asked = [query(p.regions[o]) for o in p.pipeline.outputs]
    assert invoke(library, source, [*arguments, *asked]) == E_REGION
    whole = {n: tuple(zip(i.min, i.array.shape[::-1], strict=True)) for n, i in p.inputs.items()}
    required = required_regions(normalise(p.pipeline), p.regions, {}, whole)
    for i, b in zip(p.pipeline.inputs, arguments, strict=True):
        assert region_of(b) == required[i.name]


@pytest.mark.parametrize("region", [(9, 1), (9, 2), (-3, 30)], ids=str)
@pytest.mark.parametrize("index", ["x % 8", "x // (1 + x % 3)", "min(x % 14, 14 - x % 14)"])
def test_of_any_region_queries_answer_as_the_analysis_does(index: str, region: tuple[int, int]) -> None:
    """Of a point, too: the code does not know then that it is one."""
    stages = [{"name": "out", "dims": ["x"], "value": f"table({index}) + 1"}]
    document = {"format": 1, "name": "looked_up", "inputs": [{"name": "table", "type": "int32", "dims": ["x"]}],
                "stages": stages, "outputs": ["out"], "estimates": {"out": [[0, 64]]}}  # fmt: skip
    pipeline = load(document)
    table = query(((0, 0),))
    assert invoke(*compiled(pipeline), [table, query((region,))]) == E_REGION
    assert region_of(table) == required_regions(normalise(pipeline), {"out": (region,)}, {}, {})["table"]


# Mistakes


def test_buffers_that_are_none() -> None:
    b = view(image(64, 64), (0, 0))
    assert call_blur(None, b) == E_ARGUMENT
    assert call_blur(b, None) == E_ARGUMENT
    assert call_blur(None, None) == E_ARGUMENT


@pytest.mark.parametrize("dims", [0, 1, 3, 6, -1])
@pytest.mark.parametrize("which", [0, 1])
def test_the_wrong_number_of_dims(which: int, dims: int) -> None:
    buffers = [view(image(64, 64), (0, 0)), view(image(8, 8), (0, 0))]
    buffers[which].dims = dims
    assert call_blur(*buffers) == E_ARGUMENT
    buffers[which].data = None
    assert call_blur(*buffers) == E_ARGUMENT


@pytest.mark.parametrize("extent", [0, -1, -(2**31)])
@pytest.mark.parametrize("d", [0, 1])
@pytest.mark.parametrize("which", [0, 1])
def test_extents_below_one(which: int, d: int, extent: int) -> None:
    buffers = [view(image(64, 64), (0, 0)), view(image(8, 8), (0, 0))]
    buffers[which].extent[d] = extent
    assert call_blur(*buffers) == E_ARGUMENT


def test_components_of_a_tuple_are_asked_for_together() -> None:
    pipeline = load(
        {
            "format": 1,
            "name": "both",
            "inputs": [{"name": "input", "type": "int32", "dims": ["x"]}],
            "stages": [{"name": "pair", "dims": ["x"], "value": ["input(x) + 1", "float32(input(x))"]}],
            "outputs": ["pair"],
            "estimates": {"pair": [[0, 64]]},
        }
    )
    library, source = compiled(pipeline)
    data = np.arange(16, dtype=np.int32)
    first, second = np.zeros(16, np.int32), np.zeros(16, np.float32)
    arguments = [view(data, (0,)), view(first, (0,)), view(second, (0,))]
    assert invoke(library, source, arguments) == OK
    np.testing.assert_array_equal(first, data + 1)
    np.testing.assert_array_equal(second, data)
    assert invoke(library, source, [arguments[0], arguments[1], view(second[:8], (0,))]) == E_ARGUMENT
    assert invoke(library, source, [arguments[0], arguments[1], view(second, (1,))]) == E_ARGUMENT


def test_params_go_by_value_and_by_pointer() -> None:
    pipeline = load(
        {
            "format": 1,
            "name": "scaled",
            "params": [
                {"name": "gain", "type": "float64", "default": 1},
                {"name": "flip", "type": "bool", "default": False},
                {"name": "shift", "type": "int16", "default": 0},
            ],
            "inputs": [{"name": "input", "type": "float64", "dims": ["x"]}],
            "stages": [
                {"name": "out", "dims": ["x"], "value": "select(flip, -1.0, 1.0) * gain * input(x) + float64(shift)"}
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 64]]},
        }
    )
    library, source = compiled(pipeline)
    data, out = np.arange(9.0), np.zeros(9)
    params = (ctypes.c_double(0.5), ctypes.c_uint8(1), ctypes.c_int16(-3))
    assert invoke(library, source, [view(data, (0,)), *params, view(out, (0,))]) == OK
    np.testing.assert_array_equal(out, -0.5 * data - 3)
    f = getattr(library, source.entry)
    f.restype = ctypes.c_int32
    a, b = view(data, (0,)), view(out, (0,))
    assert f(ctypes.byref(a), ctypes.c_double(2), ctypes.c_uint8(0), ctypes.c_int16(1), ctypes.byref(b)) == OK
    np.testing.assert_array_equal(out, 2 * data + 1)


# Strides


def laid_out(shape: tuple[int, ...], dtype: np.dtype, how: str) -> tuple[np.ndarray, np.ndarray]:
    """An array of that shape with the strides that `how` says, and all of the memory behind it."""
    if how == "dense":
        memory = np.zeros(shape, dtype)
        return memory, memory
    if how == "transposed":
        memory = np.zeros(shape[::-1], dtype)
        return memory.T, memory
    if how == "interleaved":  # the outermost dim varies fastest
        memory = np.zeros((*shape[1:], shape[0]), dtype)
        return np.moveaxis(memory, -1, 0), memory
    if how == "padded":
        memory = np.zeros((*shape[:-2], shape[-2] + 3, shape[-1] + 5), dtype)
        return memory[..., 1:-2, 2:-3], memory
    if how == "every second":
        memory = np.zeros((*shape[:-1], 2 * shape[-1] + 1), dtype)
        return memory[..., 1::2], memory
    memory = np.zeros(shape, dtype)
    if how == "upside down":
        return memory[..., ::-1, :], memory
    assert how == "mirrored", how
    return memory[..., ::-1], memory


LAYOUTS = ("dense", "transposed", "interleaved", "padded", "every second", "upside down", "mirrored")


@pytest.mark.parametrize("out_layout", LAYOUTS)
@pytest.mark.parametrize("in_layout", LAYOUTS)
@pytest.mark.parametrize("name", ["blur", "unsharp", "gaussian3x3"])
def test_any_strides(name: str, in_layout: str, out_layout: str) -> None:
    library, source = shipped(name)
    p = problem(name, "shifted")
    (only,) = p.pipeline.inputs
    image = p.inputs[only.name]
    data, _ = laid_out(image.array.shape, image.array.dtype, in_layout)
    data[...] = image.array
    (stage,) = (p.pipeline.stage(o) for o in p.pipeline.outputs)
    region = p.regions[stage.name]
    out, memory = laid_out(tuple(n for _, n in reversed(region)), stage.types[0].numpy, out_layout)
    memory[...] = 77
    touched = np.zeros(memory.size, bool)
    start = (out.ctypes.data - memory.ctypes.data) // memory.itemsize
    places = np.full(out.shape, start)
    for axis, stride in enumerate(out.strides):
        steps = np.arange(out.shape[axis]) * (stride // out.itemsize)
        places += steps.reshape([-1 if a == axis else 1 for a in range(out.ndim)])
    touched[places.ravel()] = True
    status = invoke(library, source, [view(data, image.min), view(out, [lo for lo, _ in region])])
    assert status == OK
    assert_right({stage.name: (np.ascontiguousarray(out),)}, p.expected)
    assert (memory.ravel()[~touched] == 77).all(), "elements between those of the output are written"
    np.testing.assert_array_equal(data, image.array)


def test_the_same_row_again_and_again() -> None:
    """A stride of 0 repeats an input's row."""
    library, source = shipped("blur")
    row = image(42, 1)
    data = np.broadcast_to(row, (22, 42))
    copied = np.ascontiguousarray(data)
    out, dense = np.zeros((20, 40), np.uint16), np.zeros((20, 40), np.uint16)
    assert invoke(library, source, [view(data, (5, -3)), view(out, (5, -3))]) == OK
    assert invoke(library, source, [view(copied, (5, -3)), view(dense, (5, -3))]) == OK
    np.testing.assert_array_equal(out, dense)


def test_stages_with_a_storage_order_of_their_own() -> None:
    """Interleaved by declaration: c is the unit dim, the fast path wants no copy."""
    pipeline = load(
        {
            "format": 1,
            "name": "interleaved",
            "inputs": [{"name": "input", "type": "uint8", "dims": ["x", "y", "c"], "storage": ["c", "x", "y"]}],
            "stages": [
                {
                    "name": "out",
                    "dims": ["x", "y", "c"],
                    "storage": ["c", "x", "y"],
                    "value": "uint8((uint16(input(x, y, c)) + uint16(input(x + 1, y, c))) // 2)",
                }
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 64], [0, 64], [0, 3]]},
        }
    )
    library, source = compiled(pipeline)
    memory = np.random.default_rng(2).integers(0, 256, (9, 12, 3)).astype(np.uint8)
    out = np.zeros((9, 11, 3), np.uint8)
    arguments = [view(np.moveaxis(memory, -1, 0), (0, 0, 0)), view(np.moveaxis(out, -1, 0), (0, 0, 0))]
    assert invoke(library, source, arguments) == OK
    wide = memory.astype(np.uint16)
    np.testing.assert_array_equal(out, ((wide[:, :-1] + wide[:, 1:]) // 2).astype(np.uint8))


@pytest.mark.parametrize("far", [(2**31 - 400, -(2**31) + 300), (-(2**31) + 200, 2**31 - 300)], ids=str)
@pytest.mark.parametrize("name", ["blur", "harris", "unsharp"])
def test_images_at_the_ends_of_the_grid(name: str, far: tuple[int, int]) -> None:
    """What these pipelines compute does not depend on the place."""
    library, source = shipped(name)
    p = problem(name, "shifted")

    def moved(low: list[int]) -> list[int]:
        return [low[0] + far[0], low[1] + far[1], *low[2:]]

    (only,), (output,) = p.pipeline.inputs, p.pipeline.outputs
    image, region = p.inputs[only.name], p.regions[output]
    out = np.zeros(tuple(n for _, n in reversed(region)), p.expected[output][0].dtype)
    arguments = [view(image.array, moved(list(image.min))), view(out, moved([lo for lo, _ in region]))]
    assert invoke(library, source, arguments) == OK
    assert_right({output: (out,)}, p.expected)
