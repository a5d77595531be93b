"""Warnings of sizes that do not go together, and the error of a call that there is no memory for."""

from __future__ import annotations

from support.places import document

from tilesmith.app.runtime.shortage import no_memory
from tilesmith.scheduler.analysis.size_warnings import buffer_warnings, in_words, input_warnings
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.rewrites.passes import normalise, rewrite

REGION = ((0, 64), (0, 48))


def test_the_index_that_reads_furthest_beyond_an_estimate_is_told() -> None:
    of = document(
        {"out": "a(x - 1, y) + a(2 * x + 5, y) + b(x, y)"}, {"a": "int32", "b": "int32"}, estimates={"a": REGION}
    )
    (warning,) = input_warnings(normalise(of))
    assert warning == (
        "input 'a' is needed from 5 to 131 in dim 'x' at the estimates, and is estimated to have 0 to 63: "
        "stage 'out' reads it at 2 * x + 5"
    )


def test_what_fits_is_no_warning() -> None:
    repeated = {"type": "int32", "boundary": {"kind": "repeat_edge"}}
    of = document({"out": "a(x - 9, y) + a(2 * x + 5, y)"}, {"a": repeated}, estimates={"a": REGION})
    assert input_warnings(normalise(of)) == ()


def test_buffers_that_are_larger_than_all_images_are_told_in_one_sentence() -> None:
    names = ("half", "same", "big", *(f"s{n}" for n in range(9)))
    of = rewrite(document({"out": "a(x, y)", **dict.fromkeys(names, "a(x, y)")}, {"a": "uint8"}), Schedule("p", "", ()))
    assert buffer_warnings(of, [("half", 3072), ("same", 2 * 3072)]) == ()
    (one,) = buffer_warnings(of, [("same", 6144), ("big", 29_000_000_000)])
    assert one == (
        "at the estimates a buffer takes more memory than all inputs and outputs together, 6.14 KB: "
        "that of stage 'big' takes 29 GB"
    )
    (many,) = buffer_warnings(of, [(f"s{n}", 10_000 + n) for n in range(9)])
    assert "'s8'" in many
    assert many.endswith("and 6 more do")


def test_buffers_of_stages_that_rewrites_added_are_not_told() -> None:
    at = "int32(clamp(atan2(a(r, s), 0.5), 0.0, 3.0))"
    domain = {"r": [0, "a.extent.x"], "s": [0, "a.extent.y"]}
    update = {"domain": domain, "at": [at], "value": f"hist({at}) + 1"}
    hist = {"dims": ["k"], "value": "0", "updates": [update]}
    of = document({"hist": hist, "out": "hist(x % 4) + y"}, {"a": "float32"}, estimates={"a": REGION})
    plan = rewrite(of, Schedule("p", "", ()))
    assert "hist_operand" in {s.name for s in plan.pipeline.stages}
    assert buffer_warnings(plan, [("hist_operand", 10**9)]) == ()
    (warning,) = buffer_warnings(plan, [("hist_operand", 10**9), ("hist", 10**8)])
    assert warning.endswith(": that of stage 'hist' takes 100 MB")


def test_the_largest_buffer_of_a_call_is_told() -> None:
    of = document({"wide": {"dims": ["x"], "value": "a(x, 0)"}, "out": "wide(x * 1000) + a(x, y)"}, {"a": "int32"})
    buffers = [("wide", 63_001 * 4), ("tile", 4096)]
    error = no_memory(of, buffers, {"out": ((0, 1001), (0, 1))}, {}, {})
    assert str(error) == "the compiled code got no memory for its buffers: that of stage 'wide' takes 4 MB"
    assert in_words(999) == "999 bytes"
