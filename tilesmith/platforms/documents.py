"""Documents of machines: platforms of every kind as JSON or YAML, and back.

A new kind is a class of `PlatformDocument` that satisfies `Platform`, and a line in KINDS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, get_args

import yaml
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

from tilesmith.platforms.base import Platform, PlatformDocument, nearest
from tilesmith.platforms.cpu.model import CpuPlatform
from tilesmith.platforms.errors import PlatformError, PlatformProblem
from tilesmith.platforms.opencl.model import OpenClPlatform

DOCUMENT_BYTES = 64 * 1024
NESTING = 64

AnyPlatform = Annotated[CpuPlatform | OpenClPlatform, Field(discriminator="kind")]
KINDS: dict[str, type[PlatformDocument]] = {"cpu": CpuPlatform, "opencl": OpenClPlatform}
_ANY: TypeAdapter[CpuPlatform | OpenClPlatform] = TypeAdapter(AnyPlatform)


def parse(document: object) -> Platform:
    """The platform that `document` (parsed JSON or YAML) describes; raises PlatformError with every problem."""
    if not isinstance(document, Mapping):
        raise PlatformError((PlatformProblem("bad_type", "", "a platform is an object with keys"),))
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        code, message = ("missing_key", "the key is missing") if kind is None else ("unknown_kind", "no such kind")
        raise PlatformError((PlatformProblem(code, "/kind", message, "kinds: " + ", ".join(KINDS)),))
    try:
        return _ANY.validate_python(document)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        raise PlatformError(
            tuple(_problem(kind, d) for d in details if not _follows_from_another(d, details))
        ) from None


def to_document(platform: Platform) -> dict[str, Any]:
    """The description as plain data: parse(to_document(p)) == p."""
    return platform.model_dump(mode="json", exclude_none=True)


def json_schema(references: str) -> dict[str, Any]:
    """The JSON Schema of a document of any kind, whose parts `references` (with `{model}` in it) points to."""
    return _ANY.json_schema(ref_template=references)


def load_text(text: str | bytes) -> Platform:
    """A platform from JSON or YAML text; raises PlatformError, `limit_exceeded` beyond DOCUMENT_BYTES."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(raw) > DOCUMENT_BYTES:
        raise _refused("limit_exceeded", f"a platform has at most {DOCUMENT_BYTES} bytes, this has {len(raw)}")
    return parse(_yaml(raw))


def _yaml(raw: bytes) -> Any:
    """Parsed YAML (JSON is a part of it), without aliases: nothing can be larger than its text. Nothing is nested
    deeply either: the parser's time goes with the square of that."""
    try:
        depth = 0
        for event in yaml.parse(raw, Loader=yaml.SafeLoader):
            if isinstance(event, AliasEvent):
                raise _refused("bad_syntax", "YAML aliases are not allowed")
            depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
            if depth > NESTING:
                raise _refused("limit_exceeded", f"lists and objects are nested more than {NESTING} deep")
        return yaml.safe_load(raw)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise _refused("bad_syntax", f"neither JSON nor YAML: {' '.join(str(error).split())[:200]}") from None


def _refused(code: str, message: str) -> PlatformError:
    return PlatformError((PlatformProblem(code, "", message),))


def _follows_from_another(detail: ErrorDetails, details: list[ErrorDetails]) -> bool:
    """True where a tuple is called too short only because its items are wrong themselves."""
    at = detail["loc"]
    return detail["type"] == "too_short" and any(len(d["loc"]) > len(at) and d["loc"][: len(at)] == at for d in details)


def _problem(kind: str, detail: ErrorDetails) -> PlatformProblem:
    """Pydantic's words for one error, in ours. The first part of pydantic's place is the kind."""
    context = detail.get("ctx", {})
    path = [str(part) for part in detail["loc"][1:]]
    path.extend(str(part) for part in context.get("at", ()))
    hint = context.get("hint")
    match detail["type"]:
        case "extra_forbidden":
            code, message = "unknown_key", "there is no such key"
            hint = nearest(path[-1], _keys_at(KINDS[kind], path[:-1]))
        case "missing":
            code, message = "missing_key", "the key is missing"
        case own if "hint" in context or "at" in context or own in _OWN_CODES:
            code, message = own, detail["msg"]
        case _:
            code, message = "bad_value", detail["msg"][:1].lower() + detail["msg"][1:]
    pointer = "".join("/" + part[:80].replace("~", "~0").replace("/", "~1") for part in path)
    return PlatformProblem(code, pointer, message, hint)


_OWN_CODES = frozenset({"not_a_power_of_two", "cache_smaller_than_a_set"})


def _keys_at(model: type[BaseModel], path: list[str]) -> set[str]:
    """The keys of the object at `path` of a document; places in lists are parts of the path."""
    for part in path:
        field = model.model_fields.get(part)
        if field is not None:
            model = next(_models(field.annotation), model)
    return set(model.model_fields)


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    """The models in a type: of `tuple[Cache, ...] | None`, Cache."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
