"""Documents about documents: what is to be checked, and what is wrong with it."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tilesmith.app.service.schedules.examples import BLUR

Text = str
TEXT_OR_DATA = "as data, or as JSON or YAML text: problems of text have their position"


class ValidationRequest(BaseModel):
    """Documents to check, at least one."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"pipeline": BLUR},
                {"pipeline": "format: 1\nname: blur\n", "platform": "kind: cpu\nname: mine\n"},
            ]
        },
    )

    pipeline: dict[str, Any] | Text | None = Field(default=None, description=f"A pipeline, {TEXT_OR_DATA}")
    platform: dict[str, Any] | Text | None = Field(default=None, description=f"A platform, {TEXT_OR_DATA}")
    strategy: dict[str, Any] | Text | None = Field(default=None, description=f"A strategy, {TEXT_OR_DATA}")

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.pipeline is None and self.platform is None and self.strategy is None:
            raise ValueError("give a pipeline, a platform or a strategy")
        return self


class TextPosition(BaseModel):
    """A place in a text: both count from 1, the column in characters."""

    line: int
    column: int


class DocumentProblem(BaseModel):
    """One thing that is wrong with a document."""

    code: str
    pointer: str = Field(description="JSON Pointer into the document")
    message: str
    hint: str | None = Field(default=None, description="What to do about it")
    column: int | None = Field(default=None, description="Counted from 1, inside the expression at the pointer")
    position: TextPosition | None = Field(
        default=None, description="In the text, of a document that was text of up to `yaml_bytes`"
    )


class CheckedDocument(BaseModel):
    """A document that was looked at: itself in canonical form, or its problems."""

    valid: bool
    problems: list[DocumentProblem] = Field(default=[], description="In the order of the document")
    problems_left_off: int | None = Field(default=None, description="Problems beyond those in `problems`")
    name: str | None = Field(default=None, description="Of a valid one")
    id: str | None = Field(default=None, description="Of a valid pipeline or strategy: its content hash")
    warnings: list[str] = Field(
        default=[], description="Of a valid pipeline: inputs that are read beyond their estimates, with the index"
    )
    document: dict[str, Any] | None = Field(
        default=None, description="A valid one in canonical form, as other routes take it"
    )


class Validation(BaseModel):
    """The documents of the request, each looked at for itself; `valid` if all are."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "valid": False,
                    "pipeline": {
                        "valid": False,
                        "problems": [
                            {
                                "code": "unknown_name",
                                "pointer": "/stages/0/value",
                                "message": "nothing is called inptu",
                                "hint": "did you mean input?",
                                "column": 1,
                                "position": {"line": 6, "column": 36},
                            }
                        ],
                    },
                }
            ]
        }
    )

    valid: bool
    pipeline: CheckedDocument | None = None
    platform: CheckedDocument | None = None
    strategy: CheckedDocument | None = None
