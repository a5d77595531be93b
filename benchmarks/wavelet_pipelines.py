"""Pipelines of wavelets, as documents by name."""

from __future__ import annotations

from benchmarks.resampling_documents import GRAY, HEIGHT, WIDTH, Document, document, image, stage


def _haar() -> Document:
    pair = "a(2 * x, y) {} a(2 * x + 1, y)"
    return document(
        [image("a", "float32")],
        [
            {
                "name": "rows",
                "dims": ["x", "y", "b"],
                "value": f"mux(b, {pair.format('+')}, {pair.format('-')}) * 0.70710678",
            },
            {
                "name": "out",
                "dims": ["x", "y", "b", "d"],
                "value": "mux(d, rows(x, 2 * y, b) + rows(x, 2 * y + 1, b), rows(x, 2 * y, b) - rows(x, 2 * y + 1, b))"
                " * 0.70710678",
            },
        ],
        {"out": (WIDTH // 2, HEIGHT // 2, 2, 2), "a": GRAY},
    )


def _haar_inverse() -> Document:
    return document(
        [{"name": "w", "type": "float32", "dims": ["x", "y", "b", "d"]}],
        [
            {
                "name": "columns",
                "dims": ["x", "y", "b"],
                "value": "(w(x, y // 2, b, 0) + (1.0 - 2.0 * float32(y % 2)) * w(x, y // 2, b, 1)) * 0.70710678",
            },
            stage("out", "xy", "(columns(x // 2, y, 0) + columns(x // 2, y, 1) if x % 2 == 0 else "
                   "columns(x // 2, y, 0) - columns(x // 2, y, 1)) * 0.70710678"),
        ],
        {"out": GRAY, "w": (WIDTH // 2, HEIGHT // 2, 2, 2)},
    )  # fmt: skip


def _lifting() -> Document:
    """CDF 5/3 along both dims, by lifting, in integers as JPEG 2000 has it."""
    return document(
        [image("a", "int16")],
        [
            stage("dx", "xy", "a(2 * x + 1, y) - ((a(2 * x, y) + a(2 * x + 2, y)) >> 1)"),
            stage("sx", "xy", "a(2 * x, y) + ((dx(x - 1, y) + dx(x, y) + 2) >> 2)"),
            {"name": "rows", "dims": ["x", "y", "b"], "value": "mux(b, sx(x, y), dx(x, y))"},
            {
                "name": "dy",
                "dims": ["x", "y", "b"],
                "value": "rows(x, 2 * y + 1, b) - ((rows(x, 2 * y, b) + rows(x, 2 * y + 2, b)) >> 1)",
            },
            {
                "name": "sy",
                "dims": ["x", "y", "b"],
                "value": "rows(x, 2 * y, b) + ((dy(x, y - 1, b) + dy(x, y, b) + 2) >> 2)",
            },
        ],
        {"sy": (WIDTH // 2, HEIGHT // 2, 2), "dy": (WIDTH // 2, HEIGHT // 2, 2), "a": GRAY},
        outputs=("sy", "dy"),
    )


def _lifting_inverse() -> Document:
    """CDF 5/3 backwards along rows."""
    return document(
        [image("s", "int16"), image("d", "int16")],
        [
            stage("even", "xy", "s(x, y) - ((d(x - 1, y) + d(x, y) + 2) >> 2)"),
            stage("odd", "xy", "d(x, y) + ((even(x, y) + even(x + 1, y)) >> 1)"),
            stage("out", "xy", "even(x // 2, y) if x % 2 == 0 else odd(x // 2, y)"),
        ],
        {"out": GRAY, "s": (WIDTH // 2, HEIGHT), "d": (WIDTH // 2, HEIGHT)},
    )


def _daubechies() -> Document:
    low = (0.4829629131, 0.8365163037, 0.2241438680, -0.1294095226)
    high = (low[3], -low[2], low[1], -low[0])
    along = {
        name: " + ".join(f"({w}) * a(2 * x + {n}, y)" for n, w in enumerate(weights))
        for name, weights in (("lowpass", low), ("highpass", high))
    }
    value = f"mux(b, {along['lowpass']}, {along['highpass']})"
    return document([image("a", "float32")], [stage("out", "xyb", value)], {"out": (WIDTH // 2, HEIGHT, 2), "a": GRAY})


def _daubechies_inverse() -> Document:
    low = (0.4829629131, 0.8365163037, 0.2241438680, -0.1294095226)
    high = (low[3], -low[2], low[1], -low[0])
    even = f"({low[0]}) * s(x, y) + ({high[0]}) * d(x, y) + ({low[2]}) * s(x - 1, y) + ({high[2]}) * d(x - 1, y)"
    odd = f"({low[1]}) * s(x, y) + ({high[1]}) * d(x, y) + ({low[3]}) * s(x - 1, y) + ({high[3]}) * d(x - 1, y)"
    return document(
        [image("s", "float32"), image("d", "float32")],
        [
            stage("even", "xy", even),
            stage("odd", "xy", odd),
            stage("out", "xy", "even(x // 2, y) if x % 2 == 0 else odd(x // 2, y)"),
        ],
        {"out": GRAY, "s": (WIDTH // 2, HEIGHT), "d": (WIDTH // 2, HEIGHT)},
    )


WAVELETS: dict[str, Document] = {
    "haar": _haar(),
    "haar_inverse": _haar_inverse(),
    "lifting": _lifting(),
    "lifting_inverse": _lifting_inverse(),
    "daubechies": _daubechies(),
    "daubechies_inverse": _daubechies_inverse(),
}
