"""The methods by name: those that are shipped, and those that users register."""

from __future__ import annotations

from tilesmith.scheduler.errors import ScheduleError
from tilesmith.scheduler.search.ecm.method import Default
from tilesmith.scheduler.search.method import Method
from tilesmith.scheduler.search.taco2019.method import OfThePaper

_METHODS: dict[str, Method] = {}


def register(method: Method) -> None:
    """Adds a method. ValueError where its name is taken."""
    if _METHODS.setdefault(method.name, method) is not method:
        raise ValueError(f"there is a method {method.name!r} already")


def unregister(name: str) -> None:
    """Takes away a method that was registered."""
    del _METHODS[name]


def method(name: str) -> Method:
    """The method of that name. Raises ScheduleError."""
    if name not in _METHODS:
        raise ScheduleError(f"there is no method '{name}'; methods: {', '.join(methods())}")
    return _METHODS[name]


def methods() -> tuple[str, ...]:
    """The names of all methods, as they were registered."""
    return tuple(_METHODS)


register(Default())
register(OfThePaper())
