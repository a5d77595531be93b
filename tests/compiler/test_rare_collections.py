"""The garbage collector and compilations: when it runs, and what these leave to it."""

import gc
from collections.abc import Iterator
from threading import Barrier, Thread

import pytest
from support.machines import machine

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.errors import ScheduleError
from tilesmith.scheduler.features.groups.fusion_group import Members
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.program import Define
from tilesmith.scheduler.rare_collections import MOST_YOUNG, rare_collections
from tilesmith.scheduler.search.ecm.pricing import Pricing

USUAL = (701, 11, 12)


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*USUAL)
    yield
    gc.set_threshold(*before)


class Watch:
    """An observer of passes that notes the collector's thresholds."""

    def __init__(self) -> None:
        self.seen = set[tuple[int, int, int]]()

    def begun(self, *_: object) -> None:
        self.seen.add(gc.get_threshold())

    def ended(self, *_: object) -> None:
        self.seen.add(gc.get_threshold())


def test_collections_are_rare_while_a_pipeline_is_compiled():
    watch = Watch()
    compile_pipeline(pipelines.load("blur"), machine(), observer=watch)
    assert watch.seen == {(MOST_YOUNG, *USUAL[1:])}
    assert gc.get_threshold() == USUAL


def test_they_are_as_before_after_an_error():
    with pytest.raises(ScheduleError), rare_collections:
        raise ScheduleError("no")
    assert gc.get_threshold() == USUAL


def test_one_inside_of_another_changes_nothing():
    with rare_collections:
        with rare_collections:
            pass
        assert gc.get_threshold()[0] == MOST_YOUNG
    assert gc.get_threshold() == USUAL


def test_the_last_of_several_threads_puts_them_back():
    entered, left = Barrier(2, timeout=30), Barrier(2, timeout=30)
    seen = []

    def stays_longer() -> None:
        with rare_collections:
            entered.wait()
            left.wait()
            seen.append(gc.get_threshold()[0])

    thread = Thread(target=stays_longer)
    thread.start()
    with rare_collections:
        entered.wait()
    left.wait()
    thread.join()
    assert seen == [MOST_YOUNG]
    assert gc.get_threshold() == USUAL


@pytest.mark.parametrize("own", [0, 2 * MOST_YOUNG])
def test_a_threshold_that_makes_them_rarer_stays(own: int):
    gc.set_threshold(own)
    with rare_collections:
        assert gc.get_threshold()[0] == own
    assert gc.get_threshold()[0] == own


def test_a_collector_that_is_off_does_not_run():
    gc.disable()
    runs = []
    try:
        gc.callbacks.append(lambda phase, _: runs.append(phase))
        with rare_collections:
            pass
    finally:
        gc.callbacks.pop()
        gc.enable()
    assert runs == []


def test_what_is_young_is_collected_at_the_end():
    with rare_collections:
        kept = [[] for _ in range(10 * USUAL[0])]
    assert gc.get_count()[0] < USUAL[0]
    assert kept


def test_a_compilation_collects_once():
    """The search within it leaves what is young to the end."""
    runs, pipeline, platform = [], pipelines.load("blur"), machine()
    gc.collect()
    gc.callbacks.append(lambda phase, _: runs.append(phase))
    try:
        compile_pipeline(pipeline, platform)
    finally:
        gc.callbacks.pop()
    assert runs == ["start", "stop"]


def test_older_generations_are_collected_when_they_are_due():
    gc.collect()
    collected = set[int]()

    def note(phase: str, info: dict[str, int]) -> None:
        collected.add(info["generation"])

    gc.callbacks.append(note)
    try:
        for _ in range((USUAL[1] + 2) * (USUAL[2] + 2)):
            with rare_collections:
                pass
    finally:
        gc.callbacks.remove(note)
    assert collected == {0, 1, 2}


@pytest.mark.parametrize("name", ["harris", "camera_pipe", "interpolate"])
def test_a_compilation_leaves_nothing_large_in_cycles(name: str):
    """Groups, facts, what the search knows and programs are freed as a compilation ends, not when the collector finds
    them: it would take a tenth of the time."""
    pipeline, platform = pipelines.load(name), machine()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        compile_pipeline(pipeline, platform)
        gc.collect()
        left = [type(x).__name__ for x in gc.garbage if isinstance(x, Members | Facts | Pricing | Builder | Define)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left == []
