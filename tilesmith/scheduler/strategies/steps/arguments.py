"""Types of the arguments of rules: names and numbers within limits, as documents give them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

NAME = r"[A-Za-z_][A-Za-z0-9_]{0,63}"

Name = Annotated[str, Field(strict=True, pattern=f"^{NAME}$")]
Names = Annotated[tuple[Name, ...], Field(max_length=16)]
Loop = Annotated[str, Field(strict=True, pattern=rf"^{NAME}\.(inner|outer)$")]
LoopOrDim = Annotated[str, Field(strict=True, pattern=rf"^{NAME}(\.(inner|outer))?$")]
Loops = Annotated[tuple[LoopOrDim, ...], Field(min_length=1, max_length=32)]
Size = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]
Sizes = Annotated[dict[Name, Size | None], Field(min_length=1, max_length=16)]
Lanes = Literal[1, 2, 4, 8, 16, 32, 64, 128, 256]
Index = Annotated[int, Field(strict=True, ge=0, le=100_000)]
Parts = Annotated[int, Field(strict=True, ge=2, le=4096)]
Neighbours = Annotated[int, Field(strict=True, ge=1, le=64)]
Bytes = Annotated[int, Field(strict=True, ge=0, le=1 << 20)]
Flag = Annotated[bool, Field(strict=True)]
