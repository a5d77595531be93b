"""Mutations of structured inputs: of documents as trees of values, of text by its tokens, of protocol buffers by their
fields, of files that have checksums. Each is a function of a random source, so that a seed does it again."""

from __future__ import annotations

import copy
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

NUMBERS = (
    *(0, 1, -1, 2, 3, 4, 7, 8, 16, 17, 255, 256, 4096, 65535, 65536, 0.5, 1.0, -0.0, 1e-45, 3.4e38, 1e308),
    *(2**31 - 1, 2**31, -(2**31), 2**32, 2**53, 2**63 - 1, 2**63, -(2**63), 2**64, 1 << 28, 1 << 30),
)
"""Ends of types and of limits, and what is small."""
ODD = (None, True, False, "", [], {}, [[]], "x", "é\u202e", *NUMBERS)
"""Values that may stand anywhere in a document."""
_TOKEN = re.compile(r"\s+|[A-Za-z_]\w*|\d+\.?\d*(?:e[+-]?\d+)?|<<|>>|<=|>=|==|!=|//|\*\*|->|.", re.DOTALL)

Place = tuple[Any, Any]
"""A list or an object, and the index or key of a value in it."""


def places(value: Any) -> Iterator[Place]:
    """Every place of a tree of values."""
    stack = [value]
    while stack:
        owner = stack.pop()
        for key in owner if isinstance(owner, dict) else range(len(owner)):
            yield owner, key
            if isinstance(owner[key], dict | list):
                stack.append(owner[key])


def mutated_tree(rng: Random, tree: Any, donors: Sequence[Any], words: Sequence[str]) -> Any:
    """The tree with one to four changes: values left out, twice, moved, of another tree, or changed themselves."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 4))):
        all_places = list(places(tree))
        if not all_places:
            return copy.deepcopy(rng.choice(donors))
        owner, key = rng.choice(all_places)
        action = rng.randrange(8)
        if action == 0:
            del owner[key]
        elif action == 1 and isinstance(owner, list):
            owner.insert(rng.randrange(len(owner) + 1), copy.deepcopy(owner[key]))
        elif action == 2 and isinstance(owner, list):
            other = rng.randrange(len(owner))
            owner[key], owner[other] = owner[other], owner[key]
        elif action == 3:
            _graft(rng, owner, key, rng.choice((tree, rng.choice(donors))))
        elif action == 4 and isinstance(owner, dict):
            owner[rng.choice((*words, *map(str, owner)))] = copy.deepcopy(owner[key])
        else:
            owner[key] = _changed(rng, owner[key], tree, words)
    return tree


def _graft(rng: Random, owner: Any, key: Any, donor: Any) -> None:
    """Puts there what another tree has under the same key; anything, where it has none."""
    all_places = list(places(donor))
    alike = [(o, k) for o, k in all_places if k == key and type(o[k]) is type(owner[key])]
    if alike or all_places:
        found, at = rng.choice(alike or all_places)
        owner[key] = copy.deepcopy(found[at])


def _changed(rng: Random, value: Any, tree: Any, words: Sequence[str]) -> Any:
    if isinstance(value, str):
        strings = [o[k] for o, k in places(tree) if isinstance(o[k], str)]
        return mutated_text(rng, value, (*words, *strings))
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.9:
        return rng.choice((value + 1, value - 1, -value, 2 * value, rng.randrange(-4, 40), rng.choice(NUMBERS)))
    return copy.deepcopy(rng.choice(ODD))


def mutated_text(rng: Random, text: str, words: Sequence[str]) -> str:
    """The text with one to three of its tokens left out, twice, exchanged, replaced or with a new one before."""
    tokens = _TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if not tokens:
            return rng.choice(words)
        at, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        match rng.randrange(6):
            case 0:
                del tokens[at]
            case 1:
                tokens.insert(at, tokens[other])
            case 2:
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3:
                tokens.insert(at, rng.choice(words))
            case 4:
                first, last = sorted((at, other))
                tokens[at:at] = tokens[first : min(last, first + 40)]
            case _:
                number = tokens[at][0].isdigit() and rng.random() < 0.7
                tokens[at] = str(rng.choice(NUMBERS)) if number else rng.choice(words)
    return "".join(tokens)


def mutated_message(rng: Random, message: Any) -> None:
    """Changes one to three fields of a protocol buffer, anywhere in it."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        owner, field, value = rng.choice(list(_fields(message)))
        name = field.name
        if isinstance(value, Sequence) and not isinstance(value, str | bytes) and len(value):
            _mutate_repeated(rng, value)
        elif rng.random() < 0.2 or field.message_type is not None:
            owner.ClearField(name)
        else:
            setattr(owner, name, _fitting(rng, value, getattr(owner, name)))


def _fields(message: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Every field that is set, with its owner."""
    for field, value in message.ListFields():
        yield message, field, value
        if field.message_type is not None:
            for part in value if isinstance(value, Sequence) or hasattr(value, "add") else (value,):
                yield from _fields(part)


def _mutate_repeated(rng: Random, values: Any) -> None:
    at, other = rng.randrange(len(values)), rng.randrange(len(values))
    action = rng.randrange(4)
    if action == 0:
        del values[at]
    elif action == 1:
        values.append(values[at])
    elif hasattr(values, "add"):  # messages cannot be assigned
        values[at].CopyFrom(copy.deepcopy(values[other]))
    elif action == 2:
        values[at], values[other] = values[other], values[at]
    else:
        values[at] = _fitting(rng, values[other], values[at])


def _fitting(rng: Random, value: Any, old: Any) -> Any:
    """Another value of the type of a field."""
    if isinstance(old, bytes):
        changed = bytearray(old or b"\0")
        changed[rng.randrange(len(changed))] = rng.randrange(256)
        return bytes(changed) if rng.random() < 0.7 else old[: rng.randrange(len(old) + 1)]
    if isinstance(old, str):
        return mutated_text(rng, old, (old, "", "é", "a" * 300))
    if isinstance(old, float):
        return float(rng.choice((0, -1, 0.5, 1e30, float("nan"), float("inf"), value)))
    return rng.choice((0, 1, 2, 3, 7, old + 1, max(old - 1, 0), 2**31 - 1))


def with_png_checksums(content: bytes) -> bytes:
    """A PNG whose chunks have their right checksums, as far as it has chunks."""
    fixed, at = bytearray(content), 8
    while at + 12 <= len(fixed):
        (length,) = struct.unpack_from(">I", fixed, at)
        end = at + 8 + length
        if end + 4 > len(fixed):
            break
        struct.pack_into(">I", fixed, end, zlib.crc32(fixed[at + 4 : end]))
        at = end + 4
    return bytes(fixed)
