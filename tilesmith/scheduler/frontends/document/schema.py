"""The shape of a pipeline document, format 1. Names, types and expressions are checked after it, in `checker`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
TypeName = Literal[
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"
]
BoundaryKind = Literal["repeat_edge", "repeat_image", "mirror_image", "mirror_interior", "constant"]
# A plain number is the expression that it is written as.
Expression = str | int | Annotated[float, Field(allow_inf_nan=False)]
Number = bool | int | Annotated[float, Field(allow_inf_nan=False)]
Pair = Annotated[list[Expression], Field(min_length=2, max_length=2)]
Span = Annotated[list[int], Field(min_length=2, max_length=2)]


def _not_bool(value: object) -> object:
    """JSON's true is no 1."""
    return str(value) if isinstance(value, bool) else value


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ParamDocument(_Document):
    """A runtime scalar."""

    name: Identifier
    type: TypeName
    default: Number | None = None
    min: Number | None = None
    max: Number | None = None


class BoundaryDocument(_Document):
    """The boundary of an input or stage, its values beyond its domain: `value` with kind constant, `domain` with stages
    only."""

    kind: BoundaryKind
    value: Expression | None = None
    domain: list[Pair] | None = None


class InputDocument(_Document):
    """An image; one with `values`, the first dim varying fastest, and the `region` that they are of, is a table, which
    need not be passed."""

    name: Identifier
    type: TypeName
    dims: list[Identifier]
    boundary: BoundaryDocument | None = None
    storage: list[Identifier] | None = None
    region: list[Span] | None = None
    values: list[Number] | None = None


class UpdateDocument(_Document):
    """An update definition; the last variable of `domain` is the outermost loop."""

    domain: dict[Identifier, Pair]
    where: Expression | None = None
    at: list[Expression]
    value: Expression | list[Expression]


class StageDocument(_Document):
    """A function on the integer grid."""

    name: Identifier
    dims: list[Identifier]
    value: Expression | list[Expression]
    type: TypeName | list[TypeName] | None = None
    updates: list[UpdateDocument] | None = None
    boundary: BoundaryDocument | None = None
    storage: list[Identifier] | None = None


class PipelineDocument(_Document):
    """A pipeline, format 1."""

    format: Annotated[Literal[1], BeforeValidator(_not_bool)]
    name: Identifier
    doc: str = ""
    params: list[ParamDocument] = []
    inputs: list[InputDocument]
    stages: list[StageDocument]
    outputs: list[Identifier]
    estimates: dict[Identifier, list[Span]]
