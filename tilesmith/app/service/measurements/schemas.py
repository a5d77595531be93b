"""Documents about measurements."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from tilesmith.app.service.jobs.documents import Conditions
from tilesmith.app.service.measurements.repository import Kind


class Measurement(BaseModel):
    """A measurement of a schedule: the times of its calls, the kernel alone, or what went wrong."""

    id: str
    schedule_id: str
    pipeline: str
    platform: str
    kind: Kind = Field(description="The job that measured: a run, or tuning, which measures candidates")
    rank: int | None = Field(description="Of tuning: the candidate")
    predicted: float | None = Field(description="Of tuning: by the cost model, in its unit")
    estimated: bool = Field(description="At the sizes of the document's estimates")
    minimum_ms: float | None
    median_ms: float | None
    interval_ms: tuple[float, float] | None = Field(
        description="Where the true median is with 95 % confidence, by ranks; null where the times are too few"
    )
    times_ms: list[float] = Field(description="Of every timed call")
    threads: int | None
    compile_ms: float | None
    conditions: Conditions | None = Field(description="Machine, compiler, flags, sizes, clock, load")
    error: str | None
    measured_at: datetime


class MeasurementList(BaseModel):
    """Measurements; `next_cursor` where there are more."""

    items: list[Measurement]
    next_cursor: str | None = None
