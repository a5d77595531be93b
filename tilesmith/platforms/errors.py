"""Errors in platform descriptions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlatformProblem:
    """One thing that is wrong; `pointer` is a JSON Pointer (RFC 6901) to the place in the document."""

    code: str
    pointer: str
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.pointer or '/'}: {self.message} [{self.code}]{hint}"


class PlatformError(Exception):
    """The caller's platform is unknown or wrongly described. `problems` has every problem found."""

    code = "bad_platform"

    def __init__(self, problems: tuple[PlatformProblem, ...]) -> None:
        super().__init__("\n".join(str(p) for p in problems))
        self.problems = problems
