"""Arguments that do not fit: every error names the argument and the remedy, and nothing is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilesmith as ts

PHOTO = np.random.default_rng(1).random((3, 40, 50), dtype=np.float32)
BYTES = np.zeros((3, 20, 30), np.uint8)
INTS = np.zeros((9, 12), np.int32)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda f: f(PHOTO.transpose(1, 2, 0)), "shape (40, 50, 3): pass input.transpose(2, 0, 1)"),
        (lambda f: f(PHOTO.astype(np.float64)), "is float32, not float64: pass input.astype(np.float32)"),
        (lambda f: f((PHOTO * 255).astype(np.uint8)), "pass input.astype(np.float32) / 255 for values from 0 to 1"),
        (lambda f: f(PHOTO[0]), "shape (40, 50): pass np.stack([input] * 3)"),
        (lambda f: f(PHOTO[np.newaxis]), "call it once for each input"),
        (lambda f: f(PHOTO[[0, 1, 2, 2]]), "3 channels on axis 0, not 4: pass input[:3]"),
        (lambda f: f(PHOTO[:2]), "3 channels on axis 0, not 2: pass a picture of so many"),
        (lambda f: f(PHOTO[:, :0]), "is empty"),
        (lambda f: f(), "input 'input' is missing: harris(input, *"),
        (lambda f: f(PHOTO, PHOTO), "takes 1 image (input), 2 were given"),
        (lambda f: f(PHOTO, input=PHOTO), "given twice"),
        (lambda f: f(inptu=PHOTO), "no argument 'inptu': did you mean 'input'?"),
        (lambda f: f(PHOTO, k=1.0), "no argument 'k': there are input, out, region, threads, origin"),
        (lambda f: f("photo.jpg"), "not <U9"),
        (lambda f: f(None), "is a NoneType, not an image"),
        (lambda f: f(np.ma.masked_less(PHOTO, 0.5)), "masked array"),
        (lambda f: f(PHOTO, threads=0), "threads must be a whole number from 1"),
        (lambda f: f(PHOTO, out=np.empty((36, 46))), "pass np.empty((36, 46), np.float32)"),
        (lambda f: f(PHOTO, out=np.empty((40, 50), np.float32)), "has the shape (36, 46), the array has (40, 50)"),
        (lambda f: f(PHOTO, out=np.ndarray((36, 46), np.float32, PHOTO)), "shares memory with input 'input'"),
        (lambda f: f(PHOTO, out=np.broadcast_to(np.float32(0), (36, 46))), "read-only"),
        (lambda f: f(PHOTO, out=[np.zeros(3), np.zeros(3)]), "expected 1 arrays"),
        (lambda f: f(PHOTO, out=7), "is a int: pass an array"),
        (lambda f: f(PHOTO, region=[(0, 4)]), "output output has 2 dims, the region has 1"),
        (lambda f: f(PHOTO, origin=(2**31, 0, 0)), "input 'input' lies beyond 32-bit coordinates"),
        (lambda f: f(np.broadcast_to(np.float32(0), (3, 4, 2**31 + 5))), "lies beyond 32-bit coordinates"),
        (lambda f: f(PHOTO, origin=(1, 2)), "origin of 'input': expected (x, y, c), not (1, 2)"),
        (lambda f: f(PHOTO, origin={"photo": (0, 0, 0)}), "there is no input 'photo'; inputs: input"),
        (lambda f: f.required([(0, 4), (0, 4)], {"input": (3, 4)}), "has 3 axes, not the shape (3, 4); inputs: input"),
        (lambda f: f.required([(0, 4), (0, 4)], {"photo": (3, 4)}), "'photo' is no input; inputs: input"),
        (lambda f: f.required([(0, 4), (0, 4)], by=1), "there is no param by"),
        (lambda f: f(PHOTO, region=[4, 4]), "expected [(min of x, extent of x), (min of y, extent of y)]"),
    ],
)
def test_arguments_that_do_not_fit(harris: ts.CompiledPipeline, call: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(ts.ArgumentError) as caught:
        call(harris)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda f: f(BYTES, gain="high"), "param gain is a number, not a str"),
        (lambda f: f(BYTES, gain=9.0), "param gain: 9.0 is outside of 0.0..8.0"),
        (lambda f: f(BYTES, gain=np.nan), "outside"),
        (lambda f: f(BYTES, by=1.5), "param by is int32, the value is 1.5"),
        (lambda f: f(BYTES, 2.0), "2 were given; params have names"),
        (lambda f: f(np.zeros((3, 4, 4), np.float32)), "(photo * 255).round().astype(np.uint8) for values from 0 to 1"),
        (lambda f: f([[[300, 1], [1, 1]]]), "is a list"),
        (lambda f: f([[[0.5, 1], [1, 1]]]), "other numbers than uint8 has"),
        (lambda f: f([[[1], [1, 2]]]), "is a list that is no array"),
    ],
)
def test_params_and_lists_that_do_not_fit(shift: ts.CompiledPipeline, call: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(ts.ArgumentError) as caught:
        call(shift)
    assert words in str(caught.value)


def test_overlapping_results_are_refused(parts: ts.CompiledPipeline) -> None:
    memory = np.empty((9, 12), np.int32)
    with pytest.raises(ts.ArgumentError, match=r"output 'both'\[0\] shares memory with output 'total'"):
        parts(INTS, INTS, out=(memory, (memory[::-1], np.empty((9, 12), np.float32)), np.empty((9, 12), np.int16)))
    windows = np.lib.stride_tricks.sliding_window_view(np.empty(20, np.int32), 12, writeable=True)
    with pytest.raises(ts.ArgumentError, match="elements overlap"):
        parts(INTS, INTS, out=(windows, (memory, np.empty((9, 12), np.float32)), np.empty((9, 12), np.int16)))


def test_results_may_lie_between_one_another(parts: ts.CompiledPipeline) -> None:
    pixels = np.zeros((9, 12, 2), np.int32)
    out = (pixels[..., 0], (pixels[..., 1], np.empty((9, 12), np.float32)), np.empty((9, 12), np.int16))
    parts(INTS + 5, INTS + 2, out=out)
    assert (pixels == (7, 3)).all()


def test_a_region_that_the_image_does_not_reach_names_dim_and_axis(harris: ts.CompiledPipeline) -> None:
    with pytest.raises(ts.RegionError) as caught:
        harris(PHOTO, region=[(2, 47), (2, 10)])
    assert str(caught.value) == (
        "input 'input', dim x (axis 2): 0 to 50 is required, the image has 0 to 49: ask for a smaller region, or "
        "pass a larger image"
    )
    assert harris(PHOTO).shape == (36, 46)


def test_an_image_that_is_too_small_for_one_point(harris: ts.CompiledPipeline) -> None:
    with pytest.raises(ts.RegionError, match="input input is too small, dim y"):
        harris(PHOTO[:, :4])


def test_names_of_the_pipeline_come_before_options() -> None:
    document = {
        "format": 1, "name": "named", "params": [{"name": "out", "type": "int32"}],
        "inputs": [{"name": "threads", "type": "int32", "dims": ["x"]}],
        "stages": [{"name": "r", "dims": ["x"], "value": "threads(x) + out"}],
        "outputs": ["r"], "estimates": {"r": [[0, 16]]},
    }  # fmt: skip
    named = ts.compile(document)
    result = np.empty(5, np.int32)
    named(threads=np.arange(5, dtype=np.int32), out=2, out_=result, threads_=1)
    assert result.tolist() == [2, 3, 4, 5, 6]
