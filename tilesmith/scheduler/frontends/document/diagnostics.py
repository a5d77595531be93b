"""The problems of one document, collected: where each stands, in which order, and how many are enough."""

from __future__ import annotations

from tilesmith.scheduler.errors import DocumentError, Problem

_ORDER = {key: k for k, key in enumerate(
    ("format", "name", "doc", "params", "inputs", "stages", "outputs", "estimates",
     "type", "dims", "value", "updates", "domain", "where", "at", "boundary", "storage", "default", "min", "max")
)}  # fmt: skip


def pointer(*steps: str | int) -> str:
    """A JSON Pointer (RFC 6901)."""
    return "".join("/" + str(s).replace("~", "~0").replace("/", "~1") for s in steps)


class Report(list[Problem]):
    """A list of problems that raises them once there are `most`: nobody reads more, and each costs time."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def append(self, problem: Problem) -> None:
        """Raises DocumentError when the report is full."""
        super().append(problem)
        if len(self) >= self.most:
            raise self.error()

    def error(self) -> DocumentError:
        """The problems in document order."""
        return DocumentError(tuple(sorted(self, key=_place)))


def _place(problem: Problem) -> tuple[list[tuple[int, str]], int, str, str]:
    steps = problem.pointer.split("/")[1:]
    place = [(int(s), "") if s.isascii() and s.isdigit() and len(s) < 10 else (_ORDER.get(s, 99), s) for s in steps]
    return place, problem.column or 0, problem.code, problem.message
