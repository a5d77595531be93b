"""Our schedule on live Funcs of Halide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilesmith.scheduler.codegen.halide.directives import (
    Argument,
    DimVar,
    Directive,
    DomainVar,
    FuncOf,
    Guard,
    NewVar,
    Shift,
    directives,
)
from tilesmith.scheduler.frontends.halide.imported import Imported
from tilesmith.scheduler.frontends.halide.live import Live, as_pipeline, from_halide, funcs_of, import_halide
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of applying a schedule to Funcs. `refused` are calls that Halide did not take, with what it said;
    `unsaid` are parts of the schedule that Halide has no words for. Neither changes what is computed."""

    calls: int
    refused: tuple[str, ...]
    unsaid: tuple[str, ...]


def apply(schedule: Schedule, outputs: Live, imported: Imported | None = None) -> Applied:
    """Schedules the Funcs that compute `outputs` as `schedule` says, which is one of the pipeline that they were
    imported as. Their values stay what they are.

    The Funcs must not have schedules: ValueError names one that has. Raises as `from_halide`, and IllegalSchedule.
    """
    hl = import_halide()
    whole = as_pipeline(outputs)
    if imported is None:
        imported = from_halide(whole)
    plan = rewrite(imported.pipeline, schedule)
    check(plan)
    funcs = funcs_of(whole)
    for name in imported.draft.scheduled:
        raise ValueError(f"the Func {name!r} has a schedule already")
    inline = {s: tuple(names) for s, names in imported.draft.reductions.items()}
    said = directives(plan, inline)
    live = _Live(hl, imported, funcs)
    done, refused = 0, []
    for call in said.calls:
        if call.method == "fold_storage":  # Halide finds by itself where it can fold, and does not fail where not
            continue
        try:
            done += live.call(call)
        except hl.HalideError as error:
            refused.append(f"{call.stage}: {call.method}: {' '.join(str(error).split())}")
    return Applied(done, tuple(refused), said.unsaid)


class _Live:
    """The Funcs by the names of our stages, and the variables that our names stand for."""

    def __init__(self, hl: Live, imported: Imported, funcs: Mapping[str, Live]) -> None:
        self.hl, self.draft = hl, imported.draft
        self.funcs: dict[str, Live] = {stage: funcs[name] for stage, name in imported.funcs.items()}
        self.funcs |= {name: funcs[name] for names in self.draft.reductions.values() for name in names}
        self.loops = {
            (stage, k): [v.name() for v in f.rvars(k)]
            for stage, f in self.funcs.items()
            for k in range(f.num_update_definitions())
        }
        self.dims = dict(self.draft.dims)
        for stage, names in self.draft.reductions.items():
            self.dims |= dict.fromkeys(names, self.dims.get(stage, {}))
        self.made: dict[tuple[str, bool], Live] = {}

    def call(self, call: Directive) -> int:
        """1 where the call was made; 0 where it is on a stage that is no Func (a part of a large expression)."""
        named = [a.stage for a in call.arguments if isinstance(a, FuncOf)]
        if any(stage not in self.funcs for stage in (call.stage, *named)):
            return 0
        target = self.funcs[call.stage]
        if call.update is not None:
            target = target.update(self._number(call.stage, call.update))
        arguments = [self.argument(a) for a in call.arguments]
        made = getattr(target, call.method)(*arguments)
        if call.makes is not None:
            self.funcs[call.makes] = made
            self.dims[call.makes] = self.dims[call.stage]
        return 1

    def _number(self, stage: str, update: int) -> int:
        """The number that an update has in Halide, where those over nothing are counted, too."""
        numbers = self.draft.updates.get(stage)
        return numbers[update] if numbers else update

    def argument(self, a: Argument) -> Live:
        match a:
            case DimVar(name, stage):
                return self.hl.Var(self.dims.get(stage, {}).get(name, name))
            case NewVar(name, reduction):
                # A variable of its own: the user's may have the same name.
                if (name, reduction) not in self.made:
                    kind = self.hl.RVar if reduction else self.hl.Var
                    self.made[name, reduction] = kind(f"tilesmith_{name}")
                return self.made[name, reduction]
            case DomainVar(stage, update, index):
                return self.hl.RVar(self.loops[stage, self._number(stage, update)][index])
            case FuncOf(stage):
                return self.funcs[stage]
            case Guard():
                return self.hl.TailStrategy.GuardWithIf
            case Shift():
                return self.hl.TailStrategy.ShiftInwards
            case int():
                return a
