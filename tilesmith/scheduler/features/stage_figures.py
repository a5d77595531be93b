"""Figures of a complete schedule, stage by stage, for people who look at it: sizes, overlap, recomputation, buffers,
operations, and the bytes that move through each cache. They are the counts that the model `ecm` prices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, Literal

from tilesmith.cost_models.counts import GroupCounts, StageCounts
from tilesmith.cost_models.ecm import Ecm
from tilesmith.cost_models.ecm.machine import machine_of
from tilesmith.cost_models.ecm.steps import BYTES
from tilesmith.cost_models.operations import Operations
from tilesmith.platforms import Platform
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts, gather
from tilesmith.scheduler.features.schedule_features import counts_of
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import INLINE, ROOT, Group

Role = Literal["input", "stage", "output"]


@dataclass(frozen=True, slots=True)
class Place:
    """A stage as a group computes it: `recompute` are the points computed over those that there are, `bytes` its buffer
    of one thread, `traffic` the bytes that pass the first cache, the second, ..., the last those of memory; with its
    predicted time."""

    group: str
    compute: str
    store: str
    storage: str
    recompute: float
    bytes: int
    traffic: tuple[float, ...]
    microseconds: float


@dataclass(frozen=True, slots=True)
class StageFigures:
    """A stage or an input at the estimates; `operations` are those of one point, `bytes` those of all of it."""

    name: str
    role: Role
    extents: tuple[tuple[str, int], ...]
    operations: float
    bytes: int
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """A stage that reads another: so many `elements` for one point; of `overlap`, by loop of the reader, what two
    neighbouring iterations both read, None where that is all."""

    producer: str
    consumer: str
    elements: float
    overlap: tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """A group: its operations by element type, the bytes that pass each cache, and its predicted time."""

    output: str
    operations: tuple[tuple[str, float], ...]
    traffic: tuple[float, ...]
    microseconds: float


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a machine: what all its threads do at most, 10^9 operations a second by element type, and 10^9 bytes a
    second of each level of memory; bytes of an instance of each cache."""

    operations: tuple[tuple[str, float], ...]
    bandwidths: tuple[tuple[str, float], ...]
    caches: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures of a plan on a platform. `levels` name the entries of every `traffic`."""

    stages: tuple[StageFigures, ...]
    edges: tuple[Edge, ...]
    groups: tuple[GroupFigures, ...]
    levels: tuple[str, ...]
    limits: Limits

    def to_document(self) -> dict[str, Any]:
        """The figures as plain data, for JSON."""
        return {
            "levels": list(self.levels),
            "stages": [_of_stage(s) for s in self.stages],
            "edges": [
                {
                    "producer": e.producer,
                    "consumer": e.consumer,
                    "elements": e.elements if e.elements < inf else None,
                    "overlap": dict(e.overlap),
                }
                for e in self.edges
            ],
            "groups": [
                {
                    "output": g.output,
                    "operations": dict(g.operations),
                    "traffic": list(g.traffic),
                    "microseconds": g.microseconds,
                }
                for g in self.groups
            ],
            "limits": {
                "gigaoperations_per_s": dict(self.limits.operations),
                "gigabytes_per_s": dict(self.limits.bandwidths),
                "cache_bytes": dict(self.limits.caches),
            },
        }


def _of_stage(stage: StageFigures) -> dict[str, Any]:
    return {
        "name": stage.name,
        "role": stage.role,
        "extents": dict(stage.extents),
        "operations": stage.operations,
        "bytes": stage.bytes,
        "places": [
            {
                "group": p.group,
                "compute": p.compute,
                "store": p.store,
                "storage": p.storage,
                "recompute": p.recompute,
                "bytes": p.bytes,
                "traffic": list(p.traffic),
                "microseconds": p.microseconds,
            }
            for p in stage.places
        ],
    }


def figures_of(plan: Plan, platform: Platform) -> Figures:
    """The figures of a legal plan, at the pipeline's estimates."""
    facts = gather(plan.pipeline, line_bytes=platform.line_bytes, core=platform.core)
    places: dict[str, list[Place]] = {name: [] for name in facts.stages}
    groups, model = [], Ecm()
    for group, counts in zip(plan.schedule.groups, counts_of(plan, platform), strict=True):
        traffic = {name: tuple(map(float, of)) for name, of in model.traffic(counts, platform).items()}
        times = {s.stage: float(s.total) for s in model.price(counts, platform).stages}
        for stage in counts.stages:
            moved = traffic.get(stage.stage, ())
            places[stage.stage].append(_place(group, stage, moved, times[stage.stage]))
        groups.append(_group(counts, traffic, sum(times.values())))
    machine = machine_of(platform)
    return Figures(
        tuple(_stage(facts, s, tuple(places[name])) for name, s in facts.stages.items()),
        tuple(_edges(facts)),
        tuple(groups),
        (*(f"L{c.level}" for c in platform.caches), "memory")[1:],
        _limits(platform, tuple(machine.names)),
    )


def _stage(facts: Facts, stage: StageFacts, places: tuple[Place, ...]) -> StageFigures:
    role: Role = "input" if stage.is_input else "output" if stage.name in facts.graph.outputs else "stage"
    return StageFigures(
        stage.name,
        role,
        tuple(zip(stage.dims, stage.extents, strict=True)),
        _number(stage.operations),
        stage.root_points * stage.bytes_per_point,
        places,
    )


def _place(group: Group, counts: StageCounts, traffic: tuple[float, ...], microseconds: float) -> Place:
    p = group.placement(counts.stage)
    compute, store, storage = (ROOT, ROOT, "memory") if p is None else (p.compute, p.store, p.storage)
    recompute = float(counts.points) / max(1.0, counts.root_points)
    kept = 0 if counts.inlined or compute == INLINE else int(counts.bytes_kept)
    return Place(group.output, compute, store, storage, recompute, kept, traffic, microseconds)


def _group(counts: GroupCounts, traffic: dict[str, tuple[float, ...]], microseconds: float) -> GroupFigures:
    operations: dict[str, float] = {}
    for stage in counts.stages:
        for type_, of in stage.work.operations if stage.work is not None else ():
            operations[type_] = operations.get(type_, 0.0) + float(stage.points) * _number(of)
    together = tuple(map(sum, zip(*traffic.values(), strict=True)))
    return GroupFigures(counts.output, tuple(sorted(operations.items())), together, microseconds)


def _number(o: Operations) -> float:
    """Operations of all kinds that compute values: those of indices are not among them."""
    return float(o.add + o.multiply + o.divide + o.divide_by_constant + o.select + o.convert + o.narrow + o.function)


def _edges(facts: Facts) -> Iterator[Edge]:
    for name, stage in facts.stages.items():
        for read in stage.reads:
            overlap = tuple((loop, None if amount == inf else int(amount)) for loop, amount in read.reuse)
            yield Edge(read.producer, name, read.executed, overlap)


def _limits(platform: Platform, names: tuple[str, ...]) -> Limits:
    machine = machine_of(platform)
    p, cores, clock = platform.ecm_parameters, platform.cores, platform.clock_ghz
    peaks = {
        type_: cores * clock * max(1, platform.vector_bytes // size) / max(0.01, p.of_type(type_).add)
        for type_, size in BYTES.items()
    }
    first = platform.caches[0]
    inner = [(f"L{first.level}", cores * clock * first.bandwidth_bytes_per_cycle)]
    inner += [
        (name, 1e-3 / max(load / cores, together))
        for name, (load, _, together, _) in zip(names, machine.outer, strict=True)
    ]
    caches = tuple((f"L{c.level}", c.size_bytes) for c in platform.caches)
    return Limits(tuple(peaks.items()), (*inner, ("memory", p.memory_gb_s)), caches)
