"""Pass manager: named passes over one form of a program, run in order, each seen by an observer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

Unit = TypeVar("Unit")


@dataclass(frozen=True, slots=True)
class Pass(Generic[Unit]):
    """A pass: what it expects (`before`), what it leaves (`after`), each a sentence, and the function that does it. It
    changes nothing of what it is given."""

    name: str
    before: str
    after: str
    run: Callable[[Unit], Unit]


class Observer(Protocol):
    """An observer is told of every pass before it begins, and of what it left when it has ended."""

    def begun(self, name: str) -> None: ...
    def ended(self, name: str, unit: object) -> None: ...


@dataclass(frozen=True, slots=True)
class PassPipeline(Generic[Unit]):
    """A list of passes, each of which runs once. Their names differ: ValueError."""

    passes: tuple[Pass[Unit], ...]

    def __post_init__(self) -> None:
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"two passes have one name: {', '.join(self.names)}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the passes, in their order."""
        return tuple(p.name for p in self.passes)

    def __call__(self, unit: Unit, observer: Observer | None = None) -> Unit:
        """Runs the passes in order; the unit that the last one leaves. The observer sees each begin and end."""
        for p in self.passes:
            if observer is None:
                unit = p.run(unit)
                continue
            observer.begun(p.name)
            unit = p.run(unit)
            observer.ended(p.name, unit)
        return unit


class AfterEach:
    """An observer that shows what each pass has left, with the name of the pass, to a function."""

    def __init__(self, show: Callable[[str, Any], None]) -> None:
        self.show = show

    def begun(self, name: str) -> None:
        pass

    def ended(self, name: str, unit: object) -> None:
        self.show(name, unit)


class Observers:
    """Several observers as one, each told in turn."""

    def __init__(self, *observers: Observer) -> None:
        self.observers = observers

    def begun(self, name: str) -> None:
        for o in self.observers:
            o.begun(name)

    def ended(self, name: str, unit: object) -> None:
        for o in self.observers:
            o.ended(name, unit)


class PassTimes:
    """An observer that keeps the time of every pass in `ms`, by a clock in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now, self.ms = now, dict[str, float]()
        self._since = 0.0

    def begun(self, name: str) -> None:
        self._since = self.now()

    def ended(self, name: str, unit: object) -> None:
        self.ms[name] = 1e3 * (self.now() - self._since)
