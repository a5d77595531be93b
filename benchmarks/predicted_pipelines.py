"""The pipelines that predictions are judged on: small documents, each mostly of one kind of work.

Sizes are those of photographs, so that a call takes from a tenth of a millisecond to a second.
"""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

IMAGE = (1536, 1024)
"""Width and height, where a pipeline says no other."""
CLAMPED = {"kind": "repeat_edge"}


def _image(name: str, of: str = "float32", dims: str = "xy", storage: str = "") -> Document:
    found: Document = {"name": name, "type": of, "dims": list(dims), "boundary": CLAMPED}
    return {**found, "storage": list(storage)} if storage else found


def _stage(name: str, value: str | list[str], dims: str = "xy", **more: Any) -> Document:
    return {"name": name, "dims": list(dims), "value": value, **more}


def _pipeline(
    name: str, inputs: list[Document], stages: list[Document], sizes: tuple[int, ...] = IMAGE, **estimates: Any
) -> Document:
    """The last stage is the output, of that size; `estimates` are the sizes of inputs."""
    region = {k: [[0, n] for n in size] for k, size in {stages[-1]["name"]: sizes, **estimates}.items()}
    return {
        "format": 1,
        "name": name,
        "inputs": inputs,
        "stages": stages,
        "outputs": [stages[-1]["name"]],
        "estimates": region,
    }


def _pointwise(name: str, value: str, of: str = "float32", sizes: tuple[int, ...] = IMAGE) -> Document:
    return _pipeline(name, [_image("a", of), _image("b", of)], [_stage("out", value)], sizes)


def _updated(name: str, value: str, domain: Document, at: list[str], update: str, dims: str = "xy") -> Document:
    return _stage(name, value, dims, updates=[{"domain": domain, "at": at, "value": update}])


ROWS = {"r": [1, "a.extent.y - 1"]}
COLUMNS = {"r": [1, "a.extent.x - 1"]}
ALL = {"rx": [0, "a.extent.x"], "ry": [0, "a.extent.y"]}


def documents() -> dict[str, Document]:
    """All pipelines by name."""
    functions = [
        _pointwise(f"{f}_{of}", f"{f}({args})", of)
        for f, args in (
            ("exp", "a(x, y)"), ("log", "a(x, y)"), ("sin", "a(x, y)"), ("atan2", "a(x, y), b(x, y)"),
            ("pow", "a(x, y), b(x, y)"), ("tanh", "a(x, y)"), ("sqrt", "a(x, y)"),
        )
        for of in ("float32", "float64")
    ]  # fmt: skip
    return {d["name"]: d for d in (*functions, *_arithmetic(), *_places(), *_order(), *_windows(), *_small())}


def _arithmetic() -> list[Document]:
    polynomial = "a(x, y)"
    for n in range(12):
        polynomial = f"({polynomial}) * b(x, y) + {0.5 + n / 16}"
    return [
        _pointwise("divide_uint8", "a(x, y) // 7 + b(x, y) % 11", "uint8"),
        _pointwise("divide_int16", "a(x, y) // 7 + b(x, y) % 11", "int16"),
        _pointwise("divide_int32", "a(x, y) // 7 + b(x, y) % 11", "int32"),
        _pointwise("quotient_int32", "a(x, y) // (b(x, y) + 1)", "int32"),
        _pointwise("quotient_float32", "a(x, y) / (b(x, y) + 1.0)"),
        _pointwise("mean_uint8", "rounding_halving_add(a(x, y), b(x, y))", "uint8"),
        _pointwise("products_int64", "a(x, y) * b(x, y) + (a(x, y) >> 3)", "int64"),
        _pointwise("to_bytes", "sat_uint8(round(a(x, y) * 255.0) + b(x, y))"),
        _pointwise("polynomial", polynomial),
        _pointwise("polynomial_float64", polynomial, "float64"),
        _pointwise("choices", "a(x, y) if a(x, y) > b(x, y) else a(x, y) * b(x, y) - 1.0"),
    ]


def _places() -> list[Document]:
    """Elements at places that data, or a stride, says."""
    w, h = IMAGE
    at = "clamp(int32({0} * 1535.0), 0, 1535), clamp(int32({1} * 1023.0), 0, 1023)"
    flow = _image("flow_x"), _image("flow_y")
    near = "clamp(x + int32(flow_x(x, y) * 8.0), 0, 1535), clamp(y + int32(flow_y(x, y) * 8.0), 0, 1023)"
    return [
        _pipeline("gather_far", [_image("a"), *flow],
                  [_stage("out", f"a({at.format('flow_x(x, y)', 'flow_y(x, y)')})")], a=IMAGE),
        _pipeline("gather_near", [_image("a"), *flow], [_stage("out", f"a({near})")], a=IMAGE),
        _pipeline("gather_bytes", [_image("a", "uint8"), *flow], [_stage("out", f"a({near})")], a=IMAGE),
        _pipeline("look_up_bytes", [_image("a", "uint8"), _image("lut", "uint8", "i")],
                  [_stage("out", "lut(a(x, y))")], lut=(256,)),
        _pipeline("look_up_floats", [_image("a", "uint8"), _image("lut", "float32", "i")],
                  [_stage("out", "lut(a(x, y))")], lut=(256,)),
        _pipeline("look_up_shorts", [_image("a", "uint16"), _image("lut", "uint16", "i")],
                  [_stage("out", "lut(a(x, y))")], lut=(65536,)),
        _pipeline("transpose_float32", [_image("a")], [_stage("out", "a(y, x)")], a=(h, w)),
        _pipeline("transpose_uint8", [_image("a", "uint8")], [_stage("out", "a(y, x)")], a=(h, w)),
        _pipeline("interleaved", [_image("a", "uint8", "xyc", "cxy")],
                  [_stage("out", "uint8((uint16(a(x, y, 0)) * 77 + uint16(a(x, y, 1)) * 150 + "
                                 "uint16(a(x, y, 2)) * 29) >> 8)")], a=(w, h, 3)),
        _pipeline("every_second", [_image("a")], [_stage("out", "(a(2 * x, 2 * y) + a(2 * x + 1, 2 * y)) * 0.5")]),
        _pipeline("every_fifth", [_image("a")], [_stage("out", "a(5 * x, y)")], (512, 1024)),
        _pipeline("twice_as_wide", [_image("a")], [_stage("out", "a(x // 2, y // 2) * 0.75 + a(x // 2 + 1, y // 2)")]),
    ]  # fmt: skip


def _order() -> list[Document]:
    """Results of one iteration that the next one takes."""
    down = _updated("out", "a(x, y)", ROWS, ["x", "r"], "out(x, r - 1) * 0.75 + out(x, r) * 0.25")
    along = _updated("out", "a(x, y)", COLUMNS, ["r", "y"], "out(r - 1, y) * 0.75 + out(r, y) * 0.25")
    lines = _updated("lines", "uint32(a(x, y))", COLUMNS, ["r", "y"], "lines(r - 1, y) + lines(r, y)")
    table = _updated("out", "lines(x, y)", ROWS, ["x", "r"], "out(x, r - 1) + out(x, r)")
    counts = _updated("out", "uint32(0)", ALL, ["a(rx, ry)"], "out(a(rx, ry)) + 1", "i")
    sums = _updated("out", "0.0", ALL, ["a(rx, ry)"], "out(a(rx, ry)) + b(rx, ry)", "i")
    total = _stage("out", "sum(a(r, y) for r in range(1536))", "y")
    return [
        _pipeline("recursive_down", [_image("a")], [down], a=IMAGE),
        _pipeline("recursive_along", [_image("a")], [along], a=IMAGE),
        _pipeline("summed_area", [_image("a", "uint8")], [lines, table], a=IMAGE),
        _pipeline("histogram", [_image("a", "uint8")], [counts], (256,), a=IMAGE),
        _pipeline("scattered_sums", [_image("a", "uint8"), _image("b")], [sums], (256,), a=IMAGE, b=IMAGE),
        _pipeline("sums_of_rows", [_image("a")], [total], (1024,), a=IMAGE),
        _pipeline("sums_of_columns", [_image("a")],
                  [_stage("out", "sum(a(x, r) for r in range(1024))", "x")], (1536,), a=IMAGE),
    ]  # fmt: skip


def _windows() -> list[Document]:
    box = "sum({}(x + i, y + j) for i in range(-{n}, {n} + 1) for j in range(-{n}, {n} + 1))"
    chain = [_stage("s0", "a(x - 1, y) + 2.0 * a(x, y) + a(x + 1, y)")]
    for n in range(1, 24):
        chain.append(_stage(f"s{n}", f"(s{n - 1}(x, y - 1) + 2.0 * s{n - 1}(x, y) + s{n - 1}(x, y + 1)) * 0.0625"))
    median = "max(min(a(x - 1, y), a(x, y)), min(max(a(x - 1, y), a(x, y)), a(x + 1, y)))"
    weights = "exp(-(a(x + i, y + j) - a(x, y)) * (a(x + i, y + j) - a(x, y)) * 8.0)"
    window = "for i in range(-2, 3) for j in range(-2, 3)"
    product = "sum(a(k, y) * b(x, k) for k in range(512))"
    return [
        _pipeline("box_large", [_image("a")], [_stage("out", box.format("a", n=10))]),
        _pipeline("blur_uint8", [_image("a", "uint8")],
                  [_stage("rows", "uint16(a(x - 1, y)) + 2 * uint16(a(x, y)) + uint16(a(x + 1, y))"),
                   _stage("out", "uint8((rows(x, y - 1) + 2 * rows(x, y) + rows(x, y + 1) + 8) >> 4)")]),
        _pipeline("median_uint8", [_image("a", "uint8")], [_stage("out", median)]),
        _pipeline("bilateral", [_image("a")],
                  [_stage("out", f"sum({weights} * a(x + i, y + j) {window}) / sum({weights} {window})")], (768, 512)),
        _pipeline("chain", [_image("a")], chain),
        _pipeline("matrix_product", [_image("a"), _image("b")], [_stage("out", product)], (512, 512),
                  a=(512, 512), b=(512, 512)),
        _pipeline("bayer", [_image("a", "uint16")],
                  [_stage("out", "a(x, y) if (x + y) % 2 == 0 else (a(x - 1, y) + a(x + 1, y)) >> 1")]),
    ]  # fmt: skip


def _small() -> list[Document]:
    blur = "(a(x - 1, y) + a(x, y) + a(x + 1, y)) * b(x, y)"
    return [
        _pointwise("tiny", blur, sizes=(40, 30)),
        _pointwise("small", blur, sizes=(256, 256)),
        _pointwise("narrow", blur, sizes=(7, 60000)),
    ]
