"""Documents of strategies: read and written, and what is wrong with them told with place and hint."""

from __future__ import annotations

import runpy
from random import Random

import pytest
from strategies.test_laws import drawn

from tilesmith.platforms.catalog import get
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.errors import DocumentError, StrategyRefused
from tilesmith.scheduler.ir.schedule.primitives.registry import unregister
from tilesmith.scheduler.rewrites.refusal import Refusal
from tilesmith.scheduler.search import SearchOptions
from tilesmith.scheduler.strategies import catalog
from tilesmith.scheduler.strategies.combinators import Skip, best, cheapest, repeat, together
from tilesmith.scheduler.strategies.document import StrategyDocument, from_document, load_text, to_yaml
from tilesmith.scheduler.strategies.recorded import recorded
from tilesmith.scheduler.strategies.registry import RULES
from tilesmith.scheduler.strategies.state import State, begin


@pytest.mark.parametrize("seed", range(60))
def test_documents_say_what_strategies_are(seed: int) -> None:
    document = StrategyDocument(f"s{seed}", drawn(Random(seed), 3), "a doc" if seed % 2 else "")
    again = from_document(document.to_document())
    assert again.to_document() == document.to_document()
    assert load_text(to_yaml(document)).to_document() == document.to_document()


@pytest.mark.parametrize("name", catalog.names())
def test_shipped_documents_are_read_and_written(name: str) -> None:
    document = catalog.load(name)
    assert document.name == name
    assert document.doc
    assert from_document(document.to_document()) == document
    assert load_text(to_yaml(document)) == document


def test_every_combinator_has_a_form() -> None:
    a, b = RULES["parallel"](), RULES["vectorize"](lanes=8)
    for strategy in (best(2, [a, b], a), cheapest(a, b), together(a, b), repeat(a, times=3), Skip()):
        document = StrategyDocument("one", strategy)
        assert from_document(document.to_document()).to_document() == document.to_document()


@pytest.mark.parametrize(
    ("steps", "place", "message", "hint"),
    [
        (["tyle"], "/steps/0", "'tyle' is no step", "did you mean 'tile'?"),
        ([{"tile": {"size": {"y": 32}}}], "/steps/0/tile/size", "takes no 'size'", "did you mean 'sizes'?"),
        ([{"tile": {"stage": "f"}}], "/steps/0/tile/sizes", "needs 'sizes'", None),
        ([{"tile": {"sizes": {"y": 0}}}], "/steps/0/tile/sizes/y", "greater than", None),
        ([{"at": {"do": "parallel"}}], "/steps/0/at", "has `stage` or `where`", None),
        ([{"inline": {"where": "is pointwize"}}], "/steps/0/inline/where", "no predicate", "mean 'is pointwise'?"),
        ([{"first": "inline"}], "/steps/0/first", "a list of steps", None),
        ([{"a": 1, "b": 2}], "/steps/0", "no step", "one key"),
        ([{"repeat": {"do": "skip", "times": 10**9}}], "/steps/0/repeat/times", "a number from 1 to", None),
        (["seq"], "/steps/0", "needs arguments", None),
        ([7], "/steps/0", "no step", "one key"),
    ],
)  # fmt: skip
def test_problems_have_their_place(steps: list[object], place: str, message: str, hint: str | None) -> None:
    with pytest.raises(DocumentError) as found:
        from_document({"strategy": "wrong", "steps": steps})
    told = next(p for p in found.value.problems if p.pointer == place)
    assert message in told.message
    assert hint is None or hint in str(told.hint)


def test_all_problems_are_told_at_once() -> None:
    document = {"strategy": "a b", "step": [], "rules": [{"name": "r", "match": "?a +", "result": "?a"}]}
    with pytest.raises(DocumentError) as found:
        from_document(document)
    assert {p.pointer.split("/")[1] for p in found.value.problems} == {"strategy", "step", "steps", "rules"}


def test_documents_have_limits() -> None:
    deep: object = "skip"
    for _ in range(500):
        deep = {"try": deep}
    for steps in ([deep], ["skip"] * 10_001, [{"inline": {"stage": "f" * 65}}]):
        with pytest.raises(DocumentError):
            from_document({"strategy": "large", "steps": steps})
    with pytest.raises(DocumentError):
        load_text("strategy: a\nsteps: [&a skip, *a]\n")
    with pytest.raises(DocumentError):
        load_text("strategy: !!python/name:os.system x\nsteps: []\n")


def test_rules_of_a_document_have_names_of_their_own() -> None:
    taken = [{"name": "tile", "match": "?a * 1", "result": "?a"}]
    with pytest.raises(DocumentError, match="already"):
        from_document({"strategy": "s", "rules": taken, "steps": []})


def test_a_rule_that_is_not_exact_refuses_under_strict() -> None:
    rules = [{"name": "turn", "match": "?a * ?k + ?b * ?k", "result": "(?a + ?b) * ?k", "exact": "rounding"}]
    document = from_document({"strategy": "s", "rules": rules, "steps": [{"distribute": {"stage": "gray"}}]})
    state = begin(pipelines.load("harris"), get("i7-6700"), strict=True)
    assert isinstance(document.strategy(state), Refusal)


def test_what_refuses_ends_the_strategy_with_rule_place_and_reason() -> None:
    document = from_document({"strategy": "s", "steps": [{"inline": {"stage": "blur_y"}}]})
    with pytest.raises(StrategyRefused, match="inline at blur_y: it is an output of the pipeline"):
        document.schedule(pipelines.load("blur"), get("i7-6700"), SearchOptions())


def test_primitives_of_plugins_are_decided() -> None:
    runpy.run_path("examples/extending/note.py")
    try:
        steps = [{"decide": {"stage": "blur_y", "primitive": "note", "value": "by hand"}}, "search"]
        after = from_document({"strategy": "s", "steps": steps}).strategy(begin(pipelines.load("blur"), get("i7-6700")))
        assert isinstance(after, State)
        assert ("note", "by hand") in after.schedule.groups[-1].attributes
        again = recorded(after.plan, get("i7-6700"), "again").strategy(begin(pipelines.load("blur"), get("i7-6700")))
        assert isinstance(again, State)
        assert again.schedule.groups == after.schedule.groups
    finally:
        unregister("note")
