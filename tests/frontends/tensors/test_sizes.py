"""Sizes are polynomials: their text has the value that arithmetic gives, and equal ones are recognised."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tilesmith.scheduler.frontends.tensors.sizes import Size, fixed, product, symbol

SYMBOLS = {"a": 3, "b": 5}
LEAVES = st.one_of(
    st.integers(0, 6).map(lambda n: (fixed(n), str(n))),
    st.sampled_from(sorted(SYMBOLS)).map(lambda s: (symbol(s, SYMBOLS[s]), s)),
)


def joined(parts):
    (a, s), (b, t), op = parts
    made = {"+": a + b, "-": a - b, "*": a * b, "//": a // b}[op]
    return made, f"({s} {op} {t})"


TREES = st.recursive(
    LEAVES, lambda t: st.tuples(t, t, st.sampled_from(["+", "-", "*", "//"])).map(joined), max_leaves=8
)


NOTHING = joined(((symbol("b", SYMBOLS["b"]), "b"), joined(((fixed(1), "1"), (symbol("b", 5), "b"), "//")), "*"))
"""b * (1 // b): 0 as planned, and 1 where b is."""


@given(TREES, st.integers(1, 9), st.integers(1, 9))
@example(joined((NOTHING, NOTHING, "//")), 1, 1)
def test_text_and_estimate_are_what_arithmetic_gives(tree, a, b):
    size, written = tree
    for values in (SYMBOLS, {"a": a, "b": b}):
        try:
            wanted = eval(written, dict(values))
        except ZeroDivisionError:
            continue
        assert eval(size.text, dict(values)) == wanted
        if values is SYMBOLS:
            assert size.estimate == wanted


def test_products_are_equal_in_any_order():
    n, h = symbol("n", 2), symbol("h", 8)
    assert product([n, fixed(4), h]) == h * 2 * n * 2
    assert h * 4 * n // (n * 2) == h * 2
    assert (h * 2 + 1) // 2 == h
    assert (h - 1 + 3 - 2) == h
    assert (h // 2) * 2 != h
    assert n + 0 == n
    assert (n - n) == fixed(0)


def test_text_is_short():
    h = symbol("image.extent.y", 8)
    texts = [h, h + 1, h * 2, h * h, (h - 1) // 2 + 1, fixed(-3)]
    assert [size.text for size in texts] == [
        "image.extent.y", "(image.extent.y + 1)", "(image.extent.y * 2)", "(image.extent.y * image.extent.y)",
        "(((image.extent.y + -1) // 2) + 1)", "-3",
    ]  # fmt: skip
    assert isinstance(texts[0], Size)
