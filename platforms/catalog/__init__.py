"""The machines we know, by name; and any description, however it comes, as a platform."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import yaml
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

from platforms.detect import host
from platforms.errors import PlatformError, PlatformProblem
from platforms.model import CpuPlatform, Platform, nearest, parse

DOCUMENT_BYTES = 64 * 1024
NESTING = 64
HOST = "host"


@cache
def catalog_names() -> tuple[str, ...]:
    """The names of the machines in the catalog, sorted."""
    return tuple(sorted(f.name.removesuffix(".yaml") for f in _folder().iterdir() if f.name.endswith(".yaml")))


@cache
def get(name: str) -> Platform:
    """The catalog's machine of that name; PlatformError `unknown_platform` where there is none."""
    if name not in catalog_names():
        hint = nearest(name, {*catalog_names(), HOST}) or "known: " + ", ".join((HOST, *catalog_names()))
        problem = PlatformProblem("unknown_platform", "", f"there is no platform '{name[:80]}'", hint)
        raise PlatformError((problem,))
    return load_text((_folder() / f"{name}.yaml").read_bytes())


def load(name_or_document: object) -> Platform:
    """A platform from a catalog name, `host`, a parsed document, or a platform (given back as it is).

    Raises PlatformError with every problem found.
    """
    if isinstance(name_or_document, CpuPlatform):
        return name_or_document
    if isinstance(name_or_document, str):
        if name_or_document == HOST:
            return host()
        return get(name_or_document)
    return parse(name_or_document)


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


def _folder() -> Traversable:
    return files("platforms.catalog")
