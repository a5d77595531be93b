"""The dashboard of Grafana: each metric and label that it asks for is there, and it asks for each metric."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path

from tilesmith.app.service.metrics import Metrics

BOARD = json.loads((Path(__file__).parents[2] / "deploy" / "grafana" / "tilesmith.json").read_text(encoding="utf-8"))
QUERIES = [t["expr"] for p in BOARD["panels"] for t in p.get("targets", ())]
QUERIES += [v["query"] for v in BOARD["templating"]["list"]]
FAMILIES = {f.name: f for f in Metrics().registry.collect()}
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
SAMPLES = {f"{name}{suffix}": name for name, f in FAMILIES.items() for suffix in SUFFIXES[f.type]}
BY_PROMETHEUS = {"instance", "le"}


def named(query):
    return set(re.findall(r"\btilesmith_\w+", query))


def test_every_metric_that_it_names_exists_and_every_one_that_exists_is_named():
    asked = set().union(*map(named, QUERIES))
    assert asked <= set(SAMPLES)
    assert {SAMPLES[name] for name in asked} == set(FAMILIES)


def test_every_label_that_it_names_exists():
    labels = {m._name: set(m._labelnames) for m in vars(Metrics()).values() if hasattr(m, "_labelnames")}
    for query in QUERIES:
        known = set().union(BY_PROMETHEUS, *(labels[SAMPLES[m]] for m in named(query)))
        asked = {n.strip() for group in re.findall(r"by \(([^)]*)\)", query) for n in group.split(",")}
        asked |= set(re.findall(r"[{,](\w+)=~?\"", query))
        assert asked <= known, query
    for panel in BOARD["panels"]:
        for target in panel.get("targets", ()):
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= set(
                re.split(r"\W+", " ".join(re.findall(r"by \(([^)]*)\)", target["expr"])))
            )


def test_panels_have_a_meaning_and_a_place_of_their_own():
    panels = [p for p in BOARD["panels"] if p["type"] != "row"]
    assert all(p["description"] and p["fieldConfig"]["defaults"]["unit"] for p in panels)
    assert len({p["id"] for p in BOARD["panels"]}) == len(BOARD["panels"])
    for a, b in combinations([p["gridPos"] for p in BOARD["panels"]], 2):
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        assert beside or a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
