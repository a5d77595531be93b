"""Compiled pipelines called with arrays: values of the reference interpreter, whatever the arrays' memory is like."""

from __future__ import annotations

import inspect
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilesmith as ts
from tilesmith.scheduler.interpreter.interpreter import interpret
from tilesmith.scheduler.ir.pipeline.arguments import Image

RNG = np.random.default_rng(3)


def integers(shape: tuple[int, ...], dtype: Any = np.uint8) -> np.ndarray:
    return RNG.integers(0, 100, shape).astype(dtype)


def expected(compiled: ts.CompiledPipeline, regions: dict, *images: np.ndarray, **params: float) -> dict:
    named = zip(compiled.pipeline.inputs, images, strict=True)
    inputs = {i.name: Image(np.ascontiguousarray(a), (0,) * a.ndim) for i, a in named}
    return interpret(compiled.pipeline, inputs, params, regions)


def test_a_call_computes_what_the_interpreter_does(harris: ts.CompiledPipeline) -> None:
    photo = RNG.random((3, 40, 50), dtype=np.float32)
    result = harris(photo)
    assert type(result) is np.ndarray
    assert result.shape == (36, 46)
    wanted = expected(harris, harris.regions(photo), photo)["output"][0]
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)


def test_params_are_named_and_move_the_region_where_it_depends_on_them(shift: ts.CompiledPipeline) -> None:
    photo = integers((3, 20, 30))
    for gain, by in [(1.0, 1), (2.5, 4), (-0.0, 0), (np.float32(0.5), np.int64(16)), (np.array(3.0), True)]:
        result = shift(photo, gain=gain, by=by)
        assert result.shape == (3, 19, 30 - int(by))
        wanted = expected(shift, shift.regions(photo, by=by), photo, gain=float(gain), by=int(by))["shifted"][0]
        np.testing.assert_array_equal(result, wanted)
    assert len(shift._layouts.bounds) == 1  # a new gain needs no new regions


def test_the_sign_of_a_zero_is_passed() -> None:
    document = {
        "format": 1, "name": "signs", "params": [{"name": "p", "type": "float32"}],
        "inputs": [{"name": "a", "type": "float32", "dims": ["x"]}],
        "stages": [{"name": "r", "dims": ["x"], "value": "1.0 / p + 0.0 * a(x)"}],
        "outputs": ["r"], "estimates": {"r": [[0, 16]]},
    }  # fmt: skip
    signs = ts.compile(document)
    image = np.ones(4, np.float32)
    assert [float(signs(image, p=p)[0]) for p in (0.0, -0.0, 0.0)] == [np.inf, -np.inf, np.inf]


def test_several_outputs_are_a_named_tuple_and_tuples_are_tuples(parts: ts.CompiledPipeline) -> None:
    a, b = integers((9, 12), np.int32), integers((9, 12), np.int32)
    result = parts(b=b, a=a)
    assert result.names == ("total", "both", "turned")
    assert result["both"] is result[1] is result.both
    total, *_ = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(total, a + b)
    with pytest.raises(AttributeError, match="no output 'sum'; outputs: total, both, turned"):
        result.sum  # noqa: B018
    np.testing.assert_array_equal(result.total, a + b)
    np.testing.assert_array_equal(result.both[0], a - b)
    np.testing.assert_array_equal(result.both[1], a.astype(np.float32))
    np.testing.assert_array_equal(result.turned, a.astype(np.int16))
    assert result.turned.flags.f_contiguous


def test_results_go_into_the_arrays_that_are_given(parts: ts.CompiledPipeline) -> None:
    a, b = integers((9, 12), np.int32), integers((9, 12), np.int32)
    out = {
        "total": np.empty((12, 9), np.int32).T,
        "both": (np.empty((9, 24), np.int32)[:, ::2], np.empty((9, 12), np.float32)[::-1]),
        "turned": np.empty((9, 12), np.int16),
    }
    result = parts(a, b, out=out)
    assert all(r.base is o.base or r.base is o for r, o in zip(result.both, out["both"], strict=True))
    for one, other in zip(result, parts(a, b, out=tuple(out.values())), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(out["total"], a + b)
    np.testing.assert_array_equal(out["both"][0], a - b)


STEPS = (-3, -2, -1, 1, 2, 3)


@st.composite
def views(draw: st.DrawFn, shape: tuple[int, ...], dtype: Any, writable: bool = False) -> np.ndarray:
    """An array of that shape in memory of any order: transposed, with gaps, backwards, broadcast."""
    axes = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from(STEPS)) for _ in shape]
    spread = [abs(steps[axis]) * shape[axis] + draw(st.integers(0, 2)) for axis in axes]
    base = integers(tuple(spread), dtype).transpose(np.argsort(axes))
    picked = base[tuple(slice(None, None, step) for step in steps)]
    view = picked[tuple(slice(0, n) for n in shape)]
    if not writable and draw(st.booleans()):
        axis = draw(st.integers(0, len(shape) - 1))
        view = np.broadcast_to(np.take(view, [0], axis), shape)
    return view


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_strides_change_nothing(shift: ts.CompiledPipeline, data: st.DataObject) -> None:
    shape = (data.draw(st.integers(1, 4)), data.draw(st.integers(2, 9)), data.draw(st.integers(5, 40)))
    photo = data.draw(views(shape, np.uint8))
    result = shift(np.ascontiguousarray(photo), gain=2.0, by=2)
    np.testing.assert_array_equal(shift(photo, gain=2.0, by=2), result)
    out = data.draw(views(result.shape, np.float32, writable=True))
    owner = out if out.base is None else out.base
    before = owner.copy()
    assert shift(photo, gain=2.0, by=2, out=out) is not None
    np.testing.assert_array_equal(out, result)
    after = owner.copy()
    out[...] = -1.0  # no result is
    np.testing.assert_array_equal(after[owner >= 0], before[owner >= 0])  # nothing is written beside it


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_region_is_that_part_of_the_whole(shift: ts.CompiledPipeline, data: st.DataObject) -> None:
    photo = integers((3, 12, 33))
    whole = shift(photo)
    places = []
    for size in reversed(whole.shape):
        low = data.draw(st.integers(0, size - 1))
        places.append((low, data.draw(st.integers(1, size - low))))
    part = tuple(slice(low, low + extent) for low, extent in reversed(places))
    np.testing.assert_array_equal(shift(photo, region=places), whole[part])
    named = dict(zip(("x", "y", "c"), places, strict=True))
    np.testing.assert_array_equal(shift(photo, region={"shifted": named}), whole[part])


def test_the_required_region_is_what_a_call_needs_and_no_more(shift: ts.CompiledPipeline) -> None:
    photo = integers((3, 20, 30))
    needed = shift.required([(4, 8), (2, 5), (0, 3)], by=3)
    assert needed == {"photo": ((4, 11), (2, 6), (0, 3))}
    cut = photo[:, 2:8, 4:15]
    place = [(4, 8), (2, 5), (0, 3)]
    np.testing.assert_array_equal(shift(cut, by=3), shift(photo, by=3, region=place))
    moved = shift(cut, by=3, origin=(4, 2, 0), region=place)
    np.testing.assert_array_equal(moved, shift(photo, by=3, region=place))
    assert shift.regions(cut, by=3, origin={"photo": (4, 2, 0)}) == {"shifted": tuple(place)}
    with pytest.raises(ts.RegionError, match=r"dim x \(axis 2\): 3 to 14 is required, the image has 4 to 14"):
        shift(cut, by=3, origin=(4, 2, 0), region=[(3, 9), (2, 5), (0, 3)])


def test_boundaries_of_a_required_region_are_those_of_the_image() -> None:
    blurred = ts.compile("unsharp", threads=1)
    name = blurred.pipeline.inputs[0].name
    whole = [(0, 40), (0, 30), (0, 3)]
    assert blurred.required(whole, {name: (3, 30, 40)})[name] == ((0, 40), (0, 30), (0, 3))


def test_many_threads_call_at_a_time(shift: ts.CompiledPipeline) -> None:
    photos = [integers((3, 40, 50 + n)) for n in range(4)]
    wanted = [shift(p) for p in photos]
    wrong: list[int] = []

    def call(n: int) -> None:
        for _ in range(50):
            if not np.array_equal(shift(photos[n]), wanted[n]):
                wrong.append(n)

    threads = [threading.Thread(target=call, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_a_compiled_pipeline_can_be_sent_to_another_process(shift: ts.CompiledPipeline) -> None:
    photo = integers((3, 9, 20))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(shift))(photo), shift(photo))


def test_the_signature_is_one_of_python(shift: ts.CompiledPipeline) -> None:
    signature = inspect.signature(shift)
    assert str(signature) == "(photo, *, gain=1.0, by=1, out=None, region=None, threads=None, origin=None)"
    assert shift.__name__ == "shift"


def test_what_was_decided_is_told(harris: ts.CompiledPipeline) -> None:
    assert str(harris.source).startswith("/* harris")
    assert harris.explain().startswith("harris, by method default")
    assert harris.loopnest.startswith("# harris")
    assert harris.schedule.pipeline == harris.pipeline.name == "harris"
    assert (
        repr(harris)
        == f"<harris(input, *, out=None, region=None, threads=None, origin=None) for {harris.platform.name}>"
    )
