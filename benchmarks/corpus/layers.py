"""Layers and blocks of networks: ResNet, MobileNet, U-Net, transformers. Dims are x, y, channels, as ONNX has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.corpus.registry import Made, Sized, case
from benchmarks.corpus.words import c, i, j, k, m, n, onnx, stage, total, x, y
from tilesmith.language import (
    Image,
    Range,
    Stage,
    Term,
    Var,
    clamp,
    constant,
    exp,
    float32,
    int8,
    int32,
    maximum,
    minimum,
    repeat_edge,
    rmax,
    rsum,
    sat_uint8,
    select,
    sqrt,
    tanh,
    uint8,
)


def _features(name: str = "a") -> Image:
    return Image(name, float32, x, y, c, boundary=constant(0.0))


def _weights(name: str, *extra: Var) -> Image:
    """The weights of a convolution: x, y, channels in, channels out."""
    return Image(name, float32, *(extra or (i, j, m, n)))


def _conv(
    name: str, f: Image | Stage, w: Image, inputs: int, side: int = 3, stride: int = 1, rate: int = 1, out: Var = c
) -> Stage:
    """A convolution over channels; `f` has zeros around it."""
    r, p, q = Range("r", 0, inputs), Range("p", 0, side), Range("q", 0, side)
    half = side // 2 * rate
    at = f[stride * x + rate * p - half, stride * y + rate * q - half, r]
    return stage(name, rsum(at * w[p, q, r, out], r, q, p), x, y, out)


def _over(f: Stage, a: Image) -> Stage:
    """A copy of a stage that is 0 beyond an image's size."""
    inside = (x >= 0) & (x < a.extent.x) & (y >= 0) & (y < a.extent.y)
    return stage(f"{f.name}_in", select(inside, f[x, y, c], 0.0), x, y, c)


def _relu(name: str, value: Term) -> Stage:
    return stage(name, maximum(value, 0.0), x, y, c)


def _at(source: Image | Stage, **extents: int) -> Sized:
    return Sized(source, own=extents)


@case(
    lambda a, w: np.maximum(onnx("Conv", a[None], w, strides=[2, 2], pads=[3, 3, 3, 3])[0], 0),
    within=1e-3,
    x=112,
    y=112,
    c=64,
)
def resnet_stem() -> Made:
    """The first layer of ResNet: 7 x 7 with stride 2, of three channels to 64, and ReLU."""
    a, w = _features(), _weights("w")
    conv = _conv("conv", a, w, 3, 7, 2)
    return _relu("stem", conv[x, y, c]), _at(a, x=224, y=224, c=3), _at(w, i=7, j=7, m=3, n=64)


def _basic(a: Any, u: Any, v: Any, s: Any, t_: Any) -> Any:
    one = np.maximum(onnx("Conv", a[None], u, pads=[1] * 4) + s[:, None, None], 0)
    return np.maximum(onnx("Conv", one, v, pads=[1] * 4)[0] + t_[:, None, None] + a, 0)


@case(_basic, within=1e-3, x=56, y=56, c=64)
def resnet_basic_block() -> Made:
    """Two convolutions of 3 x 3 with 64 channels, and what came in is added."""
    a, u, v = _features(), _weights("u"), _weights("v")
    s, t_ = Image("s", float32, c), Image("t_", float32, c)
    one = _over(_relu("one", _conv("conv1", a, u, 64)[x, y, c] + s[c]), a)
    two = _conv("conv2", one, v, 64)
    sizes = {"i": 3, "j": 3, "m": 64, "n": 64}
    return _relu("block", two[x, y, c] + t_[c] + a[x, y, c]), a, _at(u, **sizes), _at(v, **sizes)


def _bottleneck(a: Any, u: Any, v: Any, w: Any) -> Any:
    one = np.maximum(onnx("Conv", a[None], u), 0)
    two = np.maximum(onnx("Conv", one, v, pads=[1] * 4), 0)
    return np.maximum(onnx("Conv", two, w)[0] + a, 0)


@case(_bottleneck, within=1e-3, x=28, y=28, c=256)
def resnet_bottleneck() -> Made:
    """1 x 1 to 64 channels, 3 x 3, 1 x 1 back to 256, and what came in is added."""
    a, u, v, w = _features(), _weights("u"), _weights("v"), _weights("w")
    one = _over(_relu("one", _conv("conv1", a, u, 256, 1)[x, y, c]), a)
    two = _relu("two", _conv("conv2", one, v, 64)[x, y, c])
    three = _conv("conv3", two, w, 64, 1)
    return (
        _relu("block", three[x, y, c] + a[x, y, c]), a, _at(u, i=1, j=1, m=256, n=64), _at(v, i=3, j=3, m=64, n=64),
        _at(w, i=1, j=1, m=64, n=256),
    )  # fmt: skip


def _inverted(a: Any, u: Any, v: Any, w: Any) -> Any:
    one = np.clip(onnx("Conv", a[None], u), 0, 6)
    two = np.clip(onnx("Conv", one, v[:, None], pads=[1] * 4, group=len(v)), 0, 6)
    return onnx("Conv", two, w)[0] + a


@case(_inverted, within=1e-3, x=56, y=56, c=24)
def mobilenet_block() -> Made:
    """MobileNet's inverted residual: 24 channels to 144, 3 x 3 in each, and back."""
    a, u, v, w = _features(), _weights("u"), Image("v", float32, i, j, n), _weights("w")
    one = _over(stage("one", clamp(_conv("conv1", a, u, 24, 1)[x, y, c], 0.0, 6.0), x, y, c), a)
    p, q = Range("p", 0, 3), Range("q", 0, 3)
    deep = stage("deep", clamp(rsum(one[x + p - 1, y + q - 1, c] * v[p, q, c], q, p), 0.0, 6.0), x, y, c)
    back = _conv("back", deep, w, 144, 1)
    return (
        stage("block", back[x, y, c] + a[x, y, c], x, y, c), a, _at(u, i=1, j=1, m=24, n=144), _at(v, i=3, j=3, n=144),
        _at(w, i=1, j=1, m=144, n=24),
    )  # fmt: skip


def _pooled(a: Any) -> Any:
    return onnx("MaxPool", a[None], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)[0]


@case(_pooled, x=112, y=112, c=64)
def max_pool() -> Made:
    """The greatest of 3 x 3 at every second pixel."""
    a = Image("a", float32, x, y, c, boundary=constant(-3.0e38))
    p, q = Range("p", -1, 2), Range("q", -1, 2)
    return stage("pooled", rmax(a[2 * x + p, 2 * y + q, c], q, p), x, y, c), _at(a, x=224, y=224, c=64)


def _down(a: Any, u: Any, v: Any) -> Any:
    one = np.maximum(onnx("Conv", a[None], u, pads=[1] * 4), 0)
    two = np.maximum(onnx("Conv", one, v, pads=[1] * 4), 0)
    return onnx("MaxPool", two, kernel_shape=[2, 2], strides=[2, 2])[0]


@case(_down, within=1e-3, x=64, y=64, c=32)
def unet_down() -> Made:
    """A step down of U-Net: two convolutions of 3 x 3, 16 to 32 channels, and a pool."""
    a, u, v = _features(), _weights("u"), _weights("v")
    one = _over(_relu("one", _conv("conv1", a, u, 16)[x, y, c]), a)
    two = _relu("two", _conv("conv2", one, v, 32)[x, y, c])
    pooled = maximum(*(two[2 * x + p, 2 * y + q, c] for q in (0, 1) for p in (0, 1)))
    return (
        stage("pooled", pooled, x, y, c), _at(a, x=128, y=128, c=16), _at(u, i=3, j=3, m=16, n=32),
        _at(v, i=3, j=3, m=32, n=32),
    )  # fmt: skip


@case(x=128, y=128, c=16)
def unet_up() -> Made:
    """A step up of U-Net: a coarse image twice as large beside a fine one, and a convolution of 3 x 3."""
    a, b, w = _features("a"), _features("b"), _weights("w")
    joined = select(c < 16, a[x, y, minimum(c, 15)], b[x // 2, y // 2, maximum(c - 16, 0)])
    both = stage("both", joined, x, y, c)
    conv = _conv("conv", both, w, 48)
    return _relu("up", conv[x, y, c]), a, _at(b, x=64, y=64, c=32), _at(w, i=3, j=3, m=48, n=16)


@case(lambda a, s, b: np.maximum(a * s[:, None, None] + b[:, None, None], 0), x=112, y=112, c=64)
def scale_and_relu() -> Made:
    """A batch normalisation in use: a factor and an offset for each channel, and ReLU."""
    a, s, b = _features(), Image("s", float32, c), Image("b", float32, c)
    return _relu("scaled", a[x, y, c] * s[c] + b[c])


def _layer_norm(a: Any, b: Any, s: Any) -> Any:
    return onnx("LayerNormalization", a, s, b, axis=-1, epsilon=1e-5)


@case(_layer_norm, within=1e-3, x=768, y=1024)
def layer_norm() -> Made:
    """Rows of mean 0 and variance 1, with a factor and an offset for each column."""
    a, s, b = Image("a", float32, x, y), Image("s", float32, x), Image("b", float32, x)
    p, width = Range("p", 0, a.extent.x), float32(a.extent.x)
    mean = stage("mean", rsum(a[p, y], p) / width, y)
    apart = a[p, y] - mean[y]
    scale = stage("scale", 1.0 / sqrt(rsum(apart * apart, p) / width + 1e-5), y)
    return stage("normal", (a[x, y] - mean[y]) * scale[y] * s[x] + b[x]), a


@case(x=56, y=56, c=64)
def group_norm() -> Made:
    """Groups of eight channels of mean 0 and variance 1."""
    a, s, b = _features(), Image("s", float32, c), Image("b", float32, c)
    p, q, r = Range("p", 0, a.extent.x), Range("q", 0, a.extent.y), Range("r", 0, 8)
    count = float32(a.extent.x * a.extent.y * 8)
    mean = stage("mean", rsum(a[p, q, 8 * m + r], r, q, p) / count, m)
    square = stage("square", rsum(a[p, q, 8 * m + r] * a[p, q, 8 * m + r], r, q, p) / count, m)
    scale = stage("scale", 1.0 / sqrt(maximum(square[m] - mean[m] * mean[m], 0.0) + 1e-5), m)
    return stage("normal", (a[x, y, c] - mean[c // 8]) * scale[c // 8] * s[c] + b[c], x, y, c), a


@case(lambda a: onnx("Softmax", a, axis=0), x=256, y=256, c=21)
def softmax_of_channels() -> Made:
    """The softmax over 21 channels of every pixel."""
    a = Image("a", float32, x, y, c)
    r = Range("r", 0, 21)
    high = stage("high", rmax(a[x, y, r], r))
    e = stage("e", exp(a[x, y, c] - high[x, y]), x, y, c)
    sums = stage("sums", rsum(e[x, y, r], r))
    return stage("softmax", e[x, y, c] / sums[x, y], x, y, c), a


@case(lambda a, w: np.einsum("cyx,cn->n", a, w) / (a.shape[1] * a.shape[2]), within=1e-3, x=28, y=28, c=512, n=1000)
def global_pool_and_dense() -> Made:
    """The mean of each channel, and a dense layer to 1000 classes."""
    a, w = Image("a", float32, x, y, c), Image("w", float32, n, c)
    p, q, r = Range("p", 0, a.extent.x), Range("q", 0, a.extent.y), Range("r", 0, a.extent.c)
    mean = stage("mean", rsum(a[p, q, c], q, p) / float32(a.extent.x * a.extent.y), c)
    return stage("classes", rsum(mean[r] * w[n, r], r), n), a, w


def _attention(q_: Any, k_: Any, v_: Any) -> Any:
    e = (q_ @ k_.T) * 0.125
    e = np.exp(e - e.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)) @ v_


@case(_attention, within=1e-3, i=64, j=512, k=512)
def attention() -> Made:
    """One head: 512 queries and keys of 64, softmax, and the mean of the values."""
    q_, k_, v_ = (Image(name, float32, i, d) for name, d in (("q_", j), ("k_", k), ("v_", k)))
    p, r = Range("p", 0, q_.extent.i), Range("r", 0, k_.extent.k)
    score = stage("score", rsum(q_[p, j] * k_[p, k], p) * 0.125, k, j)
    high = stage("high", rmax(score[r, j], r), j)
    e = stage("e", exp(score[k, j] - high[j]), k, j)
    sums = stage("sums", rsum(e[r, j], r), j)
    return stage("mixed", rsum(e[r, j] * v_[i, r], r) / sums[j], i, j), q_, k_, v_


@case(x=56, y=56, c=96, m=24)
def squeeze_and_excite() -> Made:
    """Channels weighted by two dense layers of their means."""
    a, u, v = Image("a", float32, x, y, c), Image("u", float32, c, m), Image("v", float32, m, c)
    p, q = Range("p", 0, a.extent.x), Range("q", 0, a.extent.y)
    r, s = Range("r", 0, 96), Range("s", 0, 24)
    mean = stage("mean", rsum(a[p, q, c], q, p) / float32(a.extent.x * a.extent.y), c)
    inner = stage("inner", maximum(rsum(mean[r] * u[r, m], r), 0.0), m)
    gate = stage("gate", 1.0 / (1.0 + exp(-rsum(inner[s] * v[s, c], s))), c)
    return stage("gated", a[x, y, c] * gate[c], x, y, c), a


@case(within=1e-3, i=512, j=256, k=512, m=1024)
def mlp_with_gelu() -> Made:
    """Two dense layers with GELU between them."""
    a, u, v = Image("a", float32, k, j), Image("u", float32, m, k), Image("v", float32, i, m)
    p, q = Range("p", 0, a.extent.k), Range("q", 0, u.extent.m)
    one = stage("one", rsum(a[p, j] * u[m, p], p) * 0.05, m, j)
    h = one[m, j]
    gelu = stage("gelu", 0.5 * h * (1.0 + tanh(0.79788456 * (h + 0.044715 * h * h * h))), m, j)
    return stage("two", rsum(gelu[q, j] * v[i, q], q), i, j), a, u, v


@case(lambda a, w: onnx("Conv", a[None], w, pads=[4] * 4, dilations=[4, 4])[0], within=1e-3, x=64, y=64, c=32)
def dilated_convolution() -> Made:
    """3 x 3 with every fourth pixel, 32 channels."""
    a, w = _features(), _weights("w")
    return _conv("conv", a, w, 32, 3, 1, 4), a, _at(w, i=3, j=3, m=32, n=32)


@case(x=128, y=128, c=16)
def transposed_convolution() -> Made:
    """2 x 2 with stride 2, upwards: 32 channels to 16."""
    a, w = Image("a", float32, x, y, c), Image("w", float32, i, j, n, m)
    r = Range("r", 0, 32)
    return (
        stage("up", rsum(a[x // 2, y // 2, r] * w[x % 2, y % 2, c, r], r), x, y, c), _at(a, x=64, y=64, c=32),
        _at(w, i=2, j=2, n=16, m=32),
    )  # fmt: skip


@case(x=56, y=56, c=32)
def convolution_of_bytes() -> Made:
    """3 x 3 over 32 channels in integers, as quantised networks have it, and the result scaled to bytes."""
    a, w = Image("a", uint8, x, y, c, boundary=constant(0)), Image("w", int8, i, j, m, n)
    r, p, q = Range("r", 0, 32), Range("p", 0, 3), Range("q", 0, 3)
    sums = stage("sums", rsum(int32(a[x + p - 1, y + q - 1, r]) * int32(w[p, q, r, c]), r, q, p), x, y, c)
    return stage("scaled", sat_uint8((sums[x, y, c] >> 11) + 128), x, y, c), a, _at(w, i=3, j=3, m=32, n=32)


@case(x=1024, y=512)
def rms_norm_and_silu() -> Made:
    """Rows of mean square 1, and x times its logistic function."""
    a, s = Image("a", float32, x, y), Image("s", float32, x)
    p = Range("p", 0, a.extent.x)
    scale = stage("scale", 1.0 / sqrt(rsum(a[p, y] * a[p, y], p) / float32(a.extent.x) + 1e-6), y)
    h = stage("h", a[x, y] * scale[y] * s[x])
    return stage("silu", h[x, y] / (1.0 + exp(-h[x, y]))), a


@case(x=56, y=56, c=64)
def pool_and_instance_norm() -> Made:
    """The mean of 2 x 2, and channels of mean 0 and variance 1."""
    a = Image("a", float32, x, y, c, boundary=repeat_edge)
    pooled = stage("pooled", 0.25 * total(a[2 * x + p, 2 * y + q, c] for q in (0, 1) for p in (0, 1)), x, y, c)
    p, q, count = (
        Range("p", 0, a.extent.x // 2),
        Range("q", 0, a.extent.y // 2),
        float32(a.extent.x // 2 * (a.extent.y // 2)),
    )
    mean = stage("mean", rsum(pooled[p, q, c], q, p) / count, c)
    square = stage("square", rsum(pooled[p, q, c] * pooled[p, q, c], q, p) / count, c)
    scale = stage("scale", 1.0 / sqrt(maximum(square[c] - mean[c] * mean[c], 0.0) + 1e-5), c)
    return stage("normal", (pooled[x, y, c] - mean[c]) * scale[c], x, y, c), _at(a, x=112, y=112, c=64)
