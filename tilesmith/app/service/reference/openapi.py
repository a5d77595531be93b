"""The OpenAPI document: FastAPI's, with the schemas of bodies that endpoints read themselves."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from tilesmith.app.service import errors
from tilesmith.app.service.bodies import DESCRIBED
from tilesmith.app.service.problems import Problem
from tilesmith.platforms.documents import json_schema

TAGS = [
    {"name": "projects", "description": "Results of commits, and what they are compared with"},
    {"name": "schedules", "description": "Pipelines in, schedules and C out"},
    {"name": "jobs", "description": "Compiling, running, measuring and tuning what was scheduled"},
    {"name": "measurements", "description": "What jobs measured, kept with the schedules"},
    {"name": "pipelines", "description": "Pipelines, shipped and stored"},
    {"name": "platforms", "description": "Descriptions of machines: the host, the catalog, stored ones"},
    {"name": "strategies", "description": "Strategies, shipped and stored"},
    {"name": "validation", "description": "Documents checked, and nothing kept"},
    {"name": "imports", "description": "Pipelines in formats of others"},
    {"name": "webhooks", "description": "Addresses that are told of regressions"},
    {"name": "tokens", "description": "Who may ask"},
    {"name": "service", "description": "The service itself"},
    {"name": "reference", "description": "This description, and the JSON Schemas of documents"},
]

PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem document",
        "content": {errors.PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}
REFERENCES = "#/components/schemas/{model}"


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of the application, made once."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            tags=app.openapi_tags,
        )
        found["externalDocs"] = {"url": "/v1/schemas", "description": "The JSON Schemas of documents"}
        schemas = found.setdefault("components", {}).setdefault("schemas", {})
        bodies = {
            name: model.model_json_schema(ref_template=REFERENCES)
            for name, model in ({"Problem": Problem} | DESCRIBED).items()
        }
        for name, schema in (bodies | {"PlatformDocument": json_schema(REFERENCES)}).items():
            schemas |= schema.pop("$defs", {})
            schemas[name] = schema
        # its items are read one by one, so that what is wrong with one is no fault of the others
        schemas["BatchRequest"]["properties"]["requests"]["items"] = {
            "$ref": REFERENCES.format(model="ScheduleRequest")
        }
        for path in found["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)  # FastAPI's own shape, which is never sent
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        app.openapi_schema = found
    return app.openapi_schema
