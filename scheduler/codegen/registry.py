"""The backends, by the kind of platforms that they generate code for."""

from __future__ import annotations

from platforms import Platform
from scheduler.codegen.base import Backend
from scheduler.codegen.c.backend import CBackend
from scheduler.errors import NoBackend

_BACKENDS: dict[str, Backend] = {}


def register(backend: Backend) -> None:
    """Adds a backend; ValueError where its kind of platforms has one."""
    known = _BACKENDS.setdefault(backend.platform_kind, backend)
    if known is not backend:
        raise ValueError(f"platforms of kind {backend.platform_kind!r} have the backend {known.name!r}")


def backend_for(platform: Platform) -> Backend:
    """The backend for a platform; NoBackend where its kind has none."""
    found = _BACKENDS.get(platform.kind)
    if found is None:
        what = f"platforms of kind {platform.kind!r}, such as {platform.name}"
        raise NoBackend(f"no backend generates code for {what}; kinds: {', '.join(sorted(_BACKENDS))}")
    return found


register(CBackend())
