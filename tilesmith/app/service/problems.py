"""Problem documents (RFC 9457), in which every error of every route is answered."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from tilesmith.app.service.errors import CODES


class ProblemEntry(BaseModel):
    """One thing that is wrong with a request or with a document in it."""

    code: str
    pointer: str = Field(description="JSON Pointer into the request body")
    column: int | None = Field(default=None, description="Counted from 1, inside the expression at the pointer")
    message: str
    hint: str | None = Field(default=None, description="What to do about it")


class Problem(BaseModel):
    """RFC 9457. `errors` lists every problem of a document, with JSON Pointers into the request body."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "type": "/v1/errors#bad_document",
                    "title": "The document is not valid",
                    "status": 422,
                    "code": "bad_document",
                    "detail": "1 problem was found",
                    "instance": "/v1/schedules",
                    "request_id": "5f0c8f3b1d0f4d1c9a44c4f6f7a4f1de",
                    "errors": [
                        {
                            "code": "unknown_name",
                            "pointer": "/pipeline/stages/0/value",
                            "column": 7,
                            "message": "nothing is called inptu",
                            "hint": "did you mean input?",
                        }
                    ],
                }
            ]
        },
    )

    type: str = Field(json_schema_extra={"format": "uri-reference"})
    title: str
    status: int
    code: str = Field(json_schema_extra={"enum": list(CODES)})
    detail: str
    instance: str | None = None
    request_id: str | None = None
    errors: list[ProblemEntry] | None = None
    errors_left_off: int | None = Field(default=None, description="Problems beyond those in `errors`")
    output: str | None = Field(default=None, description="What the compiler, or the compiled code, printed")
    checks: dict[str, str] | None = Field(default=None, description="Of `not_ready`: every check")
