"""The strategies that are shipped: one YAML document each, in this folder."""

from __future__ import annotations

from importlib import resources

from tilesmith.scheduler.strategies.document import StrategyDocument, load_text


def names() -> tuple[str, ...]:
    """The names of the shipped strategies, sorted."""
    files = (f.name for f in resources.files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in files if name.endswith(".yaml")))


def text(name: str) -> str:
    """The document of a shipped strategy, as it is written; KeyError where there is none of that name."""
    if name not in names():
        raise KeyError(name)
    return resources.files(__name__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")


def load(name: str) -> StrategyDocument:
    """A shipped strategy; KeyError where there is none of that name."""
    return load_text(text(name))
