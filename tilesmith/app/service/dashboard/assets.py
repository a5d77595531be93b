"""Assets of pages: style sheets, scripts and pictures, of this package or of installed ones, by name.

An address holds the hash of the content, so that browsers keep it for good. What an installed package lacks has no
address; the page says so and works without.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path, PurePosixPath

from tilesmith.app.service.dashboard.highlight import style_sheet

MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
}

Source = Callable[[], bytes | None]


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as browsers get it."""

    name: str
    content: bytes
    digest: str

    @property
    def href(self) -> str:
        return f"/static/{self.digest}/{self.name}"

    @property
    def media_type(self) -> str:
        return MEDIA_TYPES[PurePosixPath(self.name).suffix]


def own(name: str) -> Source:
    """A file of this package."""
    return (files("tilesmith.app.service.dashboard") / "static" / name).read_bytes


def made(name: str) -> Source:
    """A file that is made when the package is built; None where that was done without."""

    def read() -> bytes | None:
        try:
            return own(name)()
        except FileNotFoundError:
            return None

    return read


def vendor(package: str, path: str) -> Source:
    """A file that the installed distribution `package` brings, by its path as the distribution records it; None where
    it is not there."""

    def read() -> bytes | None:
        try:
            return Path(str(distribution(package).locate_file(path))).read_bytes()
        except (PackageNotFoundError, FileNotFoundError):
            return None

    return read


ASSETS: dict[str, Source] = {
    "style.css": own("style.css"),
    "schedule.css": own("schedule.css"),
    "code.css": lambda: style_sheet().encode(),
    "favicon.svg": own("favicon.svg"),
    "live.js": own("live.js"),
    "playground.js": own("playground.js"),
    "editor.js": made("editor.js"),
}
"""Every asset by its name in addresses; those of installed packages are called `vendor/...`."""


@cache
def find(name: str) -> Asset | None:
    """The asset, read once; None where the package that brings it is not installed. KeyError: no such name."""
    content = ASSETS[name]()
    return None if content is None else Asset(name, content, hashlib.sha256(content).hexdigest()[:16])


def href(name: str) -> str | None:
    """The address of an asset; None where the package that brings it is not installed."""
    found = find(name)
    return found.href if found is not None else None
