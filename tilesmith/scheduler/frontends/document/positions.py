"""Positions in the text of a document: the line and column that a JSON Pointer leads to."""

from __future__ import annotations

import re
from dataclasses import dataclass

import yaml

from tilesmith.scheduler.errors import Problem

OF_KEYS = ("unknown_key", "duplicate_key")
"""Codes of problems that are a key's, not its value's."""
_IN_WORDS = re.compile(r"Line (\d+), column (\d+): ")


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a text; both count from 1, the column in characters."""

    line: int
    column: int


class Positions:
    """The places of the values of one document, from its text, JSON or YAML, which has to be within the limits."""

    def __init__(self, text: str) -> None:
        self._text = text.removeprefix("\ufeff").replace("\t", " ")  # tabs, which JSON may have, end YAML's reading
        try:
            self._root = yaml.compose(self._text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except (yaml.YAMLError, ValueError):
            self._root = None

    def of(self, problem: Problem) -> Position | None:
        """The place of a problem: of its character in an expression, of its key, of its value, or of what lacks it.
        None where the text cannot be read that far."""
        said = _IN_WORDS.match(problem.message)
        if said is not None:
            return Position(int(said[1]), int(said[2]))
        if self._root is None:
            return None
        node, key = self._root, None
        for step in problem.pointer.split("/")[1:]:
            found = _child(node, step.replace("~1", "/").replace("~0", "~"))
            if found is None:
                break
            key, node = found
        if problem.code in OF_KEYS and key is not None:
            node = key
        return self._at(_character(self._text, node, problem.column))

    def _at(self, index: int) -> Position:
        before = self._text[:index]
        return Position(before.count("\n") + 1, index - (before.rfind("\n") + 1) + 1)


def _child(node: yaml.Node, step: str) -> tuple[yaml.Node | None, yaml.Node] | None:
    """The key, where there is one, and the value that a step of a pointer leads to."""
    if isinstance(node, yaml.MappingNode):
        return next(((k, v) for k, v in reversed(node.value) if k.value == step), None)
    if isinstance(node, yaml.SequenceNode) and step.isascii() and step.isdigit() and int(step) < len(node.value):
        return None, node.value[int(step)]
    return None


def _character(text: str, node: yaml.Node, column: int | None) -> int:
    """The index in the text of a value, or of the character at a column of it. YAML folds lines and drops indentation:
    what has no white space is looked for in its order."""
    start = int(node.start_mark.index)
    if column is None or not isinstance(node, yaml.ScalarNode):
        return start
    at = text.find("\n", start) if node.style in ("|", ">") else start + (node.style in ('"', "'"))
    end, found = int(node.end_mark.index), start
    for character in "".join(str(node.value)[:column].split()):
        found = text.find(character, at, end)
        if found < 0:
            return start  # an escape, which the value does not have as it is written
        at = found + 1
    return found
