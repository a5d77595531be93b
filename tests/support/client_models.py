"""The models of the clients' answers, from the OpenAPI document: what `tilesmith/app/client/models.py` has to be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

HEAD = '''"""The answers of the service as typed dictionaries.

Made of the OpenAPI document by `pytest tests/client/test_models.py --renew-golden`; that test holds them to it.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

'''
ALIASES = {"Job": ("BuildJob", "RunJob", "TuneJob")}
TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def models(document: Mapping[str, Any]) -> str:
    """The text of the module: every schema that an answer has, with those that it is made of."""
    schemas = document["components"]["schemas"]
    wanted = sorted(_reachable(schemas, set(_answers(document))))
    parts = [_model(name, schemas[name]) for name in wanted]
    aliases = [f"{name} = {' | '.join(parts)}" for name, parts in ALIASES.items()]
    return HEAD + "\n\n".join([*parts, *aliases]) + "\n"


def _answers(document: Mapping[str, Any]) -> Iterator[str]:
    for path in document["paths"].values():
        for operation in path.values():
            for status, answer in operation["responses"].items():
                for content in answer.get("content", {}).values():
                    if status.startswith("2") or status == "default":
                        yield from _names(content)


def _names(schema: object) -> Iterator[str]:
    """The schemas that a schema refers to."""
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            yield schema["$ref"].rpartition("/")[2]
        for key, value in schema.items():
            if key not in ("discriminator", "examples", "default"):
                yield from _names(value)
    elif isinstance(schema, list):
        for part in schema:
            yield from _names(part)


DOCUMENTS = ("PipelineDocument", "CpuPlatform", "OpenClPlatform")
"""Documents of users: data to a client, with schemas of their own."""


def _reachable(schemas: Mapping[str, Any], names: set[str]) -> set[str]:
    found: set[str] = set()
    while names:
        name = names.pop()
        if name not in found and name not in DOCUMENTS:
            found.add(name)
            names |= set(_names(schemas[name]))
    return found


def _model(name: str, schema: Mapping[str, Any]) -> str:
    required = set(schema.get("required", ()))
    lines = [f"class {name}(TypedDict):", f'    """{_one_line(schema.get("description", name))}"""', ""]
    for key, value in schema.get("properties", {}).items():
        of = _type(value)
        lines.append(f"    {key}: {of if key in required else f'NotRequired[{of}]'}")
    return "\n".join(lines if schema.get("properties") else lines[:-1]) + "\n"


def _one_line(text: str) -> str:
    return re.split(r"\n\n", text)[0].replace("\n", " ").split(". ")[0].rstrip(".") + "."


def _type(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"$ref": reference}:
            name = reference.rpartition("/")[2]
            return "dict[str, Any]" if name in DOCUMENTS else name
        case {"anyOf": parts} | {"oneOf": parts}:
            return " | ".join(dict.fromkeys(_type(p) for p in parts))
        case {"const": value}:
            return f"Literal[{value!r}]"
        case {"type": "string", "enum": values} if len(values) < 10:
            return f"Literal[{', '.join(map(repr, values))}]"
        case {"type": "array"}:
            return f"list[{_type(schema.get('items', {})) if 'prefixItems' not in schema else _pairs(schema)}]"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"dict[str, {_type(values)}]"
        case {"type": "object"}:
            return "dict[str, Any]"
        case {"type": kind}:
            return TYPES[kind]
        case _:
            return "Any"


def _pairs(schema: Mapping[str, Any]) -> str:
    return " | ".join(dict.fromkeys(_type(p) for p in schema["prefixItems"]))
