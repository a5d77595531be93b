"""Lines of C and OpenCL by stage, read from their text: comments that name a stage, stores to its memory or window."""

from __future__ import annotations

import re
from collections.abc import Collection

_COMMENT = re.compile(r"""[\s"]*/\* (?:rows of |update \d+ of |[\w.]+ of )?(\w+)(?=: |, | \*/)""")
_STORE = re.compile(
    r"""[\s"]*(?:if \(.*\) )?"""
    r"(STORE\(\w+, |ts_(?:part|ends|stream|past)_\w+\(|vstore\d+\(.*, 0, )?"
    r"(?:own->|w\d+\.)?(\w+)_\d+\b(.*)"
)
_ASSIGNED = re.compile(r"(?:\[.*\])? = ")
_WINDOW = "_before"


def stage_lines(code: str, stages: Collection[str]) -> dict[int, str]:
    """The lines, numbered from 1, in which the code computes one of `stages`, each with that stage: where its part
    begins, by the comment, and where a value of it is stored. Lines in between belong to it or are shared."""
    found = {}
    for number, line in enumerate(code.splitlines(), start=1):
        stage = _of(line)
        if stage is not None and stage in stages:
            found[number] = stage
    return found


def _of(line: str) -> str | None:
    """The stage that the line is about, if it looks like one."""
    comment = _COMMENT.match(line)
    if comment is not None:
        return comment[1]
    store = _STORE.match(line)
    if store is None:
        return None
    call, name, rest = store.groups()
    window = name.endswith(_WINDOW)
    stored = call or (_ASSIGNED.match(rest) and (window or rest.startswith("[")))
    return name.removesuffix(_WINDOW) if stored else None
