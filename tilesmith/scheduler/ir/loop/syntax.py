"""Assembly formats of the loop IR: one line for each class says how it is printed and, read backwards, how it is
parsed (as MLIR's `assemblyFormat`).

In a format, `{field}` is a field, by what its type is; `{field:kind}` by another kind; `{field?}` is the word of a flag
that is set; `[[ ... ]]` is left out where its first field has its default; the `{result:kind}` of an operation is that
of its definition. Everything else stands for itself.

Operators stand between their operands (`%a + %b`), or are the words of `UNARY`. Values are `%name`, or literals with
their type (`1.5:f32`), buffers `@name`, pointers and symbols of indices bare names; `f32x8` is the type of a vector,
`b8x8m32` that of a mask of elements of 32 bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TypeAlias, get_args

from tilesmith.scheduler.ir.loop import computations, ops, program, signature, values
from tilesmith.scheduler.ir.schedule import schedule

MACHINE = ("line_bytes", "register_bytes", "carried_vectors", "permuted_bytes", "crowded_bytes")
"""Figures of the machine in the head of a program, by the names of its fields."""

FORMATS: dict[type, str] = {
    # element by element
    ops.Select: "select {condition}, {a}, {b}",
    ops.Call: "call {function:name}({args})",
    ops.FusedProduct: "fused_product {a}, {b}, {c}",
    # conversions
    ops.Cast: "cast {a} {saturate?}",
    ops.Truncate: "truncate {a}",
    ops.Narrow: "narrow {a}, {b} {saturate?} {by_parts?}",
    ops.WidenPart: "widen_part {a} part {part}",
    ops.WidenLanes: "widen_lanes {a} [{picks}]",
    ops.ResizeMask: "resize_mask {a}",
    ops.Broadcast: "broadcast {a}",
    ops.Copy: "copy {a} {held?}",
    # across lanes
    ops.Shuffle: "shuffle {a}, {b} [{picks}]",
    ops.DotPairs: "dot_pairs {a}, {b}",
    ops.SumNeighbours: "sum_neighbours {a}, {b}",
    # indices
    ops.FromIndex: "from_index {at}",
    ops.ToIndex: "to_index {a}",
    ops.Lanes: "lanes {at} [{pattern}]",
    # memory
    ops.Load: "load {row}[{at}]",
    ops.LoadPair: "load_pair {row}[{at}]",
    ops.ClampedLoad: "clamped_load {row}[{at}] from {first} to {last}",
    ops.Gather: "gather {row}[{offsets}] {narrow?}",
    ops.GatherPairs: "gather_pairs {row}[{offsets}] half {half} {narrow?}",
    ops.GatherFours: "gather_fours {row}[{offsets}] part {part}",
    ops.MonotoneGather: "monotone_gather {row}[{at}] enough {enough} last {last}",
    ops.WindowGather: "window_gather {row}[{at}] enough {enough} last {last}",
    ops.EdgeGather: "edge_gather {row}[{at}] first {first} from {low} to {high}",
    ops.Lookup: "lookup {row}[{at}] whole({whole}) parts {parts}",
    # alignment
    ops.CarriedElements: "carried_elements {row}[{at}] of {element} by {width}",
    ops.VectorsIntoLine: "vectors_into_line {row}[{at}] of {element} by {width}",
    ops.Misalignment: "misalignment {row}[{at}] of {element}",
    # definitions
    program.Define: "{result:new} = {op} : {result:type}",
    program.Accumulator: "{result:new} = accumulator {start} : {result:type}",
    program.RowPointer: "row {result:pointer} = {buffer} + {offset}",
    program.Let: "let {name} = {value}",
    program.MutableIndex: "mutable {name} = {value}",
    program.AssignIndex: "set {name} = {value}",
    program.Assign: "assign {target} = {value}",
    # memory
    program.Store: "store {value} to {buffer} at {row}[{index}] [[within {within}]]",
    program.Scatter: "scatter {value} to {buffer} at {row}[{offsets}] [[within {within}]]",
    program.StreamAligned: "stream_aligned {value} after {before} by {picks} to {buffer} at {row}[{index}] "
    "apart {apart} [[within {within}]]",
    program.StreamLine: "stream_line {value} to {buffer} at {row}[{index}] moved {moved} part {part}",
    program.Fence: "fence",
    program.Prefetch: "prefetch {row}[{index}] {far?} rows {rows} place {place} step {step}",
    program.PrefetchEnds: "prefetch_ends {row}[{first} to {last}]",
    # control
    program.OverflowGuard: "overflow_guard low({low}) high({high}) wide({wide})",
    program.PeelVectors: "peel {first}, {last}, {from_}, {to} = {lo} until {end} lanes {lanes} align {align} "
    "[[given({given})]]",
    program.Loop: "for {var} = {lo} to {hi} step {step} {parallel?} {once?} [[skip {skip}]] [[seen {seen}]] "
    "[[// {comment:text}]] {body}",
    program.PeeledLoop: "peeled {var} = {lo} to {hi} skip {skip} [[// {comment:text}]] {body} middle {middle}",
    program.Apart: "apart {seldom?} {body}",
    program.Ordered: "ordered {body}",
    program.If: "if ({nonnegative:conditions}) [[and {condition}]] {body} [[else {otherwise}]]",
    program.Function: "function {name} symbols({symbols:names}) buffers({buffers}) [[scratch({scratch:layouts})]] "
    "[[// {comment:text}]] {body}",
    program.Invoke: "invoke {function} symbols({symbols}) buffers({buffers}) [[scratch({scratch})]]",
    program.Comment: "// {text:text}",
    program.ClampedIndex: "{name} [[from {first}]] [[to {last}]]",
    # allocation
    program.Extents: "{buffer} order({order}) extents({extents})",
    program.Scratch: "scratch {name}({buffers})",
    program.Bind: "bind {scratch}",
    program.Allocate: "allocate {memory} [[place {place}]]",
    program.Free: "free {buffer}",
    program.CopyOut: "copy_out {output} from {source}",
    # computations that are not expanded yet
    computations.Compute: "compute {stage:text} to({buffers}) box({box}) order({order:names}) [[vector {vector}]] "
    "[[unroll({unroll})]] [[block {block}]] {stream?} [[updates({updates})]] {reads}",
    computations.FusedRow: "fused_row {output:text} to({buffers}) box({box}) order({order:names}) vector {vector} "
    "[[unroll({unroll})]] [[waiting({waiting:names})]] {stream?} anchor {anchor} room {room} stages({stages}) {reads}",
    computations.DimRange: "{dim:name} {first} to {last}",
    computations.UnrolledDim: "{dim:name} by {extent} [[from {start:int}]]",
    computations.BlockedDim: "{dim:name} by {points}",
    computations.RowStage: "{stage:text} moving {moving} [[ring({ring}) at({at})]]",
    computations.RowsAhead: "{stage:text} dim {dim} by {rows}",
    computations.Reads: "reads({buffers}) [[inlined({inlined:texts})]] [[prefetch {prefetch}]] [[ahead({ahead})]]",
    schedule.Vector: "{dim:name} by {lanes}",
    schedule.UpdateLoops: "({loops:names}) [[vector {vector}]] [[parallel {parallel}]]",
    # values
    values.LaneOffset: "{lane} origin {origin} stride {stride} [[ring {ring}]] [[within {within}]]",
    values.Buffer: "buffer {pointer} {stage:text} component {component} : {type} dims({dims:names}) unit {unit} "
    "{where:name} origin({origin}) stride({stride}) ring({ring}) extent({extent}) "
    "[[channels {channels} pixels {pixels}]] [[margin {margin}]] [[room {room}]]",
    # the whole
    signature.Argument: "argument {name:text} as {c_name:name} : {type} dims({dims:names}) storage({storage:names}) "
    "{output?} [[made_by {made_by:text}]]",
    signature.Table: "table {c_name:name} : {type} min({min}) extent({extent}) stride({stride}) "
    "values({values:numbers})",
    signature.Parameter: "param {name:text} as {c_name:name} : {type} [[min {min:number}]] [[max {max:number}]]",
}

PARTS: tuple[type, ...] = (
    computations.DimRange,
    computations.UnrolledDim,
    computations.BlockedDim,
    computations.RowStage,
    computations.RowsAhead,
    computations.Reads,
    schedule.Vector,
    schedule.UpdateLoops,
)
"""Parts of computations, which have formats of their own."""
UNARY: dict[str, ops.UnaryOperator] = {"inv": "~", "neg": "-", "not": "not"}
"""Words of the operators of one operand."""
INFIX: dict[str, type[ops.Binary] | type[ops.Compare] | type[ops.Logical]] = {
    **dict.fromkeys(get_args(ops.BinaryOperator), ops.Binary),
    **dict.fromkeys(get_args(ops.Comparison), ops.Compare),
    **dict.fromkeys(("and", "or"), ops.Logical),
}
"""The operations whose operator stands between their operands."""


@dataclass(frozen=True, slots=True)
class Literal:
    """Text that stands for itself."""

    text: str


@dataclass(frozen=True, slots=True)
class Field:
    """A field, printed by its kind; of a `flag` the word is there where it is set."""

    name: str
    kind: str
    flag: bool = False


@dataclass(frozen=True, slots=True)
class Optional:
    """Parts that are left out where their first field, `field`, has its default."""

    parts: tuple[Part, ...]
    field: str
    default: object


Part: TypeAlias = Literal | Field | Optional

_PIECES = re.compile(r"\[\[|\]\]|\{[^{}]*\}|(?:(?!\[\[|\]\])[^{}])+")


def _parts(kind: type, pieces: list[str]) -> tuple[Part, ...]:
    """The format of a class, taken apart up to the end of a part that may be left out."""
    types = {f.name: str(f.type).removesuffix(" | None") for f in fields(kind)}
    defaults = {f.name: f.default for f in fields(kind)}
    found: list[Part] = []
    while pieces and (piece := pieces.pop(0)) != "]]":
        if piece == "[[":
            inside = _parts(kind, pieces)
            first = next(p.name for p in inside if isinstance(p, Field))
            found.append(Optional(inside, first, defaults[first]))
        elif piece.startswith("{"):
            name, _, of_kind = piece[1:-1].partition(":")
            flag = name.endswith("?")
            name = name.rstrip("?")
            found.append(Field(name, of_kind or types[name], flag))
        else:
            found.append(Literal(piece))
    return tuple(found)


def taken_apart(formats: Mapping[type, str]) -> dict[type, tuple[Part, ...]]:
    """The parts of formats."""
    return {kind: _parts(kind, _PIECES.findall(text)) for kind, text in formats.items()}


SYNTAX = taken_apart(FORMATS)
"""The formats, taken apart."""
