"""Results: a pipeline's predicted time on a platform, with what was measured, as a commit has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Series:
    """A pipeline by name, on a platform, scheduled in one way: results of one series are compared with each other."""

    pipeline: str
    platform: str
    variant: str

    def in_words(self) -> str:
        way = "" if self.variant == "default" else f" ({self.variant})"
        return f"{self.pipeline} on {self.platform}{way}"


@dataclass(frozen=True, slots=True)
class Measured:
    """A measurement: the median of `runs` timed calls, milliseconds, with an interval that holds the median with
    99 % confidence where there are calls enough; and the machine."""

    median_ms: float
    low_ms: float | None
    high_ms: float | None
    runs: int
    machine: str | None = None

    def to_document(self) -> dict[str, Any]:
        """The measurement as plain data, for JSON."""
        return {name: getattr(self, name) for name in ("median_ms", "low_ms", "high_ms", "runs", "machine")}


@dataclass(frozen=True, slots=True)
class Result:
    """A result: `predicted` is in `unit`; `schedule_id` says which code it is, `pipeline_id` which document.
    `reason` is what a person said who accepted it in spite of a regression."""

    series: Series
    schedule_id: str
    pipeline_id: str
    predicted: float
    unit: str
    measured: Measured | None = None
    reason: str | None = None

    def to_document(self) -> dict[str, Any]:
        """The result as plain data, for JSON."""
        return {
            "pipeline": self.series.pipeline,
            "platform": self.series.platform,
            "variant": self.series.variant,
            "schedule_id": self.schedule_id,
            "pipeline_id": self.pipeline_id,
            "predicted": self.predicted,
            "unit": self.unit,
            "measured": self.measured.to_document() if self.measured else None,
            "reason": self.reason,
        }


def from_document(document: Mapping[str, Any]) -> Result:
    """The result of `to_document`. Raises KeyError, TypeError or ValueError where it is none."""
    measured = document.get("measured")
    series = Series(*(str(document[name]) for name in ("pipeline", "platform", "variant")))
    return Result(
        series,
        str(document["schedule_id"]),
        str(document["pipeline_id"]),
        float(document["predicted"]),
        str(document["unit"]),
        Measured(**measured) if measured else None,
        document.get("reason"),
    )


def from_schedule(document: Mapping[str, Any], measured: Measured | None = None) -> Result:
    """The result that the document of a schedule has, as the service answers it."""
    series = Series(document["pipeline"], document["platform"], variant(document["options"]))
    predicted = document["predicted"]
    total, unit = float(predicted["total"]), str(predicted.get("unit", ""))
    return Result(series, document["id"], document["pipeline_id"], total, unit, measured)


def variant(options: Mapping[str, Any]) -> str:
    """The way of scheduling in words: `default`, `default strict`, `taco2019`, `strategy cbuf`, ..."""
    strategy = options.get("strategy")
    words = [f"strategy {strategy.get('strategy', '?')}" if strategy else str(options["method"])]
    words += ["strict"] if options.get("strict") else []
    words += [f"{name}={options[name]}" for name in ("cost_model", "deadline_ms", "tune") if options.get(name)]
    words += ["fixed"] if options.get("fixed") else []
    return " ".join(words)[:64]
