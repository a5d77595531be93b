"""Functions of images as pipelines: traced once for each types, planned for the sizes of the first call."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tilesmith as ts
from tilesmith.app.inprocess.tracing import TraceError
from tilesmith.language import Image, Param, Range, Stage, Var, clamp, float32, repeat_edge, uint8, uint32

x, y, c, i = Var("x"), Var("y"), Var("c"), Var("i")
PHOTO = np.random.default_rng(2).integers(0, 256, (20, 30), np.uint8)


BY = Param("by", uint8, default=2, min=0, max=4)


def traced(**settings):
    """A pipeline that counts how often it is traced."""
    calls: list[tuple[object, ...]] = []

    @ts.pipeline(boundary=repeat_edge, threads=1, **settings)
    def brighter(photo, gain=1.5):
        """Brighter, and smoother along the rows."""
        calls.append((photo, gain))
        dims = (x, y, c)[: len(photo.entry["dims"])]
        result = Stage("result")
        mean = (float32(photo[dims]) + float32(photo[(x + 1, *dims[1:])])) / 2
        result[dims] = uint8(clamp(mean * gain, 0.0, 255.0))
        return result

    return brighter, calls


def expected(photo: np.ndarray, gain: float) -> np.ndarray:
    right = np.concatenate([photo[..., 1:], photo[..., -1:]], axis=-1).astype(np.float32)
    return np.clip((photo + right) / 2 * np.float32(gain), 0, 255).astype(np.uint8)


def test_it_is_traced_once_for_types_and_ranks() -> None:
    brighter, calls = traced()
    for photo in (PHOTO, PHOTO[:9, ::-1]):
        np.testing.assert_array_equal(brighter(photo), expected(photo, 1.5))
        np.testing.assert_array_equal(brighter(photo=photo, gain=0.5), expected(photo, 0.5))
    assert len(calls) == 1
    assert isinstance(calls[0][0], Image)
    assert isinstance(calls[0][1], Param)
    planes = np.stack([PHOTO] * 3)
    np.testing.assert_array_equal(brighter(planes), expected(planes, 1.5))
    brighter(PHOTO.astype(np.uint16))
    brighter(PHOTO, np.float64(2.0))
    assert len(calls) == 4
    assert brighter.__name__ == "brighter"
    assert repr(brighter) == "<pipeline brighter(photo, gain=1.5), traced for 4 types>"


def test_it_is_planned_for_the_sizes_of_the_first_call() -> None:
    brighter, _ = traced()
    compiled = brighter.compiled(PHOTO)
    assert compiled.pipeline.doc == "Brighter, and smoother along the rows."
    assert dict(compiled.pipeline.estimates) == {"photo": ((0, 30), (0, 20)), "result": ((0, 30), (0, 20))}
    assert brighter.compiled(PHOTO[:5]) is compiled


def test_channels_last_are_refused_before_anything_is_planned_for_them() -> None:
    brighter, calls = traced()
    pixels = np.stack([PHOTO] * 3, axis=-1)
    words = r"the axes \(c, y, x\), this array has the shape \(20, 30, 3\): pass photo.transpose\(2, 0, 1\)"
    with pytest.raises(ts.ArgumentError, match=words):
        brighter(pixels)
    assert calls == []
    assert brighter(pixels.transpose(2, 0, 1)).shape == (3, 20, 30)
    with pytest.raises(ts.ArgumentError, match=words):
        brighter(pixels)
    volume, _ = traced(dims={"photo": ("x", "y", "c")})
    assert volume(pixels).shape == pixels.shape


def test_options_are_those_of_compiled_pipelines() -> None:
    brighter, _ = traced()
    out = np.empty((5, 4), np.uint8)
    assert brighter(PHOTO, out=out, region=[(3, 4), (2, 5)], threads=1) is not None
    np.testing.assert_array_equal(out, expected(PHOTO, 1.5)[2:7, 3:7])


def test_a_param_with_a_range_is_the_default() -> None:
    @ts.pipeline
    def shifted(photo, by=BY):
        result = Stage("result")
        result[x, y] = photo[x + by, y]
        return result

    place = [(0, 26), (0, 20)]
    np.testing.assert_array_equal(shifted(PHOTO, region=place), PHOTO[:, 2:28])
    np.testing.assert_array_equal(shifted(PHOTO, by=np.uint8(4), region=place), PHOTO[:, 4:])
    with pytest.raises(ts.ArgumentError, match=r"outside of 0\.\.4"):
        shifted(PHOTO, np.uint8(5))


def test_several_stages_are_several_outputs_and_sizes_are_said_where_no_image_has_them() -> None:
    def histogram(photo):
        counts, least = Stage("counts"), Stage("least")
        across, down = Range("across", 0, 30), Range("down", 0, 20)
        counts[i] = uint32(0)
        counts[photo[across, down]] += 1
        least[x, y] = photo[x, y] // 2
        return counts, least

    with pytest.raises(TraceError, match=r"output 'counts' along i follows from no image.*sizes=\{'counts'"):
        ts.pipeline(histogram)(PHOTO)
    result = ts.pipeline(sizes={"counts": [(0, 256)]})(histogram)(PHOTO)
    np.testing.assert_array_equal(result.counts, np.bincount(PHOTO.ravel(), minlength=256))
    np.testing.assert_array_equal(result.least, PHOTO // 2)


def test_what_defines_no_pipeline_is_told() -> None:
    brighter, _ = traced()
    with pytest.raises(ts.ArgumentError, match=r"brighter\(photo, gain=1.5\): missing a required argument"):
        brighter()
    with pytest.raises(ts.ArgumentError, match="multiple values"):
        brighter(PHOTO, photo=PHOTO)
    with pytest.raises(ts.ArgumentError, match="unexpected keyword"):
        brighter(PHOTO, gian=1.0)
    with pytest.raises(ts.ArgumentError, match=r"argument 'photo' has the shape \(0, 30\) and no elements"):
        brighter(PHOTO[:0])
    with pytest.raises(ts.ArgumentError, match="argument 'photo' is an array of complex128"):
        brighter(PHOTO.astype(complex))
    with pytest.raises(TraceError, match="returns Term, not the stages"):
        ts.pipeline(lambda photo: photo[x, y])(PHOTO)
    with pytest.raises(TraceError, match="a fixed number of arguments"):
        ts.pipeline(lambda *photos: photos[0])
    with pytest.raises(TraceError, match="no output depends on gain: leave it out"):
        ts.pipeline(lambda photo, gain: doubled(photo))(PHOTO, 1.0)
    with pytest.raises(ts.ArgumentError, match="a float16 is no number"):
        brighter(PHOTO, np.float16(1))


def doubled(photo: Image) -> Stage:
    result = Stage("result")
    result[x, y] = 2 * photo[x, y]
    return result


def test_arguments_are_those_of_their_names_in_any_order() -> None:
    @ts.pipeline
    def between(a, b, share=0.5):
        result = Stage("result")
        result[x, y] = share * float32(a[x, y]) - float32(b[x, y])
        return result

    other = PHOTO.astype(np.uint16) * 3
    for call in (lambda: between(PHOTO, other), lambda: between(b=other, a=PHOTO), lambda: between(PHOTO, b=other)):
        np.testing.assert_array_equal(call(), np.float32(0.5) * PHOTO - other)
    np.testing.assert_array_equal(between(share=1.0, b=PHOTO, a=other), np.float32(1) * other - PHOTO)
    assert repr(between).endswith("traced for 2 types>")
    with pytest.raises(ts.ArgumentError, match="missing a required argument: 'b'"):
        between(PHOTO, c=other)


@ts.pipeline
def halved(photo):
    result = Stage("result")
    result[x, y] = photo[x, y] // 2
    return result


def test_a_traced_function_is_sent_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(halved)) is halved
    np.testing.assert_array_equal(halved(PHOTO), PHOTO // 2)


def test_numbers_for_a_declared_param_are_not_told_apart() -> None:
    calls = []

    @ts.pipeline
    def scaled(photo, by=BY):
        calls.append(by)
        result = Stage("result")
        result[x, y] = photo[x, y] * by
        return result

    for value in (2, np.uint8(2), True):
        np.testing.assert_array_equal(scaled(PHOTO, by=value), PHOTO * np.uint8(value))
    assert calls == [BY]
