"""Entries of the menu, in their order."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """A page that every page leads to. Templates of its section set `section` to its name."""

    name: str
    href: str


NAVIGATION = (
    Entry("Schedules", "/"),
    Entry("Pipelines", "/pipelines"),
    Entry("Platforms", "/platforms"),
    Entry("Jobs", "/jobs"),
    Entry("Playground", "/playground"),
    Entry("API", "/docs"),
)
