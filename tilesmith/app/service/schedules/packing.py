"""Forms of a schedule as the store has them: compressed, those of one schedule together, since they say much the same.

The answer is apart, by deflate, which takes some 20 us for one of 4 KB to be read: it is what most requests are for.
What it says, too, is left out of the other forms. Answers and machines say much that those of
other schedules say, too: the dictionary of deflate has it, `vocabulary.txt`, which has to stay as it is.
"""

from __future__ import annotations

import json
import lzma
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilesmith.app.service.schedules.answers import REPEATING, compact

_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 1, "lc": 4, "lp": 0, "pb": 0, "dict_size": 1 << 16}]
"""LZMA of text (contexts of a byte and a half, no alignment), with a window of 64 KiB: memory for one of 1 MiB takes
four times as long to get as most forms to compress. A longer search for repetitions takes as much more for 3 %
less."""


_VOCABULARY = Path(__file__).with_name("vocabulary.txt").read_bytes()
_AS_ANSWERED = "as answered"
_KNOWN = "platform.json"
"""The form that is compressed apart: of a machine nearly all is in the vocabulary, and little in the other forms."""


_SHARED = ("predicted", "groups")
"""Parts of the answer that other forms repeat: the explanation what is predicted, the schedule as data the groups."""


def pack_one(content: bytes) -> bytes:
    """One form, compressed."""
    packer = zlib.compressobj(9, memLevel=9, zdict=_VOCABULARY)
    return packer.compress(content) + packer.flush()


def unpack_one(packed: bytes) -> bytes:
    """The form that `pack_one` compressed, or an earlier version of it without the vocabulary."""
    unpacker = zlib.decompressobj(zdict=_VOCABULARY)
    content = unpacker.decompress(packed)
    if not unpacker.eof:
        raise zlib.error("the end of a packed form is missing")
    return content


def without_answered(forms: Mapping[str, bytes], answer: Mapping[str, Any]) -> dict[str, bytes]:
    """The forms, those in compact JSON without the parts that the answer has, too."""
    parts = [(_part(name, answer[name]), _part(name, _AS_ANSWERED)) for name in _SHARED if name in answer]
    return {name: _replaced(form, parts) if name in REPEATING else form for name, form in forms.items()}


def with_answered(forms: Mapping[str, bytes], answer: bytes) -> dict[str, bytes]:
    """The forms with the parts that `without_answered` left out."""
    wanted = [name for name in _SHARED if any(_part(name, _AS_ANSWERED) in forms.get(form, b"") for form in REPEATING)]
    found = json.loads(answer) if wanted else {}
    parts = [(_part(name, _AS_ANSWERED), _part(name, found[name])) for name in wanted]
    return {name: _replaced(form, parts) if name in REPEATING else form for name, form in forms.items()}


def _part(name: str, value: Any) -> bytes:
    return f'"{name}":{compact(value)}'.encode()


def _replaced(form: bytes, parts: Sequence[tuple[bytes, bytes]]) -> bytes:
    for before, after in parts:
        form = form.replace(before, after)
    return form


def pack(forms: Mapping[str, bytes]) -> bytes:
    """Forms by name, compressed together: a line of JSON with names and lengths, then the contents. A third entry of
    the line says that the content is compressed by itself."""
    contents = {name: pack_one(content) if name == _KNOWN else content for name, content in sorted(forms.items())}
    lengths = [[name, len(content), *([True] if name == _KNOWN else [])] for name, content in contents.items()]
    text = b"".join([json.dumps(lengths, separators=(",", ":")).encode(), b"\n", *contents.values()])
    return lzma.compress(text, check=lzma.CHECK_CRC32, filters=_FILTERS)


def unpack(packed: bytes) -> dict[str, bytes]:
    """The forms that `pack` compressed."""
    head, _, text = lzma.decompress(packed).partition(b"\n")
    forms, start = {}, 0
    for name, length, *packed_too in json.loads(head):
        content = text[start : start + length]
        forms[name] = unpack_one(content) if packed_too else content
        start += length
    return forms
