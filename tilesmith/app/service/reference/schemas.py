"""The JSON Schemas of the documents that people write: pipelines, platforms, schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, Field

from tilesmith.platforms import documents as platforms
from tilesmith.scheduler.frontends.document.schema import PipelineDocument
from tilesmith.scheduler.ir.schedule import document as schedules

DIALECT = "https://json-schema.org/draft/2020-12/schema"
BASE = "/v1/schemas"


class SchemaLink(BaseModel):
    """The address of a JSON Schema."""

    name: str
    title: str
    href: str = Field(description="Its `$id`")


class SchemaList(BaseModel):
    """The JSON Schemas that there are."""

    items: list[SchemaLink]


def _of_pipelines() -> dict[str, Any]:
    return PipelineDocument.model_json_schema()


def _of_platforms() -> dict[str, Any]:
    return platforms.json_schema("#/$defs/{model}")


_MAKERS: Mapping[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "pipeline": ("A pipeline, format 1", _of_pipelines),
    "platform": ("A platform of any kind", _of_platforms),
    "schedule": ("A schedule, format 1", schedules.json_schema),
}


def listed() -> SchemaList:
    """All of them."""
    return SchemaList(items=[SchemaLink(name=n, title=title, href=f"{BASE}/{n}") for n, (title, _) in _MAKERS.items()])


def schema(name: str) -> dict[str, Any] | None:
    """One of them; None where there is none of that name. Which words are stages' no schema can tell: a document that
    fits one may still have problems, as /v1/validate finds them."""
    if name not in _MAKERS:
        return None
    title, make = _MAKERS[name]
    return {"$schema": DIALECT, "$id": f"{BASE}/{name}", **make(), "title": title}
