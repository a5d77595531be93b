"""Forms of a schedule as the store has them: compressed, those of one schedule together, since they say much the same.

The answer is apart, by deflate, which takes some 20 us for one of 4 KB to be read: it is what most requests are for.
"""

from __future__ import annotations

import json
import lzma
import zlib
from collections.abc import Mapping

_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 1, "lc": 4, "lp": 0, "pb": 0, "dict_size": 1 << 20}]
"""LZMA of text (contexts of a byte and a half, no alignment), with a window of 1 MiB: memory for 8 takes longer to get
than most forms to compress. A longer search for repetitions takes four times as long for 3 % less."""


def pack_one(content: bytes) -> bytes:
    """One form, compressed."""
    return zlib.compress(content, 9)


def unpack_one(packed: bytes) -> bytes:
    """The form that `pack_one` compressed."""
    return zlib.decompress(packed)


def pack(forms: Mapping[str, bytes]) -> bytes:
    """Forms by name, compressed together: a line of JSON with names and lengths, then the contents."""
    names = sorted(forms)
    head = json.dumps([[name, len(forms[name])] for name in names], separators=(",", ":")).encode()
    text = b"".join([head, b"\n", *(forms[name] for name in names)])
    return lzma.compress(text, check=lzma.CHECK_CRC32, filters=_FILTERS)


def unpack(packed: bytes) -> dict[str, bytes]:
    """The forms that `pack` compressed."""
    head, _, text = lzma.decompress(packed).partition(b"\n")
    forms, start = {}, 0
    for name, length in json.loads(head):
        forms[name] = text[start : start + length]
        start += length
    return forms
