"""The registry of cost models."""

import pytest

from tilesmith.cost_models import Ecm, Taco2019, registry
from tilesmith.cost_models.registry import UnknownCostModel, cost_model, names, register


def test_models_are_made_by_name():
    assert names()[:2] == ("ecm", "taco2019")
    assert isinstance(cost_model("taco2019"), Taco2019)
    assert cost_model("ecm") is not cost_model("ecm")  # each keeps what it has worked out for one search


def test_a_name_is_taken_once(monkeypatch):
    monkeypatch.setattr(registry, "_MODELS", dict(registry._MODELS))
    register("ecm", Ecm)
    with pytest.raises(ValueError, match="there is a cost model 'ecm' already"):
        register("ecm", Taco2019)
    register("theirs", Taco2019)
    assert names()[-1] == "theirs"


def test_an_unknown_name_lists_the_known():
    with pytest.raises(UnknownCostModel, match="no cost model 'emc'; cost models: ecm, taco2019"):
        cost_model("emc")
