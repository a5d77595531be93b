"""Sound: filters, spectra, envelopes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.corpus.registry import Made, Sized, case
from benchmarks.corpus.words import c, i, k, m, n, signal, stage, t, total
from tilesmith.language import (
    Image,
    Range,
    constant,
    cos,
    exp,
    float32,
    float64,
    int16,
    log,
    maximum,
    mux,
    repeat_edge,
    rsum,
    sat_int16,
    sin,
    tanh,
)

_TAPS = [
    math.sin(0.3 * (d - 31.5)) / (d - 31.5) * (0.54 - 0.46 * math.cos(2 * math.pi * d / 63)) / math.pi
    for d in range(64)
]


@case(lambda a: signal.lfilter(np.array(_TAPS, np.float32), [1.0], a), within=1e-3, t=2_000_000)
def low_pass() -> Made:
    """A low pass of 64 taps."""
    a = Image("a", float32, t, boundary=constant(0.0))
    return stage("low", total(w * a[t - d] for d, w in enumerate(_TAPS)), t)


@case(t=1_000_000, k=256)
def convolved_with_room() -> Made:
    """A response of 256 samples that is given."""
    a, w = Image("a", float32, t, boundary=constant(0.0)), Image("w", float32, k)
    r = Range("r", 0, w.extent.k)
    return stage("wet", 0.7 * a[t] + 0.3 * rsum(w[r] * a[t - r], r), t), a, w


def _biquad(a: Any) -> Any:
    return signal.lfilter([0.2, 0.4, 0.2], [1.0, -0.5, 0.3], a, axis=0)


@case(_biquad, within=1e-3, c=8, t=200_000)
def biquad_of_channels() -> Made:
    """A recursive filter of the second order along time, of eight interleaved channels."""
    a = Image("a", float32, c, t, boundary=constant(0.0))
    s = Range("s", 2, a.extent.t)
    out = stage("out", 0.2 * a[c, t] + 0.4 * a[c, t - 1] + 0.2 * a[c, t - 2], c, t)
    first = Range("f", 1, 2)
    out[c, first] = out[c, first] + 0.5 * out[c, first - 1]
    out[c, s] = out[c, s] + 0.5 * out[c, s - 1] - 0.3 * out[c, s - 2]
    return out, a


@case(lambda a: signal.lfilter([0.1], [1.0, -0.9], a), within=1e-3, t=2_000_000)
def one_pole() -> Made:
    """A recursive filter of the first order of one channel."""
    a = Image("a", float32, t, boundary=repeat_edge)
    s = Range("s", 1, a.extent.t)
    out = stage("out", 0.1 * a[t], t)
    out[s] = out[s] + 0.9 * out[s - 1]
    return out, a


@case(t=2_000_000)
def compressor() -> Made:
    """The envelope of the logarithm of the level, and a gain of it."""
    a = Image("a", float32, t, boundary=repeat_edge)
    level = stage("level", log(abs(a[t]) + 1e-4), t)
    s = Range("s", 1, a.extent.t)
    envelope = stage("envelope", level[t], t)
    envelope[s] = maximum(level[s], 0.999 * envelope[s - 1] + 0.001 * level[s])
    return stage("out", a[t] * exp(-0.5 * maximum(envelope[t] + 1.0, 0.0)), t), a


@case(t=1200, k=129)
def power_spectrum() -> Made:
    """The power of 129 frequencies of windows of 256 samples, each 128 after the one before, as sums."""
    a = Image("a", float32, n, boundary=constant(0.0))
    m_ = Range("r", 0, 256)
    window_ = stage("window", 0.5 - 0.5 * cos(float32(i) * (6.2831853 / 256)), i)
    cosine = stage("cosine", cos(float32(i * k % 256) * (6.2831853 / 256)), i, k)
    sine = stage("sine", sin(float32(i * k % 256) * (6.2831853 / 256)), i, k)
    frames = stage("frames", a[128 * t + i] * window_[i], i, t)
    re, im = (
        stage("re", rsum(frames[m_, t] * cosine[m_, k], m_), k, t),
        stage("im", rsum(frames[m_, t] * sine[m_, k], m_), k, t),
    )
    return stage("power", re[k, t] ** 2 + im[k, t] ** 2, k, t), Sized(a, own={"n": 128 * 1201 + 256})


@case(lambda a, w: np.log(a @ w + np.float32(1e-6)), within=1e-3, t=3000, k=257, m=80)
def mel_bands() -> Made:
    """The logarithms of 80 bands, each a weighted sum of 257 frequencies."""
    a, w = Image("a", float32, k, t), Image("w", float32, m, k)
    r = Range("r", 0, w.extent.k)
    return stage("bands", log(rsum(a[r, t] * w[m, r], r) + 1e-6), m, t), a, w


@case(t=3000, m=20)
def cepstrum() -> Made:
    """Twenty coefficients of a cosine transform of 80 bands."""
    a = Image("a", float32, k, t)
    basis = stage("basis", cos(float32(m * (2 * k + 1)) * (3.1415927 / 160)), m, k)
    r = Range("r", 0, 80)
    return stage("coefficients", rsum(a[r, t] * basis[m, r], r), m, t), Sized(a, own={"k": 80, "t": 3000})


@case(t=1_500_000)
def resampled_3_to_2() -> Made:
    """Three samples for every two, by eight taps a phase."""
    a = Image("a", float32, n, boundary=constant(0.0))
    taps = [[math.exp(-((d - 3.5 - phase / 3) ** 2) / 2) * 0.4 for d in range(8)] for phase in range(3)]
    at = 2 * (t // 3) + (2 * (t % 3)) // 3
    terms = [mux(t % 3, *(taps[phase][d] for phase in range(3))) * a[at + d - 4] for d in range(8)]
    return stage("out", total(terms), t), Sized(a, own={"n": 1_000_000})


@case(t=2_000_000)
def echo_and_clip() -> Made:
    """Three echoes and a soft clip of 16-bit samples."""
    a = Image("a", int16, t, boundary=constant(0))
    v = [float32(a[t - d]) * (1 / 32768) for d in (0, 2205, 4410, 8820)]
    mixed = stage("mixed", v[0] + 0.5 * v[1] + 0.25 * v[2] + 0.125 * v[3], t)
    return stage("out", sat_int16(32767.0 * tanh(mixed[t])), t)


@case(t=500_000, k=64)
def autocorrelation() -> Made:
    """64 lags of the autocorrelation of a signal."""
    a = Image("a", float32, t, boundary=constant(0.0))
    r = Range("r", 0, a.extent.t)
    return stage("lags", rsum(float64(a[r]) * float64(a[r + k]), r), k), a
