"""Names that a document declares, as expressions see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice

from tilesmith.scheduler.ir.pipeline.pipeline import Param
from tilesmith.scheduler.ir.pipeline.types import ScalarType
from tilesmith.scheduler.ir.pipeline.value_ends import ValueEnds


@dataclass(frozen=True, slots=True)
class Readable:
    """An input or stage as its readers see it. A type is None where it is not known because of an error. `endless`
    is one with a boundary, which may be read anywhere."""

    is_input: bool
    dims: tuple[str, ...]
    types: tuple[ScalarType | None, ...]
    endless: bool = False


@dataclass(slots=True)
class Names:
    """All declarations. `broken` are names whose declarations are wrong: reading them is no second error. `ends`
    has the stages that are checked."""

    params: Mapping[str, Param]
    readables: dict[str, Readable]
    broken: set[str] = field(default_factory=set)
    ends: ValueEnds = field(default_factory=ValueEnds)


ALIKE = 0.65
"""The least share of its letters that a name has in order of one that was meant: `foto` of `photo`, not `hypot`."""


def close_to(name: str, known: Iterable[str]) -> str | None:
    """A hint that offers the nearest known name, if one is near."""
    # Of names of about the same length, and not of thousands: comparing costs more than looking.
    alike = islice((k for k in known if abs(len(k) - len(name)) <= 3), 100)
    names = list(alike)
    matches = [k for k in names if _words(k) == _words(name)]
    matches = matches or get_close_matches(name[:64], names, n=1, cutoff=ALIKE)
    return f"did you mean {matches[0]!r}?" if matches else None


def _words(name: str) -> list[str]:
    """Words of a name, whatever their case and order: `UINT8_sat` has those of `sat_uint8`."""
    return sorted(name.casefold().split("_"))
