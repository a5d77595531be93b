"""The pipelines that are shipped: one YAML document each, in this folder."""

from __future__ import annotations

from importlib import resources
from typing import Any

from tilesmith.scheduler.frontends.document.document import load as load_document
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.document.safe_loader import read_yaml
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline


def names() -> tuple[str, ...]:
    """The names of the shipped pipelines, sorted."""
    files = (f.name for f in resources.files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in files if name.endswith(".yaml")))


def text(name: str) -> str:
    """The YAML of a shipped pipeline; KeyError where there is none of that name."""
    if name not in names():
        raise KeyError(name)
    return resources.files(__name__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")


def document(name: str) -> dict[str, Any]:
    """The document of a shipped pipeline, as it is written; KeyError where there is none of that name."""
    parsed: dict[str, Any] = read_yaml(text(name), Limits())
    return parsed


def load(name: str) -> Pipeline:
    """A shipped pipeline, checked; KeyError where there is none of that name."""
    return load_document(document(name))
