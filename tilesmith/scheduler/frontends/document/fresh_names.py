"""Names for what importers make: identifiers of documents, like those of the source."""

from __future__ import annotations

import re
from keyword import iskeyword

from tilesmith.scheduler.frontends.document.functions import FUNCTIONS


def fresh(name: str, taken: set[str], callable_: bool = True) -> str:
    """An identifier like `name` that is new, which is then taken; none of a function, where it is called like one."""
    base = re.sub(r"\W", "_", name.partition("$")[0], flags=re.ASCII)[:56]
    if not base or not (base[0].isalpha() or base[0] == "_"):
        base = f"f{base}"
    if iskeyword(base) or (callable_ and base in FUNCTIONS) or base in _RESERVED:
        base = f"{base}_"
    found, k = base, 0
    while found in taken:
        k += 1
        found = f"{base}_{k}"
    taken.add(found)
    return found


_RESERVED = frozenset(("sum", "product", "any", "all", "argmin", "argmax", "range"))
