"""Pipelines of look-ups, resampling, wavelets and interleaved images, as documents by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WIDTH, HEIGHT = 1536, 1024

Document = dict[str, Any]


def _image(name: str, type_: str, dims: str = "xy", interleaved: bool = False, edge: bool = True) -> Document:
    found: Document = {"name": name, "type": type_, "dims": list(dims)}
    if interleaved:
        found["storage"] = ["c", *(d for d in dims if d != "c")]
    if edge:
        found["boundary"] = {"kind": "repeat_edge"}
    return found


def _stage(name: str, dims: str, value: str, interleaved: bool = False, **more: Any) -> Document:
    found: Document = {"name": name, "dims": list(dims), "value": value, **more}
    if interleaved:
        found["storage"] = ["c", *(d for d in dims if d != "c")]
    return found


def _document(
    inputs: Sequence[Document],
    stages: Sequence[Document],
    estimates: Mapping[str, Sequence[int]],
    params: Sequence[Document] = (),
    outputs: Sequence[str] = (),
) -> Document:
    return {
        "format": 1,
        "params": list(params),
        "inputs": list(inputs),
        "stages": list(stages),
        "outputs": list(outputs) or [stages[-1]["name"]],
        "estimates": {name: [[0, n] for n in extents] for name, extents in estimates.items()},
    }


GRAY, RGB = (WIDTH, HEIGHT), (WIDTH, HEIGHT, 3)
FACTORS = [
    {"name": "fx", "type": "float32", "default": 0.73, "min": 0.25, "max": 4.0},
    {"name": "fy", "type": "float32", "default": 0.73, "min": 0.25, "max": 4.0},
]
"""Input pixels a step of the output's."""
BYTE = "uint8(clamp({}, 0.0, 255.0) + 0.5)"
HISTOGRAM: Document = {
    "domain": {"u": [0, "a.extent.x"], "v": [0, "a.extent.y"]},
    "at": ["a(u, v)"],
    "value": "h(a(u, v)) + 1",
}
RUNNING: Document = {"domain": {"b": [1, 255]}, "at": ["b"], "value": "cdf(b - 1) + cdf(b)"}


def _equalise() -> Document:
    return _document(
        [_image("a", "uint8", edge=False)],
        [
            _stage("h", "i", "uint32(0)", updates=[HISTOGRAM]),
            _stage("cdf", "i", "h(i)", updates=[RUNNING]),
            _stage("out", "xy", "uint8(cdf(a(x, y)) * 255 // uint32(a.extent.x * a.extent.y))"),
        ],
        {"out": GRAY, "a": GRAY},
    )


def _equalise_float() -> Document:
    return _document(
        [_image("a", "uint8", edge=False)],
        [
            _stage("h", "i", "uint32(0)", updates=[HISTOGRAM]),
            _stage("cdf", "i", "h(i)", updates=[RUNNING]),
            _stage("out", "xy", "sat_uint8(float32(cdf(a(x, y))) / float32(a.extent.x * a.extent.y) * 255.0)"),
        ],
        {"out": GRAY, "a": GRAY},
    )


def _equalise_colour() -> Document:
    """The luma equalised, with the colours as they were."""
    luma = "uint8(0.299 * {} + 0.587 * {} + 0.114 * {})".format(*(f"float32(a(x, y, {n}))" for n in range(3)))
    update = {**HISTOGRAM, "at": ["luma(u, v)"], "value": "h(luma(u, v)) + 1"}
    red, blue = "(float32(a(x, y, 0)) - float32(luma(x, y)))", "(float32(a(x, y, 2)) - float32(luma(x, y)))"
    level = "float32(level(x, y))"
    parts = (f"{level} + {red}", f"{level} - 0.509 * {red} - 0.194 * {blue}", f"{level} + {blue}")
    return _document(
        [_image("a", "uint8", "xyc", edge=False)],
        [
            _stage("luma", "xy", luma),
            _stage("h", "i", "uint32(0)", updates=[update]),
            _stage("cdf", "i", "h(i)", updates=[RUNNING]),
            _stage("level", "xy", "sat_uint8(float32(cdf(luma(x, y))) * (255.0 / float32(a.extent.x * a.extent.y)))"),
            _stage("out", "xyc", f"sat_uint8(mux(c, {', '.join(parts)}))"),
        ],
        {"out": RGB, "a": RGB},
    )


def _local_equalise() -> Document:
    tile = 128
    histogram: Document = {
        "domain": {"u": [0, tile], "v": [0, tile]},
        "at": [f"a(s * {tile} + u, t * {tile} + v)", "s", "t"],
        "value": f"h(a(s * {tile} + u, t * {tile} + v), s, t) + 1",
    }
    running: Document = {
        "domain": {"b": [1, 255]},
        "at": ["b", "s", "t"],
        "value": "cdf(b - 1, s, t) + cdf(b, s, t)",
    }
    around = [(0, 0), (1, 0), (0, 1), (1, 1)]
    corner = [f"cdf(a(x, y), (x - 64) // {tile} + {i}, (y - 64) // {tile} + {j})" for i, j in around]
    wx, wy = f"(float32((x - 64) % {tile}) / {tile}.0)", f"(float32((y - 64) % {tile}) / {tile}.0)"
    rows = [f"(({p}) * (1.0 - {wx}) + ({q}) * {wx})" for p, q in (corner[:2], corner[2:])]
    return _document(
        [_image("a", "uint8")],
        [
            {"name": "h", "dims": ["i", "s", "t"], "value": "uint32(0)", "updates": [histogram]},
            {"name": "clipped", "dims": ["i", "s", "t"], "value": "min(h(i, s, t), 192)"},
            {
                "name": "cdf",
                "dims": ["i", "s", "t"],
                "value": f"float32(clipped(i, s, t)) * (255.0 / {tile * tile}.0)",
                "updates": [running],
            },
            _stage("out", "xy", f"sat_uint8({rows[0]} * (1.0 - {wy}) + {rows[1]} * {wy})"),
        ],
        {"out": GRAY, "a": GRAY},
    )


def _joint_histogram() -> Document:
    update: Document = {
        "domain": {"u": [0, "a.extent.x"], "v": [0, "a.extent.y"]},
        "at": ["a(u, v) >> 3", "b(u, v) >> 3"],
        "value": "h(a(u, v) >> 3, b(u, v) >> 3) + 1",
    }
    return _document(
        [_image("a", "uint8", edge=False), _image("b", "uint8", edge=False)],
        [_stage("h", "ij", "uint32(0)", updates=[update])],
        {"h": (32, 32), "a": GRAY, "b": GRAY},
    )


def _gamma() -> Document:
    value = "uint8(pow(float32(a(x, y)) / 255.0, g) * 255.0 + 0.5)"
    gamma = {"name": "g", "type": "float32", "default": 0.4545, "min": 0.1, "max": 10.0}
    return _document([_image("a", "uint8")], [_stage("out", "xy", value)], {"out": GRAY}, [gamma])


def _gamma_table() -> Document:
    gamma = {"name": "g", "type": "float32", "default": 0.4545, "min": 0.1, "max": 10.0}
    table = "uint8(pow(float32(i) / 255.0, g) * 255.0 + 0.5)"
    return _document(
        [_image("a", "uint8", "xyc")],
        [_stage("table", "i", table), _stage("out", "xyc", "table(a(x, y, c))")],
        {"out": RGB},
        [gamma],
    )


def _linear_light() -> Document:
    value = "({0} / 12.92 if {0} <= 0.04045 else pow(({0} + 0.055) / 1.055, 2.4))".format(
        "(float32(a(x, y, c)) / 255.0)"
    )
    return _document([_image("a", "uint8", "xyc")], [_stage("out", "xyc", value)], {"out": RGB})


def _linear_luma() -> Document:
    value = "({0} / 12.92 if {0} <= 0.04045 else pow(({0} + 0.055) / 1.055, 2.4))".format(
        "(float32(a(x, y, c)) / 255.0)"
    )
    luma = "0.2126 * linear(x, y, 0) + 0.7152 * linear(x, y, 1) + 0.0722 * linear(x, y, 2)"
    return _document(
        [_image("a", "uint8", "xyc", True)],
        [_stage("linear", "xyc", value), _stage("out", "xy", luma)],
        {"out": GRAY, "a": RGB},
    )


def _sigmoid_contrast() -> Document:
    value = BYTE.format("255.0 / (1.0 + exp(8.0 * (0.5 - float32(a(x, y)) / 255.0)))")
    return _document([_image("a", "uint8")], [_stage("out", "xy", value)], {"out": GRAY})


def _palette() -> Document:
    return _document(
        [_image("a", "uint8"), {"name": "p", "type": "uint8", "dims": ["c", "i"]}],
        [_stage("out", "xyc", "p(c, a(x, y))", True)],
        {"out": RGB, "p": (3, 256)},
    )


def _cube() -> Document:
    """A cube of 17 x 17 x 17 colours, interpolated."""
    parts = {d: f"(float32(a(x, y, {n})) * (16.0 / 255.0))" for n, d in enumerate("rgb")}
    at = {d: f"clamp(int32({p}), 0, 15)" for d, p in parts.items()}
    frac = {d: f"({p} - float32({at[d]}))" for d, p in parts.items()}

    def value(dims: str, where: dict[str, int]) -> str:
        if not dims:
            return "cube(" + ", ".join(f"{at[d]} + {where[d]}" for d in "rgb") + ", c)"
        d, rest = dims[0], dims[1:]
        low, high = value(rest, {**where, d: 0}), value(rest, {**where, d: 1})
        return f"({low} * (1.0 - {frac[d]}) + {high} * {frac[d]})"

    return _document(
        [_image("a", "uint8", "xyc"), {"name": "cube", "type": "float32", "dims": ["r", "g", "b", "c"]}],
        [_stage("out", "xyc", value("bgr", {}))],
        {"out": RGB, "cube": (17, 17, 17, 3)},
    )


def _haar() -> Document:
    pair = "a(2 * x, y) {} a(2 * x + 1, y)"
    return _document(
        [_image("a", "float32")],
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
    return _document(
        [{"name": "w", "type": "float32", "dims": ["x", "y", "b", "d"]}],
        [
            {
                "name": "columns",
                "dims": ["x", "y", "b"],
                "value": "(w(x, y // 2, b, 0) + (1.0 - 2.0 * float32(y % 2)) * w(x, y // 2, b, 1)) * 0.70710678",
            },
            _stage("out", "xy", "(columns(x // 2, y, 0) + columns(x // 2, y, 1) if x % 2 == 0 else "
                   "columns(x // 2, y, 0) - columns(x // 2, y, 1)) * 0.70710678"),
        ],
        {"out": GRAY, "w": (WIDTH // 2, HEIGHT // 2, 2, 2)},
    )  # fmt: skip


def _lifting() -> Document:
    """CDF 5/3 along both dims, by lifting, in integers as JPEG 2000 has it."""
    return _document(
        [_image("a", "int16")],
        [
            _stage("dx", "xy", "a(2 * x + 1, y) - ((a(2 * x, y) + a(2 * x + 2, y)) >> 1)"),
            _stage("sx", "xy", "a(2 * x, y) + ((dx(x - 1, y) + dx(x, y) + 2) >> 2)"),
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
    return _document(
        [_image("s", "int16"), _image("d", "int16")],
        [
            _stage("even", "xy", "s(x, y) - ((d(x - 1, y) + d(x, y) + 2) >> 2)"),
            _stage("odd", "xy", "d(x, y) + ((even(x, y) + even(x + 1, y)) >> 1)"),
            _stage("out", "xy", "even(x // 2, y) if x % 2 == 0 else odd(x // 2, y)"),
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
    return _document(
        [_image("a", "float32")], [_stage("out", "xyb", value)], {"out": (WIDTH // 2, HEIGHT, 2), "a": GRAY}
    )


def _daubechies_inverse() -> Document:
    low = (0.4829629131, 0.8365163037, 0.2241438680, -0.1294095226)
    high = (low[3], -low[2], low[1], -low[0])
    even = f"({low[0]}) * s(x, y) + ({high[0]}) * d(x, y) + ({low[2]}) * s(x - 1, y) + ({high[2]}) * d(x - 1, y)"
    odd = f"({low[1]}) * s(x, y) + ({high[1]}) * d(x, y) + ({low[3]}) * s(x - 1, y) + ({high[3]}) * d(x - 1, y)"
    return _document(
        [_image("s", "float32"), _image("d", "float32")],
        [
            _stage("even", "xy", even),
            _stage("odd", "xy", odd),
            _stage("out", "xy", "even(x // 2, y) if x % 2 == 0 else odd(x // 2, y)"),
        ],
        {"out": GRAY, "s": (WIDTH // 2, HEIGHT), "d": (WIDTH // 2, HEIGHT)},
    )


def _bilinear(type_: str, channels: str = "", separate: bool = False) -> Document:
    """`separate` has a stage of rows."""
    dims, interleaved, more = f"xy{channels}", bool(channels), ", c" if channels else ""
    px, py = "((float32(x) + 0.5) * fx - 0.5)", "((float32(y) + 0.5) * fy - 0.5)"
    ix, iy = f"int32(floor({px}))", f"int32(floor({py}))"
    wx, wy = f"({px} - floor({px}))", f"({py} - floor({py}))"
    read = "float32(a({}, {}" + more + "))"
    mixed = "({0} * (1.0 - {2}) + {1} * {2})"
    finish = (lambda e: f"uint8({e} + 0.5)") if type_ == "uint8" else (lambda e: e)
    estimates = {"out": (WIDTH, HEIGHT, 3)[: len(dims)], "a": (1121, 748, 3)[: len(dims)]}
    if separate:
        rows = mixed.format(read.format(ix, "y"), read.format(f"{ix} + 1", "y"), wx)
        value = mixed.format(f"rows(x, {iy}{more})", f"rows(x, {iy} + 1{more})", wy)
        stages = [_stage("rows", dims, rows), _stage("out", dims, finish(value), interleaved)]
    else:
        each = [mixed.format(read.format(ix, r), read.format(f"{ix} + 1", r), wx) for r in (iy, f"{iy} + 1")]
        stages = [_stage("out", dims, finish(mixed.format(*each, wy)), interleaved)]
    return _document([_image("a", type_, dims, interleaved)], stages, estimates, FACTORS)


def _kernel_resize(kernel: str, taps: int, type_: str = "float32", interleaved: bool = False) -> Document:
    """Rows, then columns, with weights of each column and row in stages of their own."""
    dims, more = ("xyc", ", c") if interleaved else ("xy", "")
    low, high = 1 - taps // 2, 1 + taps // 2
    px, py = "((float32(x) + 0.5) * fx - 0.5)", "((float32(y) + 0.5) * fy - 0.5)"
    stages: list[Document] = []
    for d, p in (("x", px), ("y", py)):
        t = f"(float32(k) - ({p} - floor({p})))"
        stages.append({"name": f"raw{d}", "dims": [d, "k"], "value": kernel.replace("T", t)})
        total = f"sum(raw{d}({d}, n) for n in range({low}, {high}))"
        stages.append({"name": f"w{d}", "dims": [d, "k"], "value": f"raw{d}({d}, k) / {total}"})
    ends = f"k in range({low}, {high})"
    stages.append(_stage("rows", dims, f"sum(float32(a(int32(floor({px})) + k, y{more})) * wx(x, k) for {ends})"))
    value = f"sum(rows(x, int32(floor({py})) + k{more}) * wy(y, k) for {ends})"
    if type_ == "uint8":
        value = BYTE.format(value)
    stages.append(_stage("out", dims, value, interleaved))
    estimates = {"out": (WIDTH, HEIGHT, 3)[: len(dims)], "a": (1121, 748, 3)[: len(dims)]}
    return _document([_image("a", type_, dims, interleaved)], stages, estimates, FACTORS)


CUBIC = (
    "((1.5 * abs(T) - 2.5) * abs(T) * abs(T) + 1.0 if abs(T) < 1.0 else "
    "((-0.5 * abs(T) + 2.5) * abs(T) - 4.0) * abs(T) + 2.0 if abs(T) < 2.0 else 0.0)"
)
LANCZOS = (
    "(1.0 if abs(T) < 1e-5 else 3.0 * sin(3.14159265 * T) * sin(1.04719755 * T) / (9.8696044 * T * T) "
    "if abs(T) < 3.0 else 0.0)"
)


def _nearest(type_: str, interleaved: bool = False) -> Document:
    dims, more = ("xyc", ", c") if interleaved else ("xy", "")
    value = f"a(int32(floor((float32(x) + 0.5) * fx)), int32(floor((float32(y) + 0.5) * fy)){more})"
    estimates = {"out": (WIDTH, HEIGHT, 3)[: len(dims)], "a": (1121, 748, 3)[: len(dims)]}
    return _document(
        [_image("a", type_, dims, interleaved)], [_stage("out", dims, value, interleaved)], estimates, FACTORS
    )


def _nearest_integer() -> Document:
    """The ratio of two integers, as a scaler's registers have it."""
    params = [{"name": n, "type": "int32", "default": d, "min": 1, "max": 4096} for n, d in (("num", 73), ("den", 100))]
    value = "a(clamp(x * num // den, 0, a.extent.x - 1), clamp(y * num // den, 0, a.extent.y - 1))"
    return _document(
        [_image("a", "uint8", edge=False)], [_stage("out", "xy", value)], {"out": GRAY, "a": (1121, 748)}, params
    )


def _box(factor: int, type_: str, interleaved: bool = False) -> Document:
    dims, more = ("xyc", ", c") if interleaved else ("xy", "")
    read = f"a({factor} * x + u, {factor} * y + v{more})"
    ends = f"v in range({factor}) for u in range({factor})"
    n = factor * factor
    value = (
        f"sum({read} for {ends}) * {1 / n}"
        if type_ == "float32"
        else f"uint8((sum(uint16({read}) for {ends}) + {n // 2}) // {n})"
    )
    small = (WIDTH // factor, HEIGHT // factor, 3)[: len(dims)]
    return _document(
        [_image("a", type_, dims, interleaved)], [_stage("out", dims, value, interleaved)],
        {"out": small, "a": (WIDTH, HEIGHT, 3)[: len(dims)]},
    )  # fmt: skip


def _area() -> Document:
    """A fractional factor above 1: each pixel by the share of it that the output's covers."""
    params = [{**p, "default": 1.5, "min": 1.0, "max": 2.0} for p in FACTORS]
    stages: list[Document] = []
    for d in "xy":
        f = f"f{d}"
        covered = (
            f"max(min(floor(float32({d}) * {f}) + float32(k) + 1.0, (float32({d}) + 1.0) * {f})"
            f" - max(floor(float32({d}) * {f}) + float32(k), float32({d}) * {f}), 0.0) / {f}"
        )
        stages.append({"name": f"w{d}", "dims": [d, "k"], "value": covered})
    stages += [
        _stage("rows", "xy", "sum(float32(a(int32(floor(float32(x) * fx)) + k, y)) * wx(x, k) for k in range(4))"),
        _stage(
            "out", "xy", "uint8(sum(rows(x, int32(floor(float32(y) * fy)) + k) * wy(y, k) for k in range(4)) + 0.5)"
        ),
    ]
    return _document([_image("a", "uint8")], stages, {"out": (1024, 682), "a": GRAY}, params)


def _pyramid_down(type_: str) -> Document:
    read = "uint16({})" if type_ == "uint8" else "{}"
    weights = {-2: 1, -1: 4, 0: 6, 1: 4, 2: 1}
    along = " + ".join(f"{w} * " + read.format(f"a(2 * x + {n}, y)") for n, w in weights.items())
    down = " + ".join(f"{w} * rows(x, 2 * y + {n})" for n, w in weights.items())
    value = f"uint8(({down} + 128) >> 8)" if type_ == "uint8" else f"({down}) * {1 / 256}"
    return _document(
        [_image("a", type_)], [_stage("rows", "xy", along), _stage("out", "xy", value)],
        {"out": (WIDTH // 2, HEIGHT // 2), "a": GRAY},
    )  # fmt: skip


def _pyramid_up(type_: str) -> Document:
    read = "uint16({})" if type_ == "uint8" else "{}"
    r = {n: read.format(f"a(x // 2 + {n}, y)") for n in (-1, 0, 1)}
    along = f"{r[-1]} + 6 * {r[0]} + {r[1]} if x % 2 == 0 else 4 * {r[0]} + 4 * {r[1]}"
    d = {n: f"rows(x, y // 2 + {n})" for n in (-1, 0, 1)}
    up = f"({d[-1]} + 6 * {d[0]} + {d[1]} if y % 2 == 0 else 4 * {d[0]} + 4 * {d[1]})"
    value = f"uint8(({up} + 32) >> 6)" if type_ == "uint8" else f"{up} * {1 / 64}"
    return _document(
        [_image("a", type_)], [_stage("rows", "xy", along), _stage("out", "xy", value)],
        {"out": GRAY, "a": (WIDTH // 2, HEIGHT // 2)},
    )  # fmt: skip


def _colour(y: str, u: str, v: str) -> str:
    """BT.601 in integers, as OpenCV has it."""
    luma = f"max(int32({y}) - 16, 0) * 1220542"
    u, v = f"(int32({u}) - 128)", f"(int32({v}) - 128)"
    parts = (f"1673527 * {v}", f"-852492 * {v} - 409993 * {u}", f"2116026 * {u}")
    return "mux(c, " + ", ".join(f"sat_uint8(({luma} + {p} + 524288) >> 20)" for p in parts) + ")"


def _nv12() -> Document:
    return _document(
        [_image("l", "uint8"), _image("uv", "uint8", "cxy", edge=True)],
        [_stage("out", "xyc", _colour("l(x, y)", "uv(0, x // 2, y // 2)", "uv(1, x // 2, y // 2)"), True)],
        {"out": RGB, "l": GRAY, "uv": (2, WIDTH // 2, HEIGHT // 2)},
    )


def _yuyv() -> Document:
    at = "a({}, y)"
    value = _colour(at.format("2 * x"), at.format("4 * (x // 2) + 1"), at.format("4 * (x // 2) + 3"))
    return _document(
        [{"name": "a", "type": "uint8", "dims": ["x", "y"]}], [_stage("out", "xyc", value, True)],
        {"out": RGB, "a": (2 * WIDTH, HEIGHT)},
    )  # fmt: skip


def _to_nv12() -> Document:
    part = "(({} * int32(a({x}, {y}, 0)) + {} * int32(a({x}, {y}, 1)) + {} * int32(a({x}, {y}, 2)) + 128) >> 8)"
    u, v = (part.format(*w, x="2 * x", y="2 * y") for w in ((-38, -74, 112), (112, -94, -18)))
    return _document(
        [_image("a", "uint8", "xyc", True, edge=False)],
        [
            _stage("luma", "xy", f"uint8({part.format(66, 129, 25, x='x', y='y')} + 16)"),
            {"name": "uv", "dims": ["c", "x", "y"], "value": f"uint8(mux(c, {u}, {v}) + 128)"},
        ],
        {"luma": GRAY, "uv": (2, WIDTH // 2, HEIGHT // 2), "a": RGB},
        outputs=("luma", "uv"),
    )


def _swap(type_: str) -> Document:
    return _document(
        [_image("a", type_, "xyc", True, edge=False)], [_stage("out", "xyc", "a(x, y, 2 - c)", True)], {"out": RGB}
    )


def _greyscale() -> Document:
    value = "uint8((4899 * uint32(a(x, y, 0)) + 9617 * uint32(a(x, y, 1)) + 1868 * uint32(a(x, y, 2)) + 8192) >> 14)"
    return _document(
        [_image("a", "uint8", "xyc", True, edge=False)], [_stage("out", "xy", value)], {"out": GRAY, "a": RGB}
    )


def _matrix(type_: str) -> Document:
    value = "sum(float32(a(x, y, k)) * m(k, c) for k in range(3))"
    value = BYTE.format(value) if type_ == "uint8" else value
    return _document(
        [_image("a", type_, "xyc", True, edge=False), {"name": "m", "type": "float32", "dims": ["k", "c"]}],
        [_stage("out", "xyc", value, True)],
        {"out": RGB, "a": RGB, "m": (3, 3)},
    )


def _moved(value: str, type_: str, interleaved: bool = False) -> Document:
    """An image with its pixels elsewhere."""
    dims, more = ("xyc", ", c") if interleaved else ("xy", "")
    turned = "(y" in value
    size = (HEIGHT, WIDTH, 3) if turned else (WIDTH, HEIGHT, 3)
    return _document(
        [_image("a", type_, dims, interleaved, edge=False)],
        [_stage("out", dims, value.replace("@", more), interleaved)],
        {"out": size[: len(dims)], "a": (WIDTH, HEIGHT, 3)[: len(dims)]},
    )


def _planes(interleave: bool) -> Document:
    return _document(
        [_image("a", "uint8", "xyc", not interleave, edge=False)],
        [_stage("out", "xyc", "a(x, y, c)", interleave)],
        {"out": RGB},
    )


def _blur_interleaved() -> Document:
    return _document(
        [_image("a", "uint8", "xyc", True)],
        [
            _stage("rows", "xyc", "uint16(a(x - 1, y, c)) + 2 * uint16(a(x, y, c)) + uint16(a(x + 1, y, c))"),
            _stage("out", "xyc", "uint8((rows(x, y - 1, c) + 2 * rows(x, y, c) + rows(x, y + 1, c) + 8) >> 4)", True),
        ],
        {"out": RGB},
    )


def _demosaic() -> Document:
    """Bilinear, of a Bayer pattern that begins with red."""
    read = "int32(a(x + {}, y + {}))".format
    own = read(0, 0)
    cross = f"(({read(-1, 0)} + {read(1, 0)} + {read(0, -1)} + {read(0, 1)} + 2) >> 2)"
    corners = f"(({read(-1, -1)} + {read(1, -1)} + {read(-1, 1)} + {read(1, 1)} + 2) >> 2)"
    beside, above = f"(({read(-1, 0)} + {read(1, 0)} + 1) >> 1)", f"(({read(0, -1)} + {read(0, 1)} + 1) >> 1)"

    def at(ee: str, oe: str, eo: str, oo: str) -> str:
        return f"(({ee} if x % 2 == 0 else {oe}) if y % 2 == 0 else ({eo} if x % 2 == 0 else {oo}))"

    red, green = at(own, beside, above, corners), at(cross, own, own, cross)
    blue = at(corners, above, beside, own)
    return _document(
        [_image("a", "uint8")],
        [_stage("out", "xyc", f"uint8(mux(c, {red}, {green}, {blue}))", True)],
        {"out": RGB, "a": GRAY},
    )


def _warp(type_: str, perspective: bool = False) -> Document:
    names = ["m0", "m1", "m2", "m3", "m4", "m5"]
    defaults = (0.95, 0.12, 20.0, -0.12, 0.95, 90.0)
    params = [
        {"name": n, "type": "float32", "default": d, "min": -4096.0, "max": 4096.0}
        for n, d in zip(names, defaults, strict=True)
    ]
    px, py = "(m0 * float32(x) + m1 * float32(y) + m2)", "(m3 * float32(x) + m4 * float32(y) + m5)"
    if perspective:
        params += [{"name": n, "type": "float32", "default": 0.00005, "min": 0.0, "max": 0.01} for n in ("m6", "m7")]
        w = "(m6 * float32(x) + m7 * float32(y) + 1.0)"
        px, py = f"({px} / {w})", f"({py} / {w})"
    ix, iy = f"clamp(int32(floor({px})), 0, {WIDTH - 2})", f"clamp(int32(floor({py})), 0, {HEIGHT - 2})"
    wx, wy = f"({px} - floor({px}))", f"({py} - floor({py}))"
    read = "float32(a({}, {}))".format
    mixed = "({0} * (1.0 - {2}) + {1} * {2})".format
    rows = [mixed(read(ix, r), read(f"{ix} + 1", r), wx) for r in (iy, f"{iy} + 1")]
    value = mixed(*rows, wy)
    value = f"uint8({value} + 0.5)" if type_ == "uint8" else value
    return _document([_image("a", type_, edge=False)], [_stage("out", "xy", value)], {"out": GRAY, "a": GRAY}, params)


DOCUMENTS: dict[str, Document] = {
    "equalise": _equalise(),
    "equalise_float": _equalise_float(),
    "equalise_colour": _equalise_colour(),
    "local_equalise": _local_equalise(),
    "joint_histogram": _joint_histogram(),
    "gamma": _gamma(),
    "gamma_table": _gamma_table(),
    "linear_light": _linear_light(),
    "linear_luma": _linear_luma(),
    "sigmoid_contrast": _sigmoid_contrast(),
    "palette": _palette(),
    "cube": _cube(),
    "haar": _haar(),
    "haar_inverse": _haar_inverse(),
    "lifting": _lifting(),
    "lifting_inverse": _lifting_inverse(),
    "daubechies": _daubechies(),
    "daubechies_inverse": _daubechies_inverse(),
    "bilinear_float": _bilinear("float32"),
    "bilinear_byte": _bilinear("uint8"),
    "bilinear_rows": _bilinear("float32", separate=True),
    "bilinear_rgb": _bilinear("uint8", "c"),
    "bicubic": _kernel_resize(CUBIC, 4),
    "bicubic_byte": _kernel_resize(CUBIC, 4, "uint8"),
    "bicubic_rgb": _kernel_resize(CUBIC, 4, "uint8", True),
    "lanczos": _kernel_resize(LANCZOS, 6),
    "nearest_float": _nearest("float32"),
    "nearest_byte": _nearest("uint8"),
    "nearest_rgb": _nearest("uint8", True),
    "nearest_integer": _nearest_integer(),
    "box2_byte": _box(2, "uint8"),
    "box3_byte": _box(3, "uint8"),
    "box2_float": _box(2, "float32"),
    "box3_float": _box(3, "float32"),
    "box2_rgb": _box(2, "uint8", True),
    "area": _area(),
    "pyramid_down_byte": _pyramid_down("uint8"),
    "pyramid_down_float": _pyramid_down("float32"),
    "pyramid_up_byte": _pyramid_up("uint8"),
    "pyramid_up_float": _pyramid_up("float32"),
    "nv12": _nv12(),
    "yuyv": _yuyv(),
    "to_nv12": _to_nv12(),
    "swap_byte": _swap("uint8"),
    "swap_float": _swap("float32"),
    "greyscale": _greyscale(),
    "matrix_byte": _matrix("uint8"),
    "matrix_float": _matrix("float32"),
    "transpose_byte": _moved("a(y, x@)", "uint8"),
    "transpose_float": _moved("a(y, x@)", "float32"),
    "transpose_rgb": _moved("a(y, x@)", "uint8", True),
    "rotate_byte": _moved("a(y, a.extent.y - 1 - x@)", "uint8"),
    "rotate_float": _moved("a(y, a.extent.y - 1 - x@)", "float32"),
    "flip_byte": _moved("a(a.extent.x - 1 - x, y@)", "uint8"),
    "flip_rgb": _moved("a(a.extent.x - 1 - x, y@)", "uint8", True),
    "crop_rgb": _document(
        [_image("a", "uint8", "xyc", True, edge=False)],
        [_stage("out", "xyc", "a(x + 17, y + 9, c)", True)],
        {"out": (1400, 900, 3)},
    ),
    "interleave": _planes(True),
    "deinterleave": _planes(False),
    "blur_rgb": _blur_interleaved(),
    "demosaic": _demosaic(),
    "affine_byte": _warp("uint8"),
    "affine_float": _warp("float32"),
    "perspective_byte": _warp("uint8", True),
}
for _name, _found in DOCUMENTS.items():
    _found["name"] = _name
