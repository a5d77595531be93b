"""Forms of a schedule as the store has them: those that are kept in one frame of Zstandard, the others one each.

Forms say much that those of other schedules say, too: `forms.dict` has it. It was trained by
`tests/support/train_dictionary.py` and has to stay as it is: frames are read with nothing else.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path

from zstandard import ZstdCompressionDict, ZstdCompressor, ZstdDecompressor

_LEVEL = 9
"""Level 12 takes twice as long for 1 % less."""


class _Codec(threading.local):
    """A compressor and a decompressor of each thread: they are made once, and used by one at a time."""

    def __init__(self) -> None:
        self.packer = ZstdCompressor(level=_LEVEL, dict_data=_DICTIONARY, write_checksum=True)
        self.unpacker = ZstdDecompressor(dict_data=_DICTIONARY)


_DICTIONARY = ZstdCompressionDict(Path(__file__).with_name("forms.dict").read_bytes())
_DICTIONARY.precompute_compress(level=_LEVEL)
_CODEC = _Codec()


def pack_one(content: bytes) -> bytes:
    """One form, compressed."""
    return _CODEC.packer.compress(content)


def unpack_one(packed: bytes) -> bytes:
    """The form that `pack_one` compressed. Raises ZstdError where the frame is not whole."""
    return _CODEC.unpacker.decompress(packed)


def pack(forms: Mapping[str, bytes]) -> bytes:
    """Forms by name, compressed together: a line of JSON with names and lengths, then the contents."""
    lengths = json.dumps([[name, len(content)] for name, content in forms.items()], separators=(",", ":"))
    return pack_one(b"".join([lengths.encode(), b"\n", *forms.values()]))


def unpack(packed: bytes) -> dict[str, bytes]:
    """The forms that `pack` compressed. Raises ZstdError where the frame is not whole."""
    head, _, text = unpack_one(packed).partition(b"\n")
    forms, start = {}, 0
    for name, length in json.loads(head):
        forms[name] = text[start : start + length]
        start += length
    return forms
