"""Streaming (non-temporal) stores by whole lines: a line that is written in parts, with other stores or much work in
between, loses its write combining on some machines, and then takes several times as long as by plain stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import ceil, floor

from tilesmith.scheduler.analysis.access_functions import Span
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts

MOST_OF_LINE = 4
"""Vectors that a line is made of at most: so many iterations of a row are written out for it in the C."""

HELD = 3
"""Vectors in registers of a row that streams from a loop with stages in registers, where vectors lie as those of what
it reads: the one before, and two that say which lanes of that one and of the next make a vector of memory. Where they
are not in registers, stores of them are among those that stream."""

MOST_ROWS = 64
"""Elements of a window along a dim that are looked at one by one; of longer ones sums are loops of their own."""


def line_vectors(vector_bytes: int, line_bytes: int, streamed_bytes: int) -> int:
    """Vectors of so many bytes that make a line, 1 for those that are whole lines; 0 where stores of them cannot
    stream: there are none for vectors below `streamed_bytes`."""
    count = max(line_bytes // vector_bytes, 1)
    whole = vector_bytes * count % line_bytes == 0
    return count if whole and vector_bytes >= streamed_bytes and count <= MOST_OF_LINE else 0


def is_behind(
    output: StageFacts, producer: StageFacts, spans: Sequence[Span], row: str, unrolled: Mapping[str, int], facts: Facts
) -> bool:
    """True if a loop over vectors of `output` along `row` loads what lies a line or less behind what it has written, or
    whole pages from there: both images begin at the same place in one. `spans` are those of the producer's dims in the
    output's, of which so many are `unrolled`, written side by side."""
    size, page = output.bytes_per_point, facts.core.pages.page_bytes
    moving = {s.var for s in spans}
    ways = [[-n * output.apart[d] for n in range(k)] for d, k in unrolled.items() if d not in moving]
    for dim, span in zip(producer.dims, spans, strict=True):
        step, first = producer.apart[dim], producer.region[producer.dims.index(dim)][0]
        if span.lo is None or span.hi is None or span.hi - span.lo > MOST_ROWS:
            return False
        if span.var is not None:
            if span.rate != 1 or (step - output.apart[span.var]) * size % page:
                return False
            first -= output.region[output.dims.index(span.var)][0]
        ways.append([(n - first) * step for n in range(ceil(span.lo), floor(span.hi) + 1)])
    behind = (-sum(way) * size % page for way in product(*ways))
    return row in moving and any(0 < n <= facts.line_bytes for n in behind)
