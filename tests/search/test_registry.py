"""Methods: one of a user's is a class in one file, which `--method` finds by its name."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from support.machines import machine
from support.small_pipelines import blur, harris

from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.errors import ScheduleError
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import SearchOptions, autoschedule, methods
from tilesmith.scheduler.search.constraints.document import from_document
from tilesmith.scheduler.search.method import Answer, Question
from tilesmith.scheduler.search.registry import method, register, unregister
from tilesmith.scheduler.search.trace import Decision, Trace
from tilesmith.scheduler.search.vectorize_and_parallelize import root_group


@dataclass(frozen=True)
class AtRoot:
    """Every stage at root."""

    name: str = "at-root"
    model: str = "ecm"
    takes_fixed: bool = False
    takes_model: bool = True

    def search(self, question: Question) -> Answer:
        stages = question.facts.graph.stages
        groups = [root_group(question.facts, name, question.platform, strict=question.strict) for name in stages]
        decisions = tuple(Decision("group", name, "computed at root", "all are", self.name) for name in stages)
        return Answer((question.candidate(groups),), Trace(self.name, question.model.unit, decisions))


@pytest.fixture
def at_root() -> Iterator[str]:
    register(AtRoot())
    yield "at-root"
    unregister("at-root")


def test_a_method_of_a_user_finds_schedules(at_root: str) -> None:
    of = harris()
    found = autoschedule(of, machine(), SearchOptions(at_root))
    check(rewrite(of, found.schedule))
    assert len(found.schedule.groups) == len(of.stages)
    assert found.trace.method == found.schedule.method == at_root
    best = autoschedule(of, machine(), SearchOptions("default"))
    assert float(best.predicted.total) < float(found.predicted.total)
    assert "for y" in compile_pipeline(blur(), machine(), Options(at_root)).loopnest


def test_names_are_taken_once(at_root: str) -> None:
    with pytest.raises(ValueError, match="'at-root' already"):
        register(AtRoot())
    assert methods() == ("default", "taco2019", "at-root")


def test_who_takes_no_decisions_says_so(at_root: str) -> None:
    fixed = from_document({"blur_x": {"compute": "inline"}})
    for name in ("taco2019", at_root):
        assert not method(name).takes_fixed
        with pytest.raises(ScheduleError, match=f"the method '{name}' takes no fixed decisions"):
            autoschedule(blur(), machine(), SearchOptions(name, fixed=fixed))
    with pytest.raises(ScheduleError, match="there is no method 'best'; methods: default, taco2019"):
        autoschedule(blur(), machine(), SearchOptions("best"))
