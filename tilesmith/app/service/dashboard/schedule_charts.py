"""Charts of a stored schedule, as Vega-Lite specifications of what its forms say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log10
from typing import Any

Spec = dict[str, Any]

SHOWN_STAGES = 40
"""Bars of a chart, the longest: with all of them none could be read."""
STEP = 20
"""Pixels of a bar."""
CELL = 44
"""Pixels of a tile size of a map."""
HALF = 400
"""Pixels of a chart that stands beside another."""
APART = 0.045
"""Distance between points that are both labelled, at least, of the chart's width and height."""
KIB = 1024


def cost_by_stage(predicted: Mapping[str, Any]) -> Spec | None:
    """Predicted cost of the stages, by term; None where there is none."""
    stages = sorted((s for s in predicted.get("stages", ()) if s["total"] > 0), key=lambda s: -s["total"])[
        :SHOWN_STAGES
    ]
    rows = [
        {"stage": s["stage"], "term": term, "value": value, "order": order}
        for s in stages
        for order, (term, value) in enumerate(s["terms"].items())
        if value > 0
    ]
    if not rows:
        return None
    terms = list(dict.fromkeys(term for s in stages for term in s["terms"]))
    return {
        "description": f"Predicted {predicted['unit']} of each stage, by term; the table of stages has the sums",
        "data": {"values": rows},
        "width": HALF,
        "height": {"step": STEP},
        "mark": "bar",
        "encoding": {
            "x": {"field": "value", "type": "quantitative", "title": predicted["unit"], "axis": {"tickCount": 5}},
            "y": {"field": "stage", "type": "nominal", "title": None, "sort": [s["stage"] for s in stages]},
            "color": {"field": "term", "type": "nominal", "title": None, "sort": terms, "legend": {"orient": "top"}},
            "order": {"field": "order", "type": "quantitative"},
        },
    }


def costs_of_two(difference: Mapping[str, Any]) -> Spec | None:
    """Predicted cost by stage of two schedules; None where it is not in the same unit, or there is none."""
    a, b = difference["predicted_a"], difference["predicted_b"]
    if a is None or b is None or (a["model"], a["unit"]) != (b["model"], b["unit"]):
        return None
    stages = [s for s in difference["stages"] if (s["a"] or 0) + (s["b"] or 0) > 0]
    stages = sorted(stages, key=lambda s: -max(s["a"] or 0, s["b"] or 0))[: SHOWN_STAGES // 2]
    if not stages:
        return None
    rows = [{"stage": s["stage"], "of": of.upper(), "value": s[of] or 0} for s in stages for of in "ab"]
    return {
        "description": f"Predicted {a['unit']} of each stage in A and in B; the table has the figures",
        "data": {"values": rows},
        "height": {"step": STEP / 2, "for": "offset"},
        "mark": "bar",
        "encoding": {
            "x": {"field": "value", "type": "quantitative", "title": a["unit"], "axis": {"tickCount": 5}},
            "y": {"field": "stage", "type": "nominal", "title": None, "sort": [s["stage"] for s in stages]},
            "yOffset": {"field": "of", "type": "nominal"},
            "color": {"field": "of", "type": "nominal", "title": None, "legend": {"orient": "top"}},
        },
    }


def buffers_against_caches(figures: Mapping[str, Any]) -> Spec | None:
    """Buffers of one thread and whole images between groups, beside the sizes of the caches; None without buffers."""
    found = [(s["name"], p["bytes"], "of a thread") for s in figures["stages"] for p in s["places"] if p["bytes"]]
    outputs = {g["output"] for g in figures["groups"]}
    found += [
        (s["name"], s["bytes"], "whole, between groups")
        for s in figures["stages"]
        if s["role"] == "stage" and s["name"] in outputs
    ]
    if not found:
        return None
    found = sorted(found, key=lambda f: -f[1])[:SHOWN_STAGES]
    caches = [{"cache": name, "bytes": size} for name, size in figures["limits"]["cache_bytes"].items()]
    least = min([f[1] for f in found] + [c["bytes"] for c in caches])
    scale = {"type": "log", "base": 2, "domainMin": least / 2, "nice": False}
    size = {
        "field": "bytes",
        "type": "quantitative",
        "scale": scale,
        "title": None,
        "axis": {"labelExpr": BYTES, "grid": False, "tickCount": 8},
    }
    stage = {"field": "stage", "type": "nominal", "title": None, "sort": [f[0] for f in found]}
    return {
        "description": "Bytes of each buffer, on a scale of powers of two, beside the sizes of the caches",
        "height": {"step": STEP},
        "layer": [
            {
                "data": {"values": [{"stage": n, "bytes": b, "kind": k, "least": least / 2} for n, b, k in found]},
                "mark": {"type": "bar", "height": 9},
                "encoding": {
                    "x": size,
                    "x2": {"field": "least"},
                    "y": stage,
                    "color": {"field": "kind", "type": "nominal", "title": None, "legend": {"orient": "bottom"}},
                },
            },
            {
                "data": {"values": caches},
                "mark": {"type": "rule", "strokeDash": [4, 3]},
                "encoding": {"x": {"field": "bytes", "type": "quantitative", "scale": scale}},
            },
            {
                "data": {"values": caches},
                "mark": {"type": "text", "baseline": "bottom"},
                "encoding": {
                    "x": {"field": "bytes", "type": "quantitative", "scale": scale},
                    "y": {"value": -3},
                    "text": {"field": "cache"},
                },
            },
        ],
    }


BYTES = (
    "datum.value >= 1073741824 ? format(datum.value / 1073741824, ',') + ' GiB' : "
    "datum.value >= 1048576 ? format(datum.value / 1048576, ',') + ' MiB' : "
    "datum.value >= 1024 ? format(datum.value / 1024, ',') + ' KiB' : format(datum.value, ',') + ' B'"
)
"""Bytes in the largest unit that they have one of, as an expression of Vega."""


def tile_map(group: Mapping[str, Any], unit: str) -> Spec:
    """The predicted time of one group over its tile sizes, by that of the sizes that were chosen."""
    dims, costs = group["dims"], group["costs"]
    first: Mapping[str, Any] = dims[0]
    second: Mapping[str, Any] = dims[1] if len(dims) > 1 else {"dim": "", "sizes": [1], "chosen": 1}
    chosen = costs[first["sizes"].index(first["chosen"])][second["sizes"].index(second["chosen"])]
    sizes = ", ".join(f"{dim['dim']} {dim['chosen']}" for dim in dims)
    cells = [
        {
            "x": str(x),
            "y": str(y),
            "shade": min(1.0, log10(max(1.0, cost / least))),
            "times": _times(cost / chosen),
            "chosen": x == first["chosen"] and y == second["chosen"],
        }
        for least in (min(map(min, costs)),)
        for x, row in zip(first["sizes"], costs, strict=True)
        for y, cost in zip(second["sizes"], row, strict=True)
    ]
    x = _sizes("x", first)
    y = _sizes("y", second) if second["dim"] else {"value": CELL / 2}
    return {
        "description": (
            f"Predicted time of group {group['output']} over its tile sizes, in times of that of the sizes chosen, "
            f"{sizes}: {chosen:,.0f} {unit}"
        ),
        "data": {"values": cells},
        "width": {"step": CELL},
        "height": {"step": 22} if second["dim"] else 22,
        "encoding": {"x": x, **({"y": y} if second["dim"] else {})},
        "layer": [
            {
                "mark": {"type": "rect", "color": "var(--chart-2)"},
                "encoding": {
                    "fillOpacity": {
                        "field": "shade",
                        "type": "quantitative",
                        "legend": None,
                        "scale": {"domain": [0, 1], "range": [0.04, 0.5]},
                    }
                },
            },
            {
                "transform": [{"filter": "datum.chosen"}],
                "mark": {"type": "rect", "fill": None, "stroke": "var(--text)", "strokeWidth": 2.5},
            },
            {"mark": {"type": "text", "fontSize": 11}, "encoding": {"text": {"field": "times"}}},
        ],
    }


def _sizes(field: str, dim: Mapping[str, Any]) -> Spec:
    title = f"tile of {dim['dim']}"
    axis = {"labelAngle": 0, "labelOverlap": False}
    return {"field": field, "type": "ordinal", "sort": list(map(str, dim["sizes"])), "title": title, "axis": axis}


def _times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 9.995 else f"{ratio:,.0f}"


def roofline(figures: Mapping[str, Any]) -> Spec | None:
    """Operations a second of the groups over their operations a byte of memory, under the limits of the machine: of the
    caches and of memory, and of arithmetic in the element types that they compute with."""
    points = [
        p for g, n in zip(figures["groups"], range(1, 10_000), strict=False) if (p := _intensity(g, n)) is not None
    ]
    if not points:
        return None
    types = dict.fromkeys(t for g in figures["groups"] for t, n in g["operations"].items() if n > 0)
    peaks = {t: figures["limits"]["gigaoperations_per_s"][t] for t in types}
    highest, rates = max(peaks.values()), figures["limits"]["gigabytes_per_s"]
    left = min(0.1, *(p["x"] for p in points)) / 2
    right = max(10.0, *(p["x"] for p in points), highest / rates["memory"]) * 2
    lowest = min(min(p["y"] for p in points), left * rates["memory"]) / 2
    slopes = [
        {"limit": name, "x": x, "y": x * rate}
        for name, rate in rates.items()
        for x in (max(left, lowest / rate), highest / rate)
    ]
    flat = [{"limit": f"arithmetic, {name}", "x": x, "y": y} for name, y in peaks.items() for x in (left, right)]
    x = _log("x", "operations a byte of memory", [left, right])
    y = _log("y", "10⁹ operations a second", [lowest, highest * 2])
    return {
        "description": "Operations a second of groups over operations a byte of memory, under the machine's limits",
        "width": HALF,
        "height": 320,
        "layer": [
            {
                "data": {"values": slopes + flat},
                "mark": {"type": "line", "strokeWidth": 1.5, "clip": True},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": {
                        "field": "limit",
                        "type": "nominal",
                        "title": None,
                        "legend": {"orient": "top", "columns": 3},
                    },
                },
            },
            {
                "data": {"values": points},
                "mark": {"type": "point", "color": "var(--text)"},
                "encoding": {
                    "x": x,
                    "y": y,
                    "size": {"field": "share", "type": "quantitative", "legend": None, "scale": {"range": [25, 200]}},
                },
            },
            {
                "data": {"values": _labelled(points, log10, log10(right / left), log10(highest * 2 / lowest))},
                "mark": {"type": "text", "dy": -16},
                "encoding": {"x": x, "y": y, "text": {"field": "name"}},
            },
        ],
    }


def _intensity(group: Mapping[str, Any], number: int) -> Spec | None:
    operations, moved = sum(group["operations"].values()), group["traffic"][-1] if group["traffic"] else 0.0
    if operations <= 0 or moved <= 0 or group["microseconds"] <= 0:
        return None
    rate = operations / group["microseconds"] / 1e3
    return {"name": str(number), "x": operations / moved, "y": rate, "share": group["microseconds"]}


def _log(field: str, title: str, domain: Sequence[float]) -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"type": "log", "domain": list(domain), "nice": False},
        "axis": {"format": "~g", "tickCount": 6},
    }


def memory_of_candidates(candidates: Mapping[str, Any]) -> Spec | None:
    """Memory of the candidates over their predicted cost; None where there are no two."""
    points = [_candidate(c, c["memory_bytes"] / KIB) for c in candidates.get("items", ())]
    title = "Memory of the candidates over their predicted cost; the table has the figures"
    return _scatter(title, points, candidates, "KiB of memory")


def measured_candidates(candidates: Mapping[str, Any]) -> Spec | None:
    """Measured time of the candidates that ran over their predicted cost; None where there are no two."""
    ran = [c for c in candidates.get("items", ()) if c.get("measured_ms") is not None and c.get("error") is None]
    title = "Measured time of the candidates over their predicted cost; the table has the figures"
    return _scatter(title, [_candidate(c, c["measured_ms"]) for c in ran], candidates, "ms measured")


def _candidate(candidate: Mapping[str, Any], y: float) -> Spec:
    chosen = candidate.get("chosen", candidate["rank"] == 1)
    kind = "chosen" if chosen else "beaten by none" if candidate["pareto"] else "others"
    return {"name": str(candidate["rank"]), "x": candidate["predicted"], "y": y, "kind": kind}


def _scatter(title: str, points: Sequence[Spec], candidates: Mapping[str, Any], y_title: str) -> Spec | None:
    if len(points) < 2:
        return None
    x = _linear("x", f"predicted {candidates.get('unit', '')}")
    y = _linear("y", y_title)
    kinds = ["chosen", "beaten by none", "others"]
    colours = {"domain": kinds, "range": ["var(--chart-2)", "var(--chart-1)", "var(--chart-6)"]}
    shapes = {"domain": kinds, "range": ["diamond", "circle", "square"]}
    told = {"field": "kind", "type": "nominal", "title": None, "legend": {"orient": "top"}}
    return {
        "description": title,
        "encoding": {"x": x, "y": y},
        "layer": [
            {
                "data": {"values": list(points)},
                "mark": {"type": "point", "size": 80},
                "encoding": {"color": {**told, "scale": colours}, "shape": {**told, "scale": shapes}},
            },
            {
                "data": {"values": _labelled(points, float, *(_span(points, axis) for axis in "xy"))},
                "mark": {"type": "text", "dy": -12},
                "encoding": {"text": {"field": "name"}},
            },
        ],
    }


def _linear(field: str, title: str) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, "scale": {"zero": False, "padding": 16}}


def _span(points: Sequence[Spec], axis: str) -> float:
    values = [p[axis] for p in points]
    return float(max(values) - min(values)) or 1.0


def _labelled(points: Sequence[Spec], measure: Callable[[float], float], wide: float, high: float) -> list[Spec]:
    """The points whose labels do not meet the one of a point before: those chosen or large first. The chart is so
    `wide` and `high`, as `measure` has it."""
    places = [(measure(p["x"]) / wide, measure(p["y"]) / high) for p in points]
    order = sorted(
        range(len(points)), key=lambda n: (points[n].get("kind") != "chosen", -points[n].get("share", 0.0), n)
    )
    shown: list[int] = []
    for n in order:
        apart = ((abs(a - b) for a, b in zip(places[n], places[m], strict=True)) for m in shown)
        if all(across > APART or up > 1.5 * APART for across, up in apart):
            shown.append(n)
    return [points[n] for n in sorted(shown)]
