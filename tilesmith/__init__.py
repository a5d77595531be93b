"""tilesmith: schedules image-processing pipelines for a machine, and makes fast C of them. What is listed here and in
`tilesmith.strategies` is public; all else may change."""

from __future__ import annotations

from platforms import Platform
from platforms import load as platform
from scheduler.compiler import Compiled, Options, generate
from scheduler.compiler import compile_pipeline as compile
from scheduler.errors import DocumentError, ScheduleError, StrategyRefused, TilesmithError
from scheduler.frontends.document.document import load_text as pipeline_of_text
from scheduler.ir.pipeline.pipeline import Pipeline
from scheduler.pipelines import load as shipped_pipeline

__all__ = [
    "Compiled",
    "DocumentError",
    "Options",
    "Pipeline",
    "Platform",
    "ScheduleError",
    "StrategyRefused",
    "TilesmithError",
    "compile",
    "generate",
    "pipeline_of_text",
    "platform",
    "shipped_pipeline",
]
