"""The machines we know, by name; and any description, however it comes, as a platform."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from tilesmith.platforms.base import Platform, nearest
from tilesmith.platforms.cpu.detect import host
from tilesmith.platforms.cpu.model import CpuPlatform
from tilesmith.platforms.documents import load_text, parse
from tilesmith.platforms.errors import PlatformError, PlatformProblem
from tilesmith.platforms.opencl.model import OpenClPlatform

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
    if isinstance(name_or_document, CpuPlatform | OpenClPlatform):
        return name_or_document
    if isinstance(name_or_document, str):
        if name_or_document == HOST:
            return host()
        return get(name_or_document)
    return parse(name_or_document)


def _folder() -> Traversable:
    return files("tilesmith.platforms.catalog")
