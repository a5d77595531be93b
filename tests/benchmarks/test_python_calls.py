"""The overhead of calls from Python: every kind of call is measured, in turns with the C of its arguments."""

from __future__ import annotations

from benchmarks import python_calls


def test_every_kind_of_call_is_measured() -> None:
    found = {name: python_calls.overheads(call, compiled, 3) for name, call, compiled in python_calls.cases()}
    assert len(found) == 4
    assert all(len(samples) == 3 for samples in found.values())
