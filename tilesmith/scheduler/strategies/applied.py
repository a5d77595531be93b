"""Steps as they are traced: what of the text of a state each has changed."""

from __future__ import annotations

from difflib import SequenceMatcher

from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.search.trace import Applied
from tilesmith.scheduler.strategies.text import definition_lines, group_lines


def changed(
    rule: str, where: str, arguments: str, before: tuple[Pipeline, Schedule], after: tuple[Pipeline, Schedule]
) -> Applied:
    """The step from one pipeline with its schedule to another."""
    same = before[0] is after[0]
    kept = {g: g for g in before[1].groups}.keys() & {g: g for g in after[1].groups}.keys()
    lines = [
        [
            *(() if same else definition_lines(pipeline)),
            *(line for g in schedule.groups if g not in kept for line in group_lines(g)),
        ]
        for pipeline, schedule in (before, after)
    ]
    return Applied(rule, where, arguments, *_differing(*lines))


def rewriting(rule: str, where: str, before: Pipeline, after: Pipeline) -> Applied:
    """The step of a pass, from one pipeline to another."""
    return Applied(rule, where, "", *_differing(list(definition_lines(before)), list(definition_lines(after))))


def _differing(before: list[str], after: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    removed: list[str] = []
    added: list[str] = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            removed += before[a:b]
            added += after[c:d]
    return tuple(removed), tuple(added)
