"""Charts of jobs, as Vega-Lite specifications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HEIGHT = 160


def times(samples: Sequence[float], spread: Mapping[str, float]) -> dict[str, Any]:
    """Times of calls, in ms, in the order they were made: a run that warms up or is disturbed shows it. The band is
    the middle half, the line the median."""
    described = (
        f"Times of {len(samples)} calls in their order: median {spread['median']:.3f} ms, "
        f"from {spread['least']:.3f} to {spread['most']:.3f} ms"
    )
    y = {"type": "quantitative", "title": "ms", "scale": {"type": "log", "nice": False, "padding": 8}}
    return {
        "description": described,
        "height": HEIGHT,
        "layer": [
            {
                "data": {"values": [{"low": spread["low"], "high": spread["high"]}]},
                "mark": {"type": "rect", "color": "var(--chart-1)", "opacity": 0.15},
                "encoding": {"y": {"field": "low", **y}, "y2": {"field": "high"}},
            },
            {
                "data": {"values": [{"median": spread["median"]}]},
                "mark": {"type": "rule", "color": "var(--chart-1)"},
                "encoding": {"y": {"field": "median", **y}},
            },
            {
                "data": {"values": [{"call": n, "ms": ms} for n, ms in enumerate(samples, start=1)]},
                "mark": {"type": "point", "size": 30, "filled": True, "color": "var(--chart-1)"},
                "encoding": {
                    "x": {"field": "call", "type": "quantitative", "title": "call", "scale": {"nice": False}},
                    "y": {"field": "ms", **y},
                },
            },
        ],
    }
