"""Alg. 2 of TACO 2019: trivial stages are inlined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilesmith.cost_models.taco2019 import cost_of_values
from tilesmith.scheduler.features.groups.fusion_group import Members
from tilesmith.scheduler.features.groups.group_counts import Levels
from tilesmith.scheduler.features.pipeline.pipeline_features import StageFacts
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.taco2019.levels import Choice, LoopOrder, choose_levels, needs_memory, nested

ALG2 = "TACO 2019, Alg. 2"


@once
def _known_levels(members: Members) -> dict[LoopOrder, tuple[dict[str, Choice], dict[str, Choice]]]:
    return {}


def levels_of(members: Members, order: LoopOrder) -> tuple[dict[str, Choice], dict[str, Choice]]:
    """The levels of Alg. 1, and with the stages of Alg. 2 inline."""
    known = _known_levels(members)
    found = known.get(order)
    if found is None:
        levels = choose_levels(members, order)
        found = known[order] = levels, inline_trivial(members, levels, order)
    return found


def inline_trivial(members: Members, choices: Mapping[str, Choice], order: LoopOrder) -> dict[str, Choice]:
    """TACO 2019, Alg. 2, from the output backwards, on the levels of Alg. 1.

    A stage is trivial if its arithmetic costs no more than its loads, and no trivial producer is inlined into
    it. It is inlined; those of its producers that were inline until then take over its levels, so that they are
    not computed once for every reading of it. Nothing is inlined into a stage that is itself inlined as trivial:
    work must not multiply along a chain.

    It stays where its producers together would need more than twice its memory: the terms of a sum.
    A producer that has levels of its own moves out to those of the stage where these are further out (the paper
    says nothing of it; the reuse that the stage had is the producer's now).
    """
    result = dict(choices)
    inlined: set[str] = set()
    for name in reversed(members.names[:-1]):
        levels = result[name].levels
        stage = members.facts.stages[name]
        if levels is None or not is_cheap(stage) or inlined.intersection(members.consumers[name]):
            continue
        if needs_memory(members, name) is not None or _most_loads(members, name) > PARAMS.inlined_most_loads:
            continue
        producers = local_producers(members, name)
        if any(result[p].levels is None and is_cheap(members.facts.stages[p]) for p in producers):
            continue
        if (
            _bytes(members, producers, result)
            > PARAMS.trivial_producers_bytes_ratio * stage.root_points * stage.bytes_per_point
        ):
            continue
        for producer in producers:
            result[producer] = taken_over(result[producer], levels, name, order)
        arithmetic, loads = stage.arithmetic, stage.loads
        result[name] = Choice(None, f"trivial: arithmetic of {arithmetic:g} a point against {loads:g} loads", ALG2)
        inlined.add(name)
    return nested(members, bounded(members, result, order), order)


def bounded(members: Members, choices: dict[str, Choice], order: LoopOrder) -> dict[str, Choice]:
    """Ends inlining that would multiply: a stage that would be computed at too many places of one point, or at the
    end of too long a chain, is computed once an iteration of the loop around the innermost one.

    Not in the paper, whose Alg. 1 inlines every stage without overlap: a chain of 2 x 2 means has none, and the
    places grow fourfold from stage to stage.
    """
    result = dict(choices)
    places: dict[str, float] = {}
    depth: dict[str, int] = {}
    for name in reversed(members.names[:-1]):
        if result[name].levels is not None:
            continue
        reads = [(c, members.facts.stages[c].read_of[name]) for c in members.consumers[name]]
        places[name] = sum(places.get(c, 1) * max(r.points, 1) for c, r in reads)
        depth[name] = 1 + max((depth.get(c, 0) for c, _ in reads), default=0)
        if name in members.shared or (
            places[name] <= PARAMS.inlined_most_places and depth[name] <= PARAMS.inlined_longest_chain
        ):
            continue
        many = (
            f"inline it would be computed at {places[name]:g} places"
            if places[name] > PARAMS.inlined_most_places
            else (f"inline it would end a chain of {depth[name]} stages")
        )
        del places[name], depth[name]
        at = order.innermost + 1
        result[name] = Choice(order.levels(at, at), f"{many}: computed once a row", "a limit of ours")
    return result


def _bytes(members: Members, producers: Iterable[str], choices: Mapping[str, Choice]) -> float:
    """Bytes of those of the producers that are inline."""
    stages = (members.facts.stages[p] for p in producers if choices[p].levels is None)
    return sum(s.root_points * s.bytes_per_point for s in stages)


def _most_loads(members: Members, name: str) -> float:
    """Elements that a point of a consumer would load for the stage, were it inlined, at most."""
    places = (members.facts.stages[c].read_of[name].points for c in members.consumers[name])
    return members.facts.stages[name].loads * max(places)


def is_cheap(stage: StageFacts) -> bool:
    """True if arithmetic costs no more than loads, a point."""
    return stage.arithmetic <= stage.loads


def is_trivial_shared(stage: StageFacts) -> bool:
    """True if a stage that several groups read is better computed where it is read. What a boundary does to indices
    is left out: against a trip through memory it is nothing. One that loads many elements (a minimum over slices) is
    worth keeping."""
    loads = stage.loads
    return loads <= PARAMS.trivial_shared_loads and cost_of_values(stage.operations) <= loads


def local_producers(members: Members, name: str) -> list[str]:
    """The producers of the stage in the group, but for those that several groups share."""
    reads = members.facts.stages[name].reads
    return [r.producer for r in reads if members.is_local(r.producer) and r.producer not in members.shared]


def taken_over(producer: Choice, levels: Levels, name: str, order: LoopOrder) -> Choice:
    """The levels of a producer of a stage that is inlined: where these were further out, what was read again of the
    stage is now read again of the producer."""
    if producer.levels is None:
        return Choice(levels, f"takes over the levels of {name}, which is inlined", ALG2)
    own = producer.levels
    if own.compute >= levels.compute and own.store >= levels.store:
        return producer
    both = Levels(max(own.compute, levels.compute), max(own.store, levels.store))
    return Choice(
        both, f"{producer.reason}; moved out to the levels of {name}, which is inlined ({order.name(levels)})"
    )
