"""Forms of documents that primitives share: names, loops, sizes; unknown keys are refused."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

NAME = r"[A-Za-z_][A-Za-z0-9_]{0,63}"
LOOP = rf"{NAME}\.(inner|outer)"
MAX_STAGES = 100_000
A_LOOP = "a loop such as 'y.inner'"

Identifier = Annotated[str, Field(strict=True, pattern=f"^{NAME}$")]
Loop = Annotated[str, Field(strict=True, pattern=f"^{LOOP}$")]
Size = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]
Flag = Annotated[bool, Field(strict=True)]
Dims = Annotated[tuple[Identifier, ...], Field(max_length=16)]
Loops = Annotated[tuple[Loop, ...], Field(max_length=32)]
Number = Annotated[int, Field(strict=True, ge=0, le=MAX_STAGES)]


class Form(BaseModel):
    """An object of a document."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class VectorForm(Form):
    dim: Identifier
    lanes: Annotated[int, Field(strict=True, ge=2, le=256)]


def absent(word: str | int) -> BeforeValidator:
    """null in a document says `word`."""
    return BeforeValidator(lambda value: word if value is None else value)


Lanes = Annotated[Literal[1, 2, 4, 8, 16, 32, 64, 128, 256] | None, absent(1)]
