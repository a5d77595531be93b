"""Scheduling primitive: one decision that a schedule records, and all that is known of it.

A primitive is one file: what it does (drawn in its docstring: the loops before and after it), its form in documents,
its rule of legality, its words in differences and loop nests, and the form in which a caller fixes it. It is
registered once (`registry.register`); documents, differences, loop nests, legality and constraints ask the registry
and name no primitive of their own. What a primitive does not say has a default here.

Records have a field for each primitive of this package. The values of others are among their `attributes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage, Update
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, UpdateLoops, dim_of, inner

Record: TypeAlias = Schedule | Group | Placement
R = TypeVar("R", Schedule, Group, Placement)
V = TypeVar("V")


class Site(Protocol):
    """The place that a rule of legality looks at: `stage` as the output of `group`, or as the stage of `placement`, one
    of its other members. What is behind it are the analyses of the pipeline."""

    @property
    def pipeline(self) -> Pipeline: ...
    @property
    def group(self) -> Group: ...
    @property
    def stage(self) -> Stage: ...
    @property
    def placement(self) -> Placement | None: ...
    @property
    def output(self) -> Stage:
        """The output of the group."""

    def refuse(self, rule: str) -> IllegalSchedule:
        """The error to raise: names the stage, the group and the rule."""

    def readers(self) -> tuple[str, ...]:
        """The stages of the group that read the stage, itself or through stages that are inline."""

    def pure_dims(self, stage: Stage) -> frozenset[str]:
        """The dims that every update of a stage keeps in place."""

    def default_order(self, update: Update) -> tuple[str, ...]:
        """The loops of an update of the stage as it is defined."""

    def may_reorder(self, update: Update, order: tuple[str, ...]) -> bool:
        """True if the update computes the same with its loops in this order."""

    def shared_blocks(self, loops: tuple[UpdateLoops, ...]) -> tuple[str | None, int]:
        """The dim of blocks of the stage that threads share, and the number of updates that each block has with its
        values; None, and 0, where they share none."""

    def independent(self, update: Update, order: tuple[str, ...], loop: str, together: int | None = None) -> bool:
        """True if the iterations of a loop of the update, or so many neighbours together, are proved to be
        independent."""

    def along_recurrence(self, update: Update, loops: UpdateLoops) -> bool:
        """True if vectors of the update run along a recurrence, whose points are joined in registers."""


@dataclass(frozen=True, slots=True)
class FixedSite:
    """A stage of which decisions are fixed, by their keys, with the dims that its updates keep in place."""

    name: str
    stage: Stage
    pure: frozenset[str]
    fixed: Mapping[str, Any]


class Primitive(Generic[V]):
    """A decision. `key` names it in records and documents, `records` are those that have it, and `default` is what
    holds where nothing is said: documents have it all the same where `always`. `form` is the type of its document, for
    pydantic; a `required` one has to be there.

    A caller may fix it where it has a `fixed_form`, whose value `open` says nothing; `expected` describes a text of
    that form. It `stands_alone` where a group or a placement takes it whatever else is decided.
    """

    key: str
    records: tuple[type[Schedule] | type[Group] | type[Placement], ...] = (Group,)
    default: V
    always = False
    required = False
    form: object
    fixed_form: object = None
    open: object = None
    expected = "a name"
    stands_alone = False

    # Records and documents

    def of(self, record: Record) -> V:
        """Its value in a record."""
        if self.key in type(record).__dataclass_fields__:
            value: V = getattr(record, self.key)
            return value
        return next((value for key, value in record.attributes if key == self.key), self.default)  # type: ignore[return-value]

    def put(self, record: R, value: V) -> R:
        """The record with another value of it."""
        if self.key in type(record).__dataclass_fields__:
            changes: dict[str, Any] = {self.key: value}
            return replace(record, **changes)
        others = {key: value for key, value in record.attributes if key != self.key}
        mine = {} if value == self.default else {self.key: value}
        return replace(record, attributes=tuple(sorted({**others, **mine}.items())))

    def read(self, parsed: Any) -> V:
        """The value of what its form has parsed."""
        value: V = parsed
        return value

    def write(self, value: V) -> Any:
        """The value as plain data for JSON."""
        return list(value) if isinstance(value, tuple) else value

    # Legality

    def check(self, value: V, at: Site) -> None:
        """Raises what `at.refuse` makes of the rule that the value breaks."""

    # Words

    def difference(self, value: V) -> str:
        """Words that a stage has after its name where its value is another one than in a second schedule; of a
        Schedule, a sentence without a name. Empty: others say it."""
        return f"{self.key} {value}"

    def notes(self, value: V) -> tuple[str, ...]:
        """Comments of the loop nest: at its top of a Schedule, beside its name of a Group."""
        return ()

    def loop_words(self, value: V, loop: str) -> tuple[str, ...]:
        """Words before a loop, of a group (`x.inner`) or of a member alone (`x`)."""
        return ()

    def loop_size(self, value: V, loop: str) -> str:
        """Words behind a loop of a group."""
        return ""

    def assignment_note(self, value: V) -> str:
        """A comment beside the place where the output of a group is computed."""
        return ""

    def allocation(self, placement: Placement, line: str) -> str:
        """The line that says where a stage is kept, with what there is to add."""
        return line

    # Fixed decisions

    def read_fixed(self, parsed: Any) -> Any:
        """The hashable value of what the form of a fixed decision has parsed."""
        return parsed

    def write_fixed(self, fixed: Any) -> Any:
        """A fixed decision as plain data for JSON."""
        return list(fixed) if isinstance(fixed, tuple) else fixed

    def of_fixed(self, fixed: Any) -> V:
        """The value that a fixed decision asks for."""
        value: V = fixed
        return value

    def fixed_names(self, fixed: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """The dims and loops of the stage that a fixed decision names, each with its place behind the key."""
        return iter(())

    def contradictions(self, fixed: Any, site: FixedSite) -> Iterator[tuple[tuple[str, ...], str]]:
        """Fixed decisions of one stage that no schedule has together, each with its place behind the key."""
        return iter(())

    def refusal(self, name: str, fixed: Any, record: Group | Placement) -> str | None:
        """None where the group of the output `name`, or its placement, has what is fixed; the difference otherwise."""
        value = self.of(record)
        return None if value == self.of_fixed(fixed) else f"'{name}' has {self.key} {value}, not {fixed}"


def known_extent(at: Site, dim: str) -> int | None:
    """Iterations of the intra-tile loop of a dim: its tile, or the estimate; 1 where nothing is known."""
    tile = at.group.tile(dim)
    if tile is not None and tile.size is not None:
        return tile.size
    estimate = at.pipeline.estimate(at.group.output)
    return 1 if estimate is None else estimate[at.output.dims.index(dim)][1]


def is_unrolled(group: Group, loop: str) -> bool:
    """True if a loop of the group is unrolled."""
    return loop == inner(dim_of(loop)) and dim_of(loop) in group.unroll


def in_order(wanted: tuple[str, ...], found: tuple[str, ...]) -> bool:
    """True if all of `wanted` are in `found`, in this order."""
    rest = iter(found)
    return all(name in rest for name in wanted)


def twice(listed: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The contradiction of a list that has a name twice."""
    if len(set(listed)) != len(listed):
        yield (), f"one of {', '.join(listed)} is there twice"
