"""Differences of two schedules, as they are answered."""

from __future__ import annotations

from pydantic import BaseModel, Field

from tilesmith.app.service.schedules.schemas import ScheduleSummary


class StageCosts(BaseModel):
    """The predicted cost of a stage in both schedules, each in its unit; None where that has no such stage."""

    stage: str
    a: float | None
    b: float | None


class Unit(BaseModel):
    """The model and unit of predicted costs, and their sum."""

    model: str
    unit: str
    total: float


class Difference(BaseModel):
    """Differences of two schedules."""

    a: ScheduleSummary
    b: ScheduleSummary
    decided_by_a: list[str] = Field(description="Decisions of `a` that `b` makes otherwise, in words")
    decided_by_b: list[str] = Field(description="Decisions of `b` that `a` makes otherwise, in words")
    predicted_a: Unit | None
    predicted_b: Unit | None
    stages: list[StageCosts] = Field(description="Stages of `a`, then those that only `b` has")
    loopnest: str = Field(description="The loop nests as a unified diff; empty where they are equal")
    code: str = Field(description="The C as a unified diff; empty where it is equal")
