"""The Python front end writes the documents that one would write by hand."""

from __future__ import annotations

import doctest
import math
from typing import Any

import numpy as np
import pytest

from tilesmith.scheduler.errors import DocumentError
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.frontends.document.functions import FUNCTIONS
from tilesmith.scheduler.frontends.document.parser import REDUCTIONS
from tilesmith.scheduler.frontends.python import frontend, terms
from tilesmith.scheduler.frontends.python.frontend import *  # noqa: F403
from tilesmith.scheduler.frontends.python.frontend import (
    Image,
    Param,
    Range,
    Stage,
    Term,
    Var,
    absd,
    argmin,
    bool_,
    clamp,
    constant,
    document,
    float32,
    int32,
    minimum,
    mirror_interior,
    mux,
    pipeline,
    power,
    rall,
    random,
    repeat_edge,
    rmax,
    rsum,
    sat_uint8,
    select,
    sqrt,
    uint8,
    uint16,
    uint32,
)

x, y = Var("x"), Var("y")


def test_the_docstring_runs() -> None:
    results = doctest.testmod(frontend)
    assert results.attempted > 20
    assert results.failed == 0


def test_blur_is_the_blur_of_the_format() -> None:
    inp = Image("input", uint16, x, y)
    blur_x, blur_y = Stage("blur_x"), Stage("blur_y")
    blur_x[x, y] = (inp[x, y] + inp[x + 1, y] + inp[x + 2, y]) // 3
    blur_y[x, y] = (blur_x[x, y] + blur_x[x, y + 1] + blur_x[x, y + 2]) // 3
    expected = {
        "format": 1,
        "name": "blur",
        "params": [],
        "inputs": [{"name": "input", "type": "uint16", "dims": ["x", "y"]}],
        "stages": [
            {
                "name": "blur_x",
                "dims": ["x", "y"],
                "value": "(input(x, y) + input(x + 1, y) + input(x + 2, y)) // 3",
            },
            {
                "name": "blur_y",
                "dims": ["x", "y"],
                "value": "(blur_x(x, y) + blur_x(x, y + 1) + blur_x(x, y + 2)) // 3",
            },
        ],
        "outputs": ["blur_y"],
        "estimates": {"blur_y": [[0, 1536], [0, 2560]]},
    }
    sizes = {blur_y: [(0, 1536), (0, 2560)]}
    assert document("blur", [blur_y], sizes) == expected
    assert pipeline("blur", [blur_y], sizes) == load(expected)


TERMS: list[tuple[Term, str]] = [
    (x + 1, "x + 1"),
    (1 + x, "1 + x"),
    (-x + -1, "-x + -1"),
    (x - (y - 1), "x - (y - 1)"),
    (2 - x, "2 - x"),
    ((x + y) * 3, "(x + y) * 3"),
    (3 * x / 2, "3 * x / 2"),
    (1 / x, "1 / x"),
    (x // 2 % 3, "x // 2 % 3"),
    (7 // x + 7 % x, "7 // x + 7 % x"),
    (x**2, "x ** 2"),
    ((-x) ** 2, "(-x) ** 2"),
    (-(x**2), "-x ** 2"),
    (2 ** (x**y), "2 ** x ** y"),
    ((x**y) ** 2, "(x ** y) ** 2"),
    (x & 3 | y ^ 1, "x & 3 | y ^ 1"),
    (1 & x, "1 & x"),
    (1 | x, "1 | x"),
    (1 ^ x, "1 ^ x"),
    (~(x + 1), "~(x + 1)"),
    ((1 << x) >> y, "1 << x >> y"),
    (x << 1 >> (1 >> y), "x << 1 >> (1 >> y)"),
    ((x < 1) & (y >= 2) | (x == y), "(x < 1) & (y >= 2) | (x == y)"),
    ((x > 1) ^ (y <= 2) & (x != 3), "(x > 1) ^ (y <= 2) & (x != 3)"),
    (+x, "x"),
    (abs(x - y), "abs(x - y)"),
    (sum([x, y, x]), "x + y + x"),
    (x * np.int64(3) + np.float32(0.5), "x * 3 + 0.5"),
    (x * True, "x * True"),
    (minimum(x, clamp(y, 0, 9)), "min(x, clamp(y, 0, 9))"),
    (select(x < 1, 0.5, 1.5) + sqrt(2.0), "select(x < 1, 0.5, 1.5) + sqrt(2.0)"),
    (uint8(x) + sat_uint8(y), "uint8(x) + sat_uint8(y)"),
    (mux(x, 1, 2) + absd(x, y) + power(2.0, x), "mux(x, 1, 2) + absd(x, y) + pow(2.0, x)"),
    (random(x, y), "random(x, y)"),
]


@pytest.mark.parametrize(("term", "text"), TERMS)
def test_terms(term: Term, text: str) -> None:
    assert str(term) == text


def test_a_term_is_neither_true_nor_false() -> None:
    for wrong in (lambda: x < y < 3, lambda: x and y, lambda: 1 if x == y else 2, lambda: not x):
        with pytest.raises(TypeError, match="has no value yet"):
            wrong()


def test_a_function_of_numbers_or_a_slice_is_told_what_there_is_for_points() -> None:
    with pytest.raises(TypeError, match="'x' has no value yet: functions of points are in"):
        math.exp(x)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a slice cannot be an index"):
        Stage("row")[x, 1:3]


def test_a_term_cannot_be_unpacked() -> None:
    pair = Stage("pair")
    with pytest.raises(TypeError):
        _, _ = pair[x]


def test_what_is_no_number_is_no_term() -> None:
    with pytest.raises(TypeError, match="cannot be part"):
        x + "y"  # type: ignore[operator]
    with pytest.raises(ValueError, match="cannot be written"):
        x + float("nan")


def test_reductions_and_ranges() -> None:
    image = Image("image", float32, x, y)
    n = Param("n", int32, min=1, max=9)
    r, s, t = Range("r", -1, 2), Range("s", n, n + 3), Range("t", 0, n)
    u, v = Range("u", n, extent=4), Range.along("v", image, "y")
    assert str(rsum(image[x + r, y], r)) == "sum(image(x + r, y) for r in range(-1, 2))"
    assert (
        str(rmax(image[s, t], s, t, where=s < t))
        == "max(image(s, t) for s in range(n, n + 3) for t in range(0, n) if s < t)"
    )
    assert str(rall(image[u, v] > 0, u, v)) == (
        "all(image(u, v) > 0 for u in range(n, n + 4) for v in range(image.min.y, image.min.y + image.extent.y))"
    )
    assert str(argmin(image[r, y], r)[1]) == "argmin(image(r, y) for r in range(-1, 2))[1]"
    with pytest.raises(TypeError, match="at least one range"):
        rsum(x)
    with pytest.raises(TypeError, match="an end or an extent"):
        Range("w", 0)


def everything() -> dict[str, Any]:
    i, c = Var("i"), Var("c")
    gain = Param("gain", float32, default=1.5, min=0.0, max=4.0)
    on = Param("on", bool_, default=True)
    image = Image("image", uint8, x, y, c, storage=[c, x, y])
    soft = Image("soft", float32, x, y, boundary=mirror_interior)
    dark = Image("dark", uint16, "x", boundary=constant(7))
    rx, ry = Range("rx", 0, image.extent.x), Range.along("ry", image, y)
    r = Range("r", 1, 256)

    hist = Stage("hist", type=uint32, boundary=repeat_edge, domain=[(0, 256)])
    hist[i] = uint32(0)
    hist.update(image[rx, ry, 0], hist[image[rx, ry, 0]] + 1, over=[rx, ry], where=on)
    hist[r] = hist[r] + hist[r - 1]
    pair = Stage("pair", type=[float32, uint8], storage=[y, x])
    pair[x, y] = soft[x + dark[3] % 4, y] * gain, image[x, y, 1]
    pair[x, 0] = pair[x, 0][0] + 1, pair[x, 0][1]
    best = Stage("best")
    k = Range("k", 0, 256)
    best[()] = argmin(hist[k], k)
    last = Stage("last")
    last[x, y] = select(best[()][0] > 3, pair[x, y][0], float32(pair[x, y][1]))
    return document(
        "everything", [last, best], {last: [(0, 8), (0, 8)], "best": [], image: [(0, 8)] * 2 + [(0, 3)]}, "All."
    )


def test_everything() -> None:
    written = everything()
    made = load(written)
    assert [s.name for s in made.stages] == ["hist", "best", "pair", "last"]
    assert [s["name"] for s in written["stages"]] == ["best", "hist", "last", "pair"]
    hist = made.stage("hist")
    assert [[r.name for r in u.domain] for u in hist.updates] == [["rx", "ry"], ["r"]]
    assert hist.typed
    assert hist.boundary is not None
    assert made.stage("pair").storage == ("y", "x")
    assert made.input("image").storage == ("c", "x", "y")
    assert [t.name for t in made.stage("best").types] == ["int32", "uint32"]
    assert made.doc == "All."
    assert [name for name, _ in made.estimates] == ["best", "image", "last"]
    assert everything() == written


def test_ranges_of_an_update_are_in_the_order_they_were_made() -> None:
    b, a = Range("b", 0, 4), Range("a", 0, 4)
    image, out = Image("image", float32, x, y), Stage("out")
    out[x] = float32(0)
    out[a] = out[a] + image[a, b]
    (update,) = pipeline("order", [out], {out: [(0, 4)]}).stage("out").updates
    assert [r.name for r in update.domain] == ["b", "a"]


def test_mistakes() -> None:
    f, g = Stage("f"), Stage("g")
    with pytest.raises(TypeError, match="each a Var"):
        f[x + 1] = x
    f[x] = g[x]
    with pytest.raises(ValueError, match="'g' is used but never defined"):
        document("p", [f], {})
    g[x] = x / 2
    with pytest.raises(DocumentError) as caught:
        pipeline("p", [f], {f: [(0, 8)]})
    assert [(p.code, p.pointer, p.column) for p in caught.value.problems] == [("type_error", "/stages/1/value", 1)]


def test_two_stages_of_one_name_are_told_apart() -> None:
    f, g = Stage("f"), Stage("f")
    g[x] = x
    f[x] = g[x]
    with pytest.raises(DocumentError) as caught:
        pipeline("p", [f], {f: [(0, 8)]})
    assert "duplicate_name" in [p.code for p in caught.value.problems]


def test_every_function_is_there() -> None:
    renamed = {"min": "minimum", "max": "maximum", "pow": "power", "round": "round_", "bool": "bool_", "abs": "__abs__"}
    for name in FUNCTIONS:
        assert renamed.get(name, name) in (*frontend.__all__, "__abs__")
    assert {n if n.startswith("arg") else f"r{n}" for n in REDUCTIONS} <= set(frontend.__all__)


def test_functions_of_numpy_on_terms_are_those_of_the_language() -> None:
    a = Image("a", float32, x, y)[x, y]
    told = {
        str(np.sqrt(a)): "sqrt(a(x, y))",
        str(np.abs(a)): "abs(a(x, y))",
        str(np.clip(a, 0, 1)): "clamp(a(x, y), 0, 1)",
        str(np.maximum(0, a)): "max(0, a(x, y))",
        str(np.arctan2(a, 2.0)): "atan2(a(x, y), 2.0)",
        str(np.rint(-a)): "round(-a(x, y))",
        str(np.float32(2) * a + np.int64(1)): "2.0 * a(x, y) + 1",
        str(np.float64(0.5) > a): "0.5 > a(x, y)",
        str(np.array(3.0) ** a): "3.0 ** a(x, y)",
        str(sum(np.array([1.0, 2.0]) * a)): "1.0 * a(x, y) + 2.0 * a(x, y)",
    }
    assert list(told) == list(told.values())


def test_roundings_of_python_are_those_of_the_language() -> None:
    a = Image("a", float32, x, y)[x, y]
    told = [str(f(a)) for f in (round, math.floor, math.ceil, math.trunc)]
    assert told == ["round(a(x, y))", "floor(a(x, y))", "ceil(a(x, y))", "trunc(a(x, y))"]


def test_a_boundary_by_its_name_is_told_what_it_is() -> None:
    with pytest.raises(TypeError, match=r"a boundary is repeat_edge, .* not 'repeat_edge'"):
        Image("a", float32, x, y, boundary="repeat_edge")  # type: ignore[arg-type]


def test_functions_of_numpy_that_the_language_has_not() -> None:
    a = Image("a", float32, x, y)[x, y]
    with pytest.raises(TypeError, match=r"np\.sinh is no function of pipelines"):
        np.sinh(a)
    with pytest.raises(TypeError, match=r"np\.add\.reduce: pipelines have functions of points"):
        np.add.reduce(a)


def test_names_of_numpy_are_numpys() -> None:
    assert all(isinstance(getattr(np, name), np.ufunc) for name in terms._NUMPY)


def test_round_brackets_are_those_of_documents() -> None:
    for source in (Image("a", float32, x, y), Stage("a")):
        with pytest.raises(TypeError, match=r"a\[x, y\] \(documents have a\(x, y\)\)"):
            source(x, y)
