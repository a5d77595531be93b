"""Kernels of tensors as a compiler writes them in Halide's Python: a Func for every scalar operation, indices as
arithmetic of variables, casts everywhere, NaN looked after. Each with its images and what NumPy says of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import halide as hl
import numpy as np

h0, h1, h2 = hl.Var("h0"), hl.Var("h1"), hl.Var("h2")
F32, F64, I8, I32, I64 = hl.Float(32), hl.Float(64), hl.Int(8), hl.Int(32), hl.Int(64)
RNG = np.random.default_rng(11)


@dataclass
class Kernel:
    """`outputs` are Funcs with estimates, `images` arrays of the ImageParams, `expected` arrays."""

    outputs: list[hl.Func]
    images: dict[hl.ImageParam, np.ndarray]
    expected: list[np.ndarray]


KERNELS: dict[str, Callable[[], Kernel]] = {}


def kernel(make: Callable[[], Kernel]) -> Callable[[], Kernel]:
    KERNELS[make.__name__] = make
    return make


class Writer:
    """A writer of Funcs tmp0, tmp1, ...; `inputs` are what it reads."""

    def __init__(self, *arrays: np.ndarray) -> None:
        self.numbers = count()
        self.images = {}
        for n, a in enumerate(arrays):
            code = {"f": hl.Float, "i": hl.Int, "u": hl.UInt}[a.dtype.kind]
            image = hl.ImageParam(code(a.dtype.itemsize * 8), a.ndim, f"in_ptr{n}")
            image.set_estimates([hl.Range(0, size) for size in a.shape[::-1]])
            self.images[image] = a
        self.inputs = list(self.images)

    def func(self, *args: hl.Var) -> Func:
        return Func(hl.Func(f"tmp{next(self.numbers)}"), args)

    def let(self, value: hl.Expr, *args: hl.Var) -> Func:
        f = self.func(*args)
        f.func[args if args else ()] = value
        return f

    def out(
        self, type_: hl.Type, value: hl.Expr, shape: tuple[int, ...], *args: hl.Var, name: str = "out_ptr0"
    ) -> hl.Func:
        f = hl.Func(name)
        f[args] = hl.cast(type_, value)
        f.set_estimates([hl.Range(0, size) for size in shape[::-1]])
        return f

    def done(self, *pairs: tuple[hl.Func, np.ndarray]) -> Kernel:
        return Kernel([f for f, _ in pairs], self.images, [a for _, a in pairs])


@dataclass
class Func:
    """A Func and its variables: called without indices it is read at these."""

    func: hl.Func
    args: tuple[hl.Var, ...]

    def __call__(self, *at: hl.Expr) -> hl.Expr:
        return self.func[at or self.args or ()]


def floats(*shape: int, type_: type = np.float32) -> np.ndarray:
    return RNG.uniform(-2, 2, shape).astype(type_)


def larger(a: hl.Expr, b: hl.Expr) -> hl.Expr:
    return hl.select((a > b) | hl.is_nan(a), a, b)


def smaller(a: hl.Expr, b: hl.Expr) -> hl.Expr:
    return hl.select((a < b) | hl.is_nan(a), a, b)


def const(w: Writer, value: float, type_: hl.Type = F32) -> Func:
    return w.let(hl.cast(type_, hl.f64(float(value)) if type_.is_float() else value))


def total(w: Writer, of: Func, size: int, *args: hl.Var) -> Func:
    r = hl.RDom([hl.Range(0, size)])
    f = w.let(hl.cast(F32, 0), *args)
    f.func[args if args else ()] = f() + of(r[0], *args)
    return f


@kernel
def pointwise() -> Kernel:
    a, b = floats(6, 20), floats(6, 20)
    w = Writer(a, b)
    x = w.let(w.inputs[0][h0, h1], h0, h1)
    s = w.let(hl.sin(hl.cast(F32, x())), h0, h1)
    p = w.let(s() * w.inputs[1][h0, h1], h0, h1)
    zero = const(w, 0.0)
    relu = w.let(larger(zero(), x()), h0, h1)
    return w.done((w.out(F32, p() + relu(), a.shape, h0, h1), np.sin(a) * b + np.maximum(a, 0)))


@kernel
def total_of_all() -> Kernel:
    a = floats(5, 30)
    w = Writer(a.reshape(-1))
    r = hl.RDom([hl.Range(0, a.size)])
    t = w.let(hl.cast(F32, 0))
    t.func[()] = t() + w.inputs[0][r[0]]
    return w.done((w.out(F32, t(), ()), np.asarray(a.sum(dtype=np.float64), np.float32)))


@kernel
def softmax() -> Kernel:
    a = floats(7, 24)
    w = Writer(a)
    x = w.let(w.inputs[0][h0, h1], h0, h1)
    r = hl.RDom([hl.Range(0, 24)])
    top = w.let(hl.cast(F32, hl.f64(float("-inf"))), h1)
    top.func[h1] = larger(top(), hl.cast(F32, x(r[0], h1)))
    e = w.let(hl.fast_exp(hl.cast(F32, x() - top())), h0, h1)
    t = total(w, e, 24, h1)
    e2 = np.exp(a - a.max(1, keepdims=True))
    return w.done((w.out(F32, e() / t(), a.shape, h0, h1), e2 / e2.sum(1, keepdims=True)))


@kernel
def layer_norm() -> Kernel:
    a, g, b = floats(5, 32), floats(32), floats(32)
    w = Writer(a, g, b)
    x = w.let(w.inputs[0][h0, h1], h0, h1)
    mean = w.let(total(w, x, 32, h1)() / const(w, 32)(), h1)
    apart = w.let(x() - mean(), h0, h1)
    square = w.let(apart() * apart(), h0, h1)
    var = w.let(total(w, square, 32, h1)() / const(w, 32)(), h1)
    scale = w.let(1.0 / hl.sqrt(hl.cast(F32, var() + const(w, 1e-5)())), h1)
    y = w.let(apart() * scale() * w.inputs[1][h0] + w.inputs[2][h0], h0, h1)
    m = a.mean(1, keepdims=True)
    expected = (a - m) / np.sqrt(((a - m) ** 2).mean(1, keepdims=True) + 1e-5) * g + b
    return w.done((w.out(F32, y(), a.shape, h0, h1), expected))


@kernel
def max_pool_with_indices() -> Kernel:
    """The largest of 2 x 2, and its place in the image."""
    a = floats(2, 8, 12)
    w = Writer(a.reshape(2, 8, 6, 2))
    image = w.inputs[0]
    reads = [w.let(image[k % 2, h0, 2 * h1 + k // 2, h2], h0, h1, h2) for k in range(4)]
    best, place = reads[0], w.let(hl.cast(I64, 0))
    for k in range(1, 4):
        number = const(w, k, I64)
        nan_a, nan_b = w.let(best() != best(), h0, h1, h2), w.let(reads[k]() != reads[k](), h0, h1, h2)
        more = w.let((best() > reads[k]()) | (nan_a() > nan_b()), h0, h1, h2)
        tie = w.let((best() == reads[k]()) | (nan_a() & nan_b()), h0, h1, h2)
        keep = w.let(more() | (tie() & (place() < number())), h0, h1, h2)
        best, place = (
            w.let(hl.select(keep(), best(), reads[k]()), h0, h1, h2),
            w.let(hl.select(keep(), place(), number()), h0, h1, h2),
        )
    small = w.let(hl.cast(I8, place()), h0, h1, h2)
    inside = w.let(hl.clamp(hl.cast(I32, hl.select(small() < 0, small() + 4, small())), 0, 3), h0, h1, h2)
    flat = w.let(inside() % 2 + 2 * h0 + 12 * (2 * h1 + inside() // 2), h0, h1, h2)
    windows = a.reshape(2, 4, 2, 6, 2).transpose(0, 1, 3, 2, 4).reshape(2, 4, 6, 4)
    k = windows.argmax(-1)
    ys, xs = np.mgrid[:4, :6]
    return w.done(
        (w.out(F32, best(), (2, 4, 6), h0, h1, h2), windows.max(-1)),
        (w.out(I64, flat(), (2, 4, 6), h0, h1, h2, name="out_ptr1"), (12 * (2 * ys + k // 2) + 2 * xs + k % 2)),
    )


@kernel
def average_pool() -> Kernel:
    """3 x 3 with a stride of 2 and a border of zeros, by masks."""
    a = floats(9, 11)
    w = Writer(a)
    sums, hits = w.let(hl.cast(F32, 0), h0, h1), None
    for dy in range(3):
        for dx in range(3):
            x, y = w.let(2 * h0 + (dx - 1), h0), w.let(2 * h1 + (dy - 1), h1)
            inside = w.let((x() >= 0) & (x() < 11) & (y() >= 0) & (y() < 9), h0, h1)
            value = w.inputs[0][hl.clamp(x(), 0, 10), hl.clamp(y(), 0, 8)]
            read = w.let(hl.select(inside(), value, hl.cast(F32, hl.f64(0.0))), h0, h1)
            sums = w.let(sums() + read(), h0, h1)
    hits = w.let(sums() * const(w, 1 / 9)(), h0, h1)
    padded = np.pad(a, 1)
    expected = sum(padded[dy : dy + 9 : 2, dx : dx + 11 : 2] for dy in range(3) for dx in range(3)) / 9
    return w.done((w.out(F32, hits(), (5, 6), h0, h1), expected))


@kernel
def upsample_nearest() -> Kernel:
    a = floats(5, 7)
    w = Writer(a)
    y = w.inputs[0][hl.clamp(hl.cast(I32, hl.cast(F32, h0) * hl.f32(0.5)), 0, 6), hl.clamp(h1 // 2, 0, 4)]
    return w.done((w.out(F32, y, (10, 14), h0, h1), a.repeat(2, 0).repeat(2, 1)))


@kernel
def cat() -> Kernel:
    a, b = floats(3, 8), floats(5, 8)
    w = Writer(a, b)
    row = w.let(hl.cast(I64, h1), h1)
    first = w.let(row() < const(w, 3, I64)(), h1)
    zero = const(w, 0.0)
    x = w.let(hl.select(first(), w.inputs[0][h0, hl.clamp(h1, 0, 2)], zero()), h0, h1)
    y = w.let(hl.select(first(), zero(), w.inputs[1][h0, hl.clamp(h1 - 3, 0, 4)]), h0, h1)
    both = w.let(hl.select(first(), x(), y()), h0, h1)
    return w.done((w.out(F32, both(), (8, 8), h0, h1), np.concatenate([a, b])))


@kernel
def embedding() -> Kernel:
    """Rows by number; negative ones count from the end."""
    table, rows = floats(20, 6), RNG.integers(-20, 20, 9)
    w = Writer(rows, table)
    n = w.inputs[0][h1]
    wrapped = hl.select(n < 0, n + 20, n)
    y = w.inputs[1][h0, hl.clamp(hl.cast(I32, wrapped), 0, 19)]
    return w.done((w.out(F32, y, (9, 6), h0, h1), table[rows]))


@kernel
def batch_norm() -> Kernel:
    a, m, v = floats(2, 4, 10), floats(4), np.abs(floats(4)) + np.float32(0.1)
    w = Writer(a, m, v)
    scale = w.let(hl.cast(I32, 1) / hl.sqrt(hl.cast(F32, w.inputs[2][h1] + const(w, 1e-3)())), h1)
    y = w.let((w.inputs[0][h0, h1, h2] - w.inputs[1][h1]) * scale(), h0, h1, h2)
    expected = (a - m[:, None]) / np.sqrt(v[:, None] + np.float32(1e-3))
    return w.done((w.out(F32, y(), a.shape, h0, h1, h2), expected))


@kernel
def gelu() -> Kernel:
    a = floats(90)
    w = Writer(a)
    x = w.let(w.inputs[0][h0], h0)
    half, root = const(w, 0.5), const(w, math.sqrt(0.5))
    erf = w.let(hl.erf(hl.cast(F32, x() * root())), h0)
    y = w.let(x() * half() * (erf() + const(w, 1)()), h0)
    expected = np.array([0.5 * t * (1 + math.erf(t * math.sqrt(0.5))) for t in a.tolist()], np.float32)
    return w.done((w.out(F32, y(), a.shape, h0), expected))


@kernel
def dropout() -> Kernel:
    """A hash of the place and a seed as random bits: products of 32 bits in 64, and the upper half."""
    a, seed = floats(64), np.array([1234567], np.int64)
    w = Writer(a, seed)
    key = w.let(hl.cast(hl.UInt(32), w.inputs[1][0]))
    high, low = w.let(hl.cast(hl.UInt(32), h0), h0), w.let(key() ^ hl.u32(0x9E3779B9))
    x, y = high, low
    for _ in range(3):
        wide = w.let(hl.cast(hl.UInt(64), x()) * hl.u64(0xD2511F53), h0)
        x, y = (
            w.let(hl.cast(hl.UInt(32), (wide() >> 32) & hl.u64(0xFFFFFFFF)) ^ y(), h0),
            w.let(hl.cast(hl.UInt(32), wide()), h0),
        )
    signed = w.let(hl.cast(I32, x()), h0)
    chance = w.let(hl.cast(F32, hl.select(signed() < 0, -signed() - 1, signed()) * hl.f64(4.6566127342e-10)), h0)
    kept = w.let(hl.cast(F32, chance() > const(w, 0.5)()), h0)
    n, m = np.arange(64, dtype=np.uint64), np.full(64, 1234567 ^ 0x9E3779B9, np.uint64)
    for _ in range(3):
        product = n * np.uint64(0xD2511F53)
        n, m = (product >> np.uint64(32)) ^ m, product & np.uint64(0xFFFFFFFF)
    bits = n.astype(np.uint32).astype(np.int32)
    expected = a * ((np.where(bits < 0, -(bits + 1), bits) * 4.6566127342e-10) > 0.5) * 2
    return w.done((w.out(F32, kept() * w.inputs[0][h0] * const(w, 2.0)(), a.shape, h0), expected.astype(np.float32)))


@kernel
def argmax() -> Kernel:
    a = floats(6, 30)
    w = Writer(a)
    x = w.let(w.inputs[0][h0, h1], h0, h1)
    r = hl.RDom([hl.Range(0, 30)])
    best = w.let(hl.argmax(r, x(r[0], h1))[0], h1)
    return w.done((w.out(I64, best(), (6,), h1), a.argmax(1)))


@kernel
def running_total() -> Kernel:
    """A scan whose values are undefined ahead of it."""
    a = floats(4, 25)
    w = Writer(a)
    f = w.let(hl.undef(F32), h0, h1)
    r = hl.RDom([hl.Range(1, 24)])
    f.func[0, h1] = w.inputs[0][0, h1]
    f.func[r[0], h1] = f(r[0] - 1, h1) + w.inputs[0][r[0], h1]
    return w.done((w.out(F32, f(), a.shape, h0, h1), a.cumsum(1)))


@kernel
def quotients() -> Kernel:
    """Floor division, remainders of both kinds, powers, signs and bits."""
    a, b = RNG.integers(-90, 90, 80).astype(np.int32), RNG.integers(1, 12, 80).astype(np.int32)
    w = Writer(a, b)
    x, y = w.let(w.inputs[0][h0], h0), w.let(w.inputs[1][h0], h0)
    whole = w.let(hl.cast(I32, hl.floor(hl.cast(F32, x()) / hl.cast(F32, y()))), h0)
    rest = w.let(x() - hl.div_round_to_zero(x(), y()) * y(), h0)
    down = w.let(hl.mod_round_to_zero(x(), y()), h0)
    sign = w.let(hl.reinterpret(hl.UInt(32), hl.cast(F32, x())) >> 31, h0)
    mixed = w.let((whole() ^ rest()) + (down() | hl.cast(I32, sign())) + hl.cast(I32, hl.popcount(y())), h0)
    bits = np.array([bin(n).count("1") for n in b.tolist()])
    expected = ((a // b) ^ np.fmod(a, b)) + (np.fmod(a, b) | (a < 0)) + bits
    return w.done((w.out(I32, mixed(), a.shape, h0), expected.astype(np.int32)))


@kernel
def any_and_all() -> Kernel:
    a = floats(6, 16)
    w = Writer(a)
    big = w.let(w.inputs[0][h0, h1] > const(w, 1.5)(), h0, h1)
    r = hl.RDom([hl.Range(0, 16)])
    found = w.let(hl.cast(hl.Bool(), 0), h1)
    found.func[h1] = found() | big(r[0], h1)
    return w.done((w.out(hl.UInt(8), found(), (6,), h1), (a > 1.5).any(1).astype(np.uint8)))


@kernel
def clamped_where() -> Kernel:
    """NaN by a comparison with itself, float64 beside float32."""
    a = floats(50, type_=np.float64)
    a[::7] = np.nan
    w = Writer(a)
    x = w.let(w.inputs[0][h0], h0)
    whole = w.let(hl.select(hl.is_nan(x()), hl.f64(0.25), x()), h0)
    high = w.let(larger(whole(), const(w, -1, F64)()), h0)
    y = w.let(smaller(high(), const(w, 1, F64)()), h0)
    expected = np.clip(np.where(np.isnan(a), 0.25, a), -1, 1).astype(np.float32)
    return w.done((w.out(F32, y(), a.shape, h0), expected))


@kernel
def lower_triangle() -> Kernel:
    a = floats(9, 9)
    w = Writer(a)
    row, column = w.let(hl.cast(I64, h1), h1), w.let(hl.cast(I64, h0), h0)
    kept = w.let((column() + (-1 * row())) <= const(w, 0, I64)(), h0, h1)
    y = w.let(hl.select(kept(), w.inputs[0][h0, h1], const(w, 0.0)()), h0, h1)
    return w.done((w.out(F32, y(), a.shape, h0, h1), np.tril(a)))
