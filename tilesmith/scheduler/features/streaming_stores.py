"""Streaming (non-temporal) stores by whole lines: a line that is written in parts, with other stores or much work in
between, loses its write combining on some machines, and then takes several times as long as by plain stores."""

from __future__ import annotations

MOST_OF_LINE = 4
"""Vectors that a line is made of at most: so many iterations of a row are written out for it in the C."""

HELD = 3
"""Vectors in registers of a row that streams from a loop with stages in registers, where vectors lie as those of what
it reads: the one before, and two that say which lanes of that one and of the next make a vector of memory. Where they
are not in registers, stores of them are among those that stream."""


def line_vectors(vector_bytes: int, line_bytes: int, streamed_bytes: int) -> int:
    """Vectors of so many bytes that make a line, 1 for those that are whole lines; 0 where stores of them cannot
    stream: there are none for vectors below `streamed_bytes`."""
    count = max(line_bytes // vector_bytes, 1)
    whole = vector_bytes * count % line_bytes == 0
    return count if whole and vector_bytes >= streamed_bytes and count <= MOST_OF_LINE else 0
