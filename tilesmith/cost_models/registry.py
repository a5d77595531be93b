"""The cost models by name: those that are shipped, and those that users register."""

from __future__ import annotations

from collections.abc import Callable

from tilesmith.cost_models.ecm import Ecm
from tilesmith.cost_models.interface import CostModel
from tilesmith.cost_models.taco2019 import Taco2019

MakeModel = Callable[[], CostModel]

_MODELS: dict[str, MakeModel] = {}


class UnknownCostModel(ValueError):
    """There is no cost model of that name; the message lists those that there are."""


def register(name: str, make: MakeModel) -> None:
    """Adds a cost model: what makes one for each search. ValueError where the name is taken."""
    if _MODELS.setdefault(name, make) is not make:
        raise ValueError(f"there is a cost model {name!r} already")


def cost_model(name: str) -> CostModel:
    """A new model of that name. Raises UnknownCostModel."""
    if name not in _MODELS:
        raise UnknownCostModel(f"there is no cost model '{name}'; cost models: {', '.join(names())}")
    return _MODELS[name]()


def names() -> tuple[str, ...]:
    """The names of all cost models, as they were registered."""
    return tuple(_MODELS)


register("ecm", Ecm)
register("taco2019", Taco2019)
