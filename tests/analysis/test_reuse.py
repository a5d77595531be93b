"""Overlap of a producer in a consumer's loop."""

import random
from fractions import Fraction

import pytest
from support.small_pipelines import F, blur, clamp, pipeline, stage, x

from tilesmith.scheduler.analysis.access_functions import Span
from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.reuse import FULL, overlap, overlap_in
from tilesmith.scheduler.features.groups.loop_nest import line
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.rewrites.passes import normalise


@pytest.mark.parametrize(
    ("reads", "shared"),
    [
        ((x - 1, x + 1), 2),  # box filter of 3
        ((x,), 0),
        ((x * 2 - 1, x * 2 + 1), 1),
        ((x * 2,), 0),
        ((x // 2, (x + 1) // 2), 1),
        ((x // 2,), 1),  # each element is read by two iterations
        ((x * 3, x * 3 + 1), 0),
        ((x - 8, x + 8), 16),
    ],
)
def test_overlap_is_extent_less_step(reads, shared: int) -> None:
    f = F("f")
    value = f(reads[0])
    for r in reads[1:]:
        value = value + f(r)
    spans = [a.spans[0] for a in accesses(stage("g", "x", value))]
    both = Span("x", spans[0].rate, min(s.lo for s in spans), max(s.hi for s in spans))
    assert overlap(both) == shared


def test_overlap_of_a_mirrored_read() -> None:
    assert overlap(Span("x", Fraction(-1), Fraction(0), Fraction(2))) == 2
    assert overlap(Span("x", Fraction(-2), Fraction(0), Fraction(0))) == 0


def test_reuse_is_full_where_no_index_moves() -> None:
    facts = gather(
        normalise(
            pipeline("p", [stage("row", "x", F("input")(x, 0)), stage("out", "xy", F("row")(x))], {"out": (9, 9)})
        )
    )
    (read,) = facts.stages["out"].reads
    assert overlap_in(read.spans, "y") == FULL
    assert overlap_in(read.spans, "x") == 0


def test_clamps_do_not_hide_where_an_index_goes() -> None:
    out = stage("out", "x", F("row")(clamp(x - 1, 0, 8)) + F("row")(clamp(x + 1, 0, 8)))
    facts = gather(normalise(pipeline("p", [stage("row", "x", F("input")(x)), out], {"out": (9,)}, {"input": "x"})))
    (read,) = facts.stages["out"].reads
    assert overlap_in(read.spans, "x") == 2


def test_blur_overlaps_in_rows_only() -> None:
    facts = gather(normalise(blur()))
    (read,) = facts.stages["blur_y"].reads
    assert (overlap_in(read.spans, "x"), overlap_in(read.spans, "y")) == (0, 2)


def test_overlap_and_windows_of_every_alignment() -> None:
    """They are told without going through the alignments, of which there may be as many as there are integers."""
    rng = random.Random(0)
    for _ in range(500):
        rate = Fraction(rng.randint(1, 20) * rng.choice((-1, 1)), rng.randint(1, 12))
        lo = Fraction(rng.randint(-30, 30), rng.choice((1, 2, 3, rate.denominator)))
        s = Span("x", rate, lo, lo + Fraction(rng.randint(0, 40), rng.choice((1, 2, rate.denominator))))
        shared = (min(s.last(v), s.last(v + 1)) - max(s.first(v), s.first(v + 1)) + 1 for v in range(rate.denominator))
        assert overlap(s) == max(0, *shared)
        row = line(s)
        touched = [(row.a * v + row.hi) // row.k - (row.a * v + row.lo) // row.k + 1 for v in range(row.k)]
        assert row.window() == max(touched)
        assert row.mean_window() == sum(touched) / row.k
    assert overlap(Span("x", Fraction(2**30, 2**30 + 1), Fraction(0), Fraction(1, 2))) == 1
