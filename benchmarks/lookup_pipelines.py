"""Pipelines of histograms, curves and tables, as documents by name."""

from __future__ import annotations

from benchmarks.resampling_documents import BYTE, GRAY, RGB, Document, document, image, stage

HISTOGRAM: Document = {
    "domain": {"u": [0, "a.extent.x"], "v": [0, "a.extent.y"]},
    "at": ["a(u, v)"],
    "value": "h(a(u, v)) + 1",
}
RUNNING: Document = {"domain": {"b": [1, 255]}, "at": ["b"], "value": "cdf(b - 1) + cdf(b)"}


def _equalise() -> Document:
    return document(
        [image("a", "uint8", edge=False)],
        [
            stage("h", "i", "uint32(0)", updates=[HISTOGRAM]),
            stage("cdf", "i", "h(i)", updates=[RUNNING]),
            stage("out", "xy", "uint8(cdf(a(x, y)) * 255 // uint32(a.extent.x * a.extent.y))"),
        ],
        {"out": GRAY, "a": GRAY},
    )


def _equalise_float() -> Document:
    return document(
        [image("a", "uint8", edge=False)],
        [
            stage("h", "i", "uint32(0)", updates=[HISTOGRAM]),
            stage("cdf", "i", "h(i)", updates=[RUNNING]),
            stage("out", "xy", "sat_uint8(float32(cdf(a(x, y))) / float32(a.extent.x * a.extent.y) * 255.0)"),
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
    return document(
        [image("a", "uint8", "xyc", edge=False)],
        [
            stage("luma", "xy", luma),
            stage("h", "i", "uint32(0)", updates=[update]),
            stage("cdf", "i", "h(i)", updates=[RUNNING]),
            stage("level", "xy", "sat_uint8(float32(cdf(luma(x, y))) * (255.0 / float32(a.extent.x * a.extent.y)))"),
            stage("out", "xyc", f"sat_uint8(mux(c, {', '.join(parts)}))"),
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
    return document(
        [image("a", "uint8")],
        [
            {"name": "h", "dims": ["i", "s", "t"], "value": "uint32(0)", "updates": [histogram]},
            {"name": "clipped", "dims": ["i", "s", "t"], "value": "min(h(i, s, t), 192)"},
            {
                "name": "cdf",
                "dims": ["i", "s", "t"],
                "value": f"float32(clipped(i, s, t)) * (255.0 / {tile * tile}.0)",
                "updates": [running],
            },
            stage("out", "xy", f"sat_uint8({rows[0]} * (1.0 - {wy}) + {rows[1]} * {wy})"),
        ],
        {"out": GRAY, "a": GRAY},
    )


def _joint_histogram() -> Document:
    update: Document = {
        "domain": {"u": [0, "a.extent.x"], "v": [0, "a.extent.y"]},
        "at": ["a(u, v) >> 3", "b(u, v) >> 3"],
        "value": "h(a(u, v) >> 3, b(u, v) >> 3) + 1",
    }
    return document(
        [image("a", "uint8", edge=False), image("b", "uint8", edge=False)],
        [stage("h", "ij", "uint32(0)", updates=[update])],
        {"h": (32, 32), "a": GRAY, "b": GRAY},
    )


def _gamma() -> Document:
    value = "uint8(pow(float32(a(x, y)) / 255.0, g) * 255.0 + 0.5)"
    gamma = {"name": "g", "type": "float32", "default": 0.4545, "min": 0.1, "max": 10.0}
    return document([image("a", "uint8")], [stage("out", "xy", value)], {"out": GRAY}, [gamma])


def _gamma_table() -> Document:
    gamma = {"name": "g", "type": "float32", "default": 0.4545, "min": 0.1, "max": 10.0}
    table = "uint8(pow(float32(i) / 255.0, g) * 255.0 + 0.5)"
    return document(
        [image("a", "uint8", "xyc")],
        [stage("table", "i", table), stage("out", "xyc", "table(a(x, y, c))")],
        {"out": RGB},
        [gamma],
    )


def _linear_light() -> Document:
    value = "({0} / 12.92 if {0} <= 0.04045 else pow(({0} + 0.055) / 1.055, 2.4))".format(
        "(float32(a(x, y, c)) / 255.0)"
    )
    return document([image("a", "uint8", "xyc")], [stage("out", "xyc", value)], {"out": RGB})


def _linear_luma() -> Document:
    value = "({0} / 12.92 if {0} <= 0.04045 else pow(({0} + 0.055) / 1.055, 2.4))".format(
        "(float32(a(x, y, c)) / 255.0)"
    )
    luma = "0.2126 * linear(x, y, 0) + 0.7152 * linear(x, y, 1) + 0.0722 * linear(x, y, 2)"
    return document(
        [image("a", "uint8", "xyc", True)],
        [stage("linear", "xyc", value), stage("out", "xy", luma)],
        {"out": GRAY, "a": RGB},
    )


def _sigmoid_contrast() -> Document:
    value = BYTE.format("255.0 / (1.0 + exp(8.0 * (0.5 - float32(a(x, y)) / 255.0)))")
    return document([image("a", "uint8")], [stage("out", "xy", value)], {"out": GRAY})


def _palette() -> Document:
    return document(
        [image("a", "uint8"), {"name": "p", "type": "uint8", "dims": ["c", "i"]}],
        [stage("out", "xyc", "p(c, a(x, y))", True)],
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

    return document(
        [image("a", "uint8", "xyc"), {"name": "cube", "type": "float32", "dims": ["r", "g", "b", "c"]}],
        [stage("out", "xyc", value("bgr", {}))],
        {"out": RGB, "cube": (17, 17, 17, 3)},
    )


LOOKUPS: dict[str, Document] = {
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
}
