"""The backends by name: those that are shipped, and those that users register."""

from __future__ import annotations

from tilesmith.platforms import Platform
from tilesmith.scheduler.codegen.base import Backend
from tilesmith.scheduler.codegen.c.backend import CBackend, HalideCBackend
from tilesmith.scheduler.codegen.opencl.backend import OpenClBackend
from tilesmith.scheduler.errors import NoBackend

__all__ = ["Backend", "backend_for", "names", "register"]

_BACKENDS: dict[str, Backend] = {}


def register(backend: Backend) -> None:
    """Adds a backend. The first of a kind of platforms is the one that is taken where none is named. ValueError where
    the name is taken."""
    if _BACKENDS.setdefault(backend.name, backend) != backend:
        raise ValueError(f"there is a backend {backend.name!r} already")


def names() -> tuple[str, ...]:
    """The names of all backends."""
    return tuple(_BACKENDS)


def backend_for(platform: Platform, name: str | None = None) -> Backend:
    """The backend of that name, or the first for the platform's kind. Raises NoBackend where there is none, or it
    is for platforms of another kind."""
    fitting = {b.name: b for b in _BACKENDS.values() if b.platform_kind == platform.kind}
    if name in fitting:
        return fitting[name]
    what = f"platforms of kind {platform.kind!r}, such as {platform.name}"
    if name is not None:
        raise NoBackend(f"no backend {name!r} generates code for {what}; backends: {', '.join(fitting) or 'none'}")
    if not fitting:
        kinds = sorted({b.platform_kind for b in _BACKENDS.values()})
        raise NoBackend(f"no backend generates code for {what}; kinds: {', '.join(kinds)}")
    return next(iter(fitting.values()))


register(CBackend())
register(HalideCBackend())
register(OpenClBackend())
