"""Text -> JSON values, for text that may be hostile: sizes first, no duplicate keys, no aliases, no NaN."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NoReturn

import yaml

from tilesmith.scheduler.errors import DocumentError, Problem
from tilesmith.scheduler.frontends.document.diagnostics import pointer
from tilesmith.scheduler.frontends.document.limits import Limits


def sniff_yaml(text: str | bytes) -> bool:
    """True if `text` does not begin like a JSON object or list."""
    head = text[:4096] if isinstance(text, str) else text[:4096].decode("utf-8", "replace")
    return not head.lstrip("\ufeff \t\r\n").startswith(("{", "["))


def read_json(text: str | bytes, limits: Limits) -> Any:
    """The value of JSON text. Raises DocumentError."""
    decoded = _decode(text, limits.document_bytes)
    twice: list[tuple[dict[str, Any], str]] = []
    constants: list[str] = []

    def constant(name: str) -> float:
        constants.append(name)
        return float(name)

    def object_(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen and len(twice) < limits.problems:
                    twice.append((result, key))
                seen.add(key)
        return result

    try:
        value = json.loads(decoded, object_pairs_hook=object_, parse_constant=constant)
    except json.JSONDecodeError as error:
        _fail("bad_json", f"Line {error.lineno}, column {error.colno}: {error.msg}.", column=None)
    except RecursionError:
        _fail("document_too_deep", "Lists and objects are nested too deeply.")
    except ValueError:  # Python's limit of digits
        _fail("bad_number", "A number has too many digits.")
    _depth(value, limits)
    if constants:
        places = (where for item, where in _items(value) if isinstance(item, float) and item - item != 0)
        _fail("bad_number", "A number is NaN or infinite.", pointer_=next(places, ""))
    if twice:
        raise DocumentError(tuple(_duplicates(value, twice)))
    return value


def read_yaml(text: str | bytes, limits: Limits) -> Any:
    """The value of YAML text of the structure that JSON has. Raises DocumentError."""
    decoded = _decode(text, limits.yaml_bytes)
    try:
        _yaml_depth(decoded, limits)
        loader = _Loader(decoded)
        try:
            root = loader.get_single_node()
            return None if root is None else _plain(loader, root, limits)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"Line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        _fail("bad_yaml", f"{place}{error.problem or 'not YAML'}.")
    except (yaml.YAMLError, ValueError) as error:
        _fail("bad_yaml", f"This is not YAML: {ascii(str(error))[:80]}.")
    except RecursionError:
        _fail("document_too_deep", "Lists and objects are nested too deeply.")


def _yaml_depth(text: str, limits: Limits) -> None:
    """Events come one by one; nodes are composed recursively in C, without a limit for block style."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > limits.nesting:
                _fail("document_too_deep", f"Lists and objects are nested more than {limits.nesting} deep.")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Plain data only."""


def _plain(loader: Any, root: yaml.Node, limits: Limits) -> Any:
    """The node graph as plain values; it has to be a tree (no aliases), and not a deep one."""
    seen: set[int] = set()
    found: list[Problem] = []
    holder: list[Any] = [None]
    stack: list[tuple[yaml.Node, Any, Any, str, int]] = [(root, holder, 0, "", 1)]
    while stack:
        node, owner, key, where, depth = stack.pop()
        if id(node) in seen:
            _fail("bad_yaml", "Anchors and aliases are not read.", pointer_=where)
        seen.add(id(node))
        if depth > limits.nesting:
            _fail("document_too_deep", f"Lists and objects are nested more than {limits.nesting} deep.")
        if not isinstance(node, yaml.ScalarNode) and node.tag not in _COLLECTIONS:
            _fail("bad_yaml", f"The tag {ascii(node.tag)[:60]} is not read.", pointer_=where)
        if isinstance(node, yaml.MappingNode):
            found += _split_expressions(node, where)
            made: dict[str, Any] = {}
            owner[key] = made
            for key_node, value_node in node.value:
                plain = isinstance(key_node, yaml.ScalarNode) and key_node.tag != _MERGE
                name = key_node.value if plain else None
                if name is None:
                    _fail("bad_yaml", "A key is a plain word.", pointer_=where)
                if name in made and len(found) < limits.problems:
                    found.append(Problem("duplicate_key", where + pointer(name), f"The key {name!r} is there twice."))
                made[name] = None
                stack.append((value_node, made, name, where + pointer(name), depth + 1))
        elif isinstance(node, yaml.SequenceNode):
            owner[key] = items = [None] * len(node.value)
            stack.extend((n, items, i, f"{where}/{i}", depth + 1) for i, n in enumerate(node.value))
        else:
            owner[key] = _scalar(loader, node, where)
    if found:
        raise DocumentError(tuple(found))
    return holder[0]


def _split_expressions(node: yaml.MappingNode, where: str) -> list[Problem]:
    """Expressions in `{...}` that a comma of their own ends: `{value: f(x, y)}` has the value `f(x` and a key `y)`."""
    if not node.flow_style:
        return []
    found = []
    for (key, value), (after, _) in pairwise(node.value):
        scalars = isinstance(key, yaml.ScalarNode) and isinstance(value, yaml.ScalarNode)
        if scalars and not value.style and value.value.count("(") > value.value.count(")"):
            text = ascii(f"{value.value}, {getattr(after, 'value', '...')}")[1:-1][:60]
            message = f"Line {value.start_mark.line + 1}, column {value.start_mark.column + 1}: in braces a comma ends"
            message += f" the value: '{text}' is cut in two."
            hint = 'put the expression in quotes, as in {value: "f(x, y)"}, or on a line of its own'
            found.append(Problem("bad_yaml", where + pointer(key.value), message, hint))
    return found


_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_MERGE = "tag:yaml.org,2002:merge"
_SCALARS = ("str", "int", "float", "bool", "null")


def _scalar(loader: Any, node: yaml.Node, where: str) -> Any:
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    if kind == "timestamp" or kind == "value":
        return node.value
    if kind not in _SCALARS:
        _fail("bad_yaml", f"The tag {ascii(node.tag)[:60]} is not read.", pointer_=where)
    value = loader.construct_object(node)
    if isinstance(value, float) and value - value != 0:
        _fail("bad_number", "A number is NaN or infinite.", pointer_=where)
    return value


def _decode(text: str | bytes, most: int) -> str:
    size = len(text)
    if size > most:
        _fail("document_too_large", f"The document has {size} bytes, {most} are allowed.")
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            _fail("bad_encoding", f"The document is not UTF-8 (byte {error.start}).")
    return text.removeprefix("\ufeff")


def _depth(value: Any, limits: Limits) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > limits.nesting:
            _fail("document_too_deep", f"Lists and objects are nested more than {limits.nesting} deep.")
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]


def _duplicates(root: Any, twice: list[tuple[dict[str, Any], str]]) -> list[Problem]:
    wanted: dict[int, list[str]] = {}
    for owner, key in twice:
        wanted.setdefault(id(owner), []).append(key)
    return [
        Problem("duplicate_key", where + pointer(key), f"The key {ascii(key)[:60]} is there twice.")
        for item, where in _items(root)
        if isinstance(item, dict)
        for key in wanted.get(id(item), ())
    ]


def _items(root: Any) -> Iterator[tuple[Any, str]]:
    """All values of the tree, each with its place."""
    stack: list[tuple[Any, str]] = [(root, "")]
    while stack:
        item, where = stack.pop()
        yield item, where
        if isinstance(item, dict):
            stack.extend((child, where + pointer(key)) for key, child in item.items())
        elif isinstance(item, list):
            stack.extend((child, f"{where}/{i}") for i, child in enumerate(item))


def _fail(code: str, message: str, pointer_: str = "", column: int | None = None) -> NoReturn:
    raise DocumentError((Problem(code, pointer_, message, None, column),))
