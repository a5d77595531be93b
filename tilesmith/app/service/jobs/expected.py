"""Expected times of jobs, by which short ones are not stuck behind long ones of the same client.

A job is due some times its expected time after it was asked for; of a client's jobs the one that is due first is next
(earliest due date). A long one waits for short ones that are asked for meanwhile, but not for ever.
"""

from __future__ import annotations

from pydantic import BaseModel

from tilesmith.app.service.jobs.schemas import CompareRequest, RunRequest, TuneRequest

PATIENCE = 20
"""Expected times of its own that a job may wait for shorter ones."""
BUILD_S = 2.0
TIMED_S = 1.0
"""A library is compiled in about so long, and timed for as long in turns with others."""
UNKNOWN_MS = 100.0


def expected_s(request: BaseModel, call_ms: float | None) -> float:
    """The time that a job is expected to take, from that of a call of its schedule."""
    call_s = (UNKNOWN_MS if call_ms is None else call_ms) / 1000
    match request:
        case RunRequest(repeat=repeat):
            return BUILD_S + (1 + repeat) * call_s
        case TuneRequest(candidates=candidates):
            return candidates * (BUILD_S + max(TIMED_S, call_s))
        case CompareRequest():
            return 2 * (BUILD_S + max(TIMED_S, call_s))
    return BUILD_S


def delay_us(request: BaseModel, call_ms: float | None) -> int:
    """The time after which a job is due, in microseconds."""
    return round(1e6 * PATIENCE * expected_s(request, call_ms))
