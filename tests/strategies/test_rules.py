"""Every rule: its record, its example, and that it keeps the values."""

from __future__ import annotations

import runpy
import textwrap
from collections.abc import Iterator

import pytest

from tilesmith.platforms.catalog import get
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.frontends.document.document import load_text
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.document.safe_loader import read_yaml
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.primitives.registry import unregister
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.refusal import Refusal
from tilesmith.scheduler.strategies.document import steps_from_document
from tilesmith.scheduler.strategies.registry import RULES, Example, rule
from tilesmith.scheduler.strategies.state import State, begin


def pipeline_of(example: Example) -> Pipeline:
    """A shipped pipeline by its name, or the document that the example brings."""
    said = textwrap.dedent(example.pipeline)
    return load_text(said) if "\n" in said else pipelines.load(said)


def made(example: Example) -> State:
    steps = steps_from_document(read_yaml(example.steps, Limits()))
    result = steps(begin(pipeline_of(example), get("i7-6700")))
    assert isinstance(result, State), str(result)
    return result


@pytest.fixture
def note() -> Iterator[None]:
    """The primitive of the example of `decide`."""
    runpy.run_path("examples/extending/note.py")
    yield
    unregister("note")


@pytest.mark.usefixtures("note")
@pytest.mark.parametrize("name", sorted(RULES))
def test_the_example_of_a_rule_makes_it(name: str) -> None:
    after = made(RULES[name].example)
    assert name in [step.rule for step in after.applied]
    check(after.plan)


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_rule_says_what_it_does(name: str) -> None:
    found = RULES[name]
    assert found.summary.endswith(".")
    assert "->" in found.drawing
    assert found.conditions
    assert found.exactness in ("exact", "rounding", "approximate")


def test_a_rule_of_a_user_is_a_function_with_a_decorator() -> None:
    @rule("halve", Example("blur", "[]"))
    def halve(state: State, stage: str, dim: str = "y") -> State | str:
        """Tiles of half the extent.

            for y:    ->    for y.outer in 2: for y.inner:

        Of the output of a nest.
        """
        group = state.group(stage)
        return "it has no nest" if group is None else state.deciding(stage, "compute")

    try:
        state = begin(pipelines.load("blur"), get("i7-6700"))
        assert isinstance(halve(dim="y")(state, "blur_y"), State)
        refused = halve()(state, "blur_xx")
        assert refused == Refusal("halve", "blur_xx", "there is no such stage: did you mean 'blur_x'?")
        with pytest.raises(ValueError, match="already"):
            rule("halve", Example("blur", "[]"))(halve.function)
    finally:
        del RULES["halve"]


def test_a_rule_without_a_drawing_is_refused() -> None:
    with pytest.raises(ValueError, match="no drawing"):

        @rule("vague", Example("blur", "[]"))
        def vague(state: State, stage: str) -> State | str:
            """Something."""
            return state
