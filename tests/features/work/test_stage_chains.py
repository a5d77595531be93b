"""Chains of dependent operations, through what is inline and through all stages of a loop."""

from __future__ import annotations

from support.group_work import FLOAT, LOAD, ORDERS, QUOTIENT, group, works
from support.small_pipelines import E, F, pipeline, stage, x, y

from tilesmith.cost_models.work import Chain
from tilesmith.platforms.core import ORDINARY
from tilesmith.scheduler.features.groups.group_counts import Levels
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.expressions import Call, Cast
from tilesmith.scheduler.ir.pipeline.types import FLOAT32


def test_chains_go_through_what_is_inline_and_through_all_stages_of_one_loop() -> None:
    root = E(Call("sqrt", (F("input")(x, y).e,), FLOAT32))
    of = pipeline(
        "chained", [stage("root", "xy", root), stage("out", "xy", F("root")(x, y) * 2.0 + 1.0)], {"out": (64, 8)}
    )
    tile = {"x": 64, "y": 8}
    first, second = LOAD + QUOTIENT, LOAD + FLOAT + FLOAT
    assert [w.chain.whole for w in works(of, ORDERS[0], {}, tile, 8).values()] == [first + second]
    inside, outside = (group(of, ORDERS[0], {"root": Levels(n, n, n == 0)}, tile, 8) for n in (0, 1))
    for found, of_loop in ((inside, first + second), (outside, 0.0)):
        assert found.work is not None
        assert found.work.chain == of_loop
        assert [s.work.chain.whole for s in found.stages if s.work is not None] == [first, second]


def test_coordinates_begin_chains_by_way_of_what_is_inline_where_they_go_along_the_row() -> None:
    """The root of x is computed for each vector, that of y once a row."""
    roots = [
        stage("across", "x", E(Call("sqrt", (E(Cast(x.e, FLOAT32)).e,), FLOAT32))),
        stage("down", "y", E(Call("sqrt", (E(Call("sqrt", (E(Cast(y.e, FLOAT32)).e,), FLOAT32)).e,), FLOAT32))),
    ]
    of = pipeline("roots", [*roots, stage("out", "xy", F("across")(x) * F("down")(y))], {"out": (64, 8)})
    [found] = works(of, ORDERS[0], {}, {"x": 64, "y": 8}, 8).values()
    assert found.chain.whole == ORDINARY.latency_cycles.conversion + QUOTIENT + LOAD + FLOAT


def test_what_is_inline_and_the_same_for_all_of_a_row_begins_no_chain() -> None:
    """A norm of each row divides its values, and is worked out before them."""
    chains = []
    for norm in ("y", "x"):
        places = {"x": x, "y": y} | {"xy".replace(norm, ""): 0}
        root = stage("norm", norm, E(Call("sqrt", (F("input")(*places.values()).e,), FLOAT32)))
        out = stage("out", "xy", F("input")(x, y) * F("norm")(places[norm]))
        of = pipeline("norms", [root, out], {"out": (64, 8)})
        [found] = works(of, ORDERS[0], {}, {"x": 64, "y": 8}, 8).values()
        chains.append(found.chain.whole)
    assert chains == [LOAD + FLOAT, 2 * LOAD + QUOTIENT + FLOAT]


def test_remainders_of_coordinates_along_the_row_begin_chains_like_these() -> None:
    root = stage("table", "x", E(Call("sqrt", (E(Cast(x.e, FLOAT32)).e,), FLOAT32)))
    whole = []
    for place in (x, x % 16, y % 16):
        of = pipeline("table", [root, stage("out", "xy", F("table")(place) * 2.0)], {"out": (64, 8)})
        [found] = works(of, ORDERS[0], {}, {"x": 64, "y": 8}, 8).values()
        whole.append(found.chain.whole)
    assert whole[0] == whole[1] > whole[2]


def test_of_a_sum_only_the_last_part_is_waited_for() -> None:
    f = F("input")
    parts = [
        stage("written", "xy", f(x - 1, y) + f(x, y) * 2.0 + f(x + 1, y)),
        stage("out", "xy", F("written")(x, y) * 2.0),
    ]
    of = pipeline("sum", parts, {"out": (64, 8)})
    written = group(of, ORDERS[0], {"written": Levels(0, 0)}, {"x": 64, "y": 8}, 8)
    assert [s.work.chain for s in written.stages if s.work is not None] == [
        Chain(LOAD + 3 * FLOAT, LOAD + 2 * FLOAT),
        Chain(LOAD + FLOAT, LOAD + FLOAT),
    ]


def test_a_sum_over_an_extent_is_a_chain_of_as_many_terms_as_the_estimates_say() -> None:
    inputs = [{"name": "f", "type": "float32", "dims": ["x", "y"]}]
    found = []
    for extent in ("f.extent.x", "100"):
        mean = {"name": "mean", "dims": ["y"], "value": f"sum(f(i, y) for i in range({extent}))"}
        document = {
            "format": 1, "name": "means", "inputs": inputs, "stages": [mean], "outputs": ["mean"],
            "estimates": {"f": [[0, 100], [0, 8]], "mean": [[0, 8]]},
        }  # fmt: skip
        [work] = works(load(document), ("y.inner", "y.outer"), {}, {"y": 8}, 8).values()
        found.append(work.chain.whole)
    assert found[0] == found[1] > 90 * FLOAT
