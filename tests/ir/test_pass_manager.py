"""Pass manager: order, observers, times."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.ir.pass_manager import Pass, PassPipeline, PassTimes


def passes(*names: str) -> PassPipeline[str]:
    def adding(name: str) -> Pass[str]:
        return Pass(name, "any text", f"the text with {name} at its end", lambda text: text + name)

    return PassPipeline(tuple(map(adding, names)))


def test_passes_run_once_each_in_order() -> None:
    assert passes("a", "b", "c")("") == "abc"
    assert passes()("x") == "x"


def test_an_observer_sees_every_pass_and_what_it_leaves() -> None:
    class Log:
        def __init__(self) -> None:
            self.lines: list[str] = []

        def begun(self, name: str) -> None:
            self.lines.append(f"{name}:")

        def ended(self, name: str, unit: object) -> None:
            self.lines.append(f"{name} left {unit}")

    log = Log()
    passes("a", "b")("", log)
    assert log.lines == ["a:", "a left a", "b:", "b left ab"]


def test_times_are_told_by_the_clock_that_is_given() -> None:
    ticks = iter(range(0, 100, 2))
    times = PassTimes(lambda: float(next(ticks)))
    passes("a", "b")("", times)
    assert times.ms == {"a": 2000.0, "b": 2000.0}


def test_two_passes_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two passes have one name: a, b, a"):
        passes("a", "b", "a")
