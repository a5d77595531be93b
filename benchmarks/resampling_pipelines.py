"""Pipelines of look-ups, resampling, wavelets and interleaved images, as documents by name."""

from __future__ import annotations

from benchmarks.lookup_pipelines import LOOKUPS
from benchmarks.resampling_documents import BYTE, GRAY, HEIGHT, RGB, WIDTH, Document, document, image, stage
from benchmarks.wavelet_pipelines import WAVELETS

FACTORS = [
    {"name": "fx", "type": "float32", "default": 0.73, "min": 0.25, "max": 4.0},
    {"name": "fy", "type": "float32", "default": 0.73, "min": 0.25, "max": 4.0},
]
"""Input pixels a step of the output's."""


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
        stages = [stage("rows", dims, rows), stage("out", dims, finish(value), interleaved)]
    else:
        each = [mixed.format(read.format(ix, r), read.format(f"{ix} + 1", r), wx) for r in (iy, f"{iy} + 1")]
        stages = [stage("out", dims, finish(mixed.format(*each, wy)), interleaved)]
    return document([image("a", type_, dims, interleaved)], stages, estimates, FACTORS)


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
    stages.append(stage("rows", dims, f"sum(float32(a(int32(floor({px})) + k, y{more})) * wx(x, k) for {ends})"))
    value = f"sum(rows(x, int32(floor({py})) + k{more}) * wy(y, k) for {ends})"
    if type_ == "uint8":
        value = BYTE.format(value)
    stages.append(stage("out", dims, value, interleaved))
    estimates = {"out": (WIDTH, HEIGHT, 3)[: len(dims)], "a": (1121, 748, 3)[: len(dims)]}
    return document([image("a", type_, dims, interleaved)], stages, estimates, FACTORS)


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
    return document(
        [image("a", type_, dims, interleaved)], [stage("out", dims, value, interleaved)], estimates, FACTORS
    )


def _nearest_integer() -> Document:
    """The ratio of two integers, as a scaler's registers have it."""
    params = [{"name": n, "type": "int32", "default": d, "min": 1, "max": 4096} for n, d in (("num", 73), ("den", 100))]
    value = "a(clamp(x * num // den, 0, a.extent.x - 1), clamp(y * num // den, 0, a.extent.y - 1))"
    return document(
        [image("a", "uint8", edge=False)], [stage("out", "xy", value)], {"out": GRAY, "a": (1121, 748)}, params
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
    return document(
        [image("a", type_, dims, interleaved)], [stage("out", dims, value, interleaved)],
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
        stage("rows", "xy", "sum(float32(a(int32(floor(float32(x) * fx)) + k, y)) * wx(x, k) for k in range(4))"),
        stage("out", "xy", "uint8(sum(rows(x, int32(floor(float32(y) * fy)) + k) * wy(y, k) for k in range(4)) + 0.5)"),
    ]
    return document([image("a", "uint8")], stages, {"out": (1024, 682), "a": GRAY}, params)


def _pyramid_down(type_: str) -> Document:
    read = "uint16({})" if type_ == "uint8" else "{}"
    weights = {-2: 1, -1: 4, 0: 6, 1: 4, 2: 1}
    along = " + ".join(f"{w} * " + read.format(f"a(2 * x + {n}, y)") for n, w in weights.items())
    down = " + ".join(f"{w} * rows(x, 2 * y + {n})" for n, w in weights.items())
    value = f"uint8(({down} + 128) >> 8)" if type_ == "uint8" else f"({down}) * {1 / 256}"
    return document(
        [image("a", type_)], [stage("rows", "xy", along), stage("out", "xy", value)],
        {"out": (WIDTH // 2, HEIGHT // 2), "a": GRAY},
    )  # fmt: skip


def _pyramid_up(type_: str) -> Document:
    read = "uint16({})" if type_ == "uint8" else "{}"
    r = {n: read.format(f"a(x // 2 + {n}, y)") for n in (-1, 0, 1)}
    along = f"{r[-1]} + 6 * {r[0]} + {r[1]} if x % 2 == 0 else 4 * {r[0]} + 4 * {r[1]}"
    d = {n: f"rows(x, y // 2 + {n})" for n in (-1, 0, 1)}
    up = f"({d[-1]} + 6 * {d[0]} + {d[1]} if y % 2 == 0 else 4 * {d[0]} + 4 * {d[1]})"
    value = f"uint8(({up} + 32) >> 6)" if type_ == "uint8" else f"{up} * {1 / 64}"
    return document(
        [image("a", type_)], [stage("rows", "xy", along), stage("out", "xy", value)],
        {"out": GRAY, "a": (WIDTH // 2, HEIGHT // 2)},
    )  # fmt: skip


def _colour(y: str, u: str, v: str) -> str:
    """BT.601 in integers, as OpenCV has it."""
    luma = f"max(int32({y}) - 16, 0) * 1220542"
    u, v = f"(int32({u}) - 128)", f"(int32({v}) - 128)"
    parts = (f"1673527 * {v}", f"-852492 * {v} - 409993 * {u}", f"2116026 * {u}")
    return "mux(c, " + ", ".join(f"sat_uint8(({luma} + {p} + 524288) >> 20)" for p in parts) + ")"


def _nv12() -> Document:
    return document(
        [image("l", "uint8"), image("uv", "uint8", "cxy", edge=True)],
        [stage("out", "xyc", _colour("l(x, y)", "uv(0, x // 2, y // 2)", "uv(1, x // 2, y // 2)"), True)],
        {"out": RGB, "l": GRAY, "uv": (2, WIDTH // 2, HEIGHT // 2)},
    )


def _yuyv() -> Document:
    at = "a({}, y)"
    value = _colour(at.format("2 * x"), at.format("4 * (x // 2) + 1"), at.format("4 * (x // 2) + 3"))
    return document(
        [{"name": "a", "type": "uint8", "dims": ["x", "y"]}], [stage("out", "xyc", value, True)],
        {"out": RGB, "a": (2 * WIDTH, HEIGHT)},
    )  # fmt: skip


def _to_nv12() -> Document:
    part = "(({} * int32(a({x}, {y}, 0)) + {} * int32(a({x}, {y}, 1)) + {} * int32(a({x}, {y}, 2)) + 128) >> 8)"
    u, v = (part.format(*w, x="2 * x", y="2 * y") for w in ((-38, -74, 112), (112, -94, -18)))
    return document(
        [image("a", "uint8", "xyc", True, edge=False)],
        [
            stage("luma", "xy", f"uint8({part.format(66, 129, 25, x='x', y='y')} + 16)"),
            {"name": "uv", "dims": ["c", "x", "y"], "value": f"uint8(mux(c, {u}, {v}) + 128)"},
        ],
        {"luma": GRAY, "uv": (2, WIDTH // 2, HEIGHT // 2), "a": RGB},
        outputs=("luma", "uv"),
    )


def _swap(type_: str) -> Document:
    return document(
        [image("a", type_, "xyc", True, edge=False)], [stage("out", "xyc", "a(x, y, 2 - c)", True)], {"out": RGB}
    )


def _greyscale() -> Document:
    value = "uint8((4899 * uint32(a(x, y, 0)) + 9617 * uint32(a(x, y, 1)) + 1868 * uint32(a(x, y, 2)) + 8192) >> 14)"
    return document(
        [image("a", "uint8", "xyc", True, edge=False)], [stage("out", "xy", value)], {"out": GRAY, "a": RGB}
    )


def _matrix(type_: str) -> Document:
    value = "sum(float32(a(x, y, k)) * m(k, c) for k in range(3))"
    value = BYTE.format(value) if type_ == "uint8" else value
    return document(
        [image("a", type_, "xyc", True, edge=False), {"name": "m", "type": "float32", "dims": ["k", "c"]}],
        [stage("out", "xyc", value, True)],
        {"out": RGB, "a": RGB, "m": (3, 3)},
    )


def _moved(value: str, type_: str, interleaved: bool = False) -> Document:
    """An image with its pixels elsewhere."""
    dims, more = ("xyc", ", c") if interleaved else ("xy", "")
    turned = "(y" in value
    size = (HEIGHT, WIDTH, 3) if turned else (WIDTH, HEIGHT, 3)
    return document(
        [image("a", type_, dims, interleaved, edge=False)],
        [stage("out", dims, value.replace("@", more), interleaved)],
        {"out": size[: len(dims)], "a": (WIDTH, HEIGHT, 3)[: len(dims)]},
    )


def _planes(interleave: bool) -> Document:
    return document(
        [image("a", "uint8", "xyc", not interleave, edge=False)],
        [stage("out", "xyc", "a(x, y, c)", interleave)],
        {"out": RGB},
    )


def _blur_interleaved() -> Document:
    return document(
        [image("a", "uint8", "xyc", True)],
        [
            stage("rows", "xyc", "uint16(a(x - 1, y, c)) + 2 * uint16(a(x, y, c)) + uint16(a(x + 1, y, c))"),
            stage("out", "xyc", "uint8((rows(x, y - 1, c) + 2 * rows(x, y, c) + rows(x, y + 1, c) + 8) >> 4)", True),
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
    return document(
        [image("a", "uint8")],
        [stage("out", "xyc", f"uint8(mux(c, {red}, {green}, {blue}))", True)],
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
    return document([image("a", type_, edge=False)], [stage("out", "xy", value)], {"out": GRAY, "a": GRAY}, params)


DOCUMENTS: dict[str, Document] = {
    **LOOKUPS,
    **WAVELETS,
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
    "crop_rgb": document(
        [image("a", "uint8", "xyc", True, edge=False)],
        [stage("out", "xyc", "a(x + 17, y + 9, c)", True)],
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
