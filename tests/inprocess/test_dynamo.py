"""`torch.compile(backend="tilesmith")`: graphs are compiled, and what cannot be said runs in PyTorch, named."""

from __future__ import annotations

import logging
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch_modules import block, random

from tilesmith.app.inprocess import dynamo

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of PyTorch's own


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def parts(monkeypatch):
    """The parts of graphs that were compiled."""
    found, part = [], dynamo._part
    monkeypatch.setattr(dynamo, "_part", lambda module: found.append(part(module)) or found[-1])
    return found


def test_the_entry_point_is_the_backend():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    (value,) = project["entry-points"]["torch_dynamo_backends"].values()
    assert EntryPoint("tilesmith", value, "torch_dynamo_backends").load() is dynamo.backend


def test_a_module_is_one_part(parts, caplog):
    module, image = block(), random(2, 3, 16, 20)
    compiled = torch.compile(module, backend=dynamo.backend)
    with torch.no_grad():
        torch.testing.assert_close(compiled(image), module(image), rtol=1e-4, atol=1e-4)
        other = random(2, 3, 16, 20) * 2
        torch.testing.assert_close(compiled(other), module(other), rtol=1e-4, atol=1e-4)
    assert [type(p).__name__ for p in parts] == ["Part"]
    assert not [r for r in caplog.records if r.name == "tilesmith"]


def test_weights_are_those_of_the_moment(parts):
    module, image = nn.Conv2d(3, 4, 3), random(1, 3, 8, 8)
    compiled = torch.compile(module, backend=dynamo.backend)
    with torch.no_grad():
        compiled(image)
        module.weight.mul_(2)
        torch.testing.assert_close(compiled(image), module(image), rtol=1e-4, atol=1e-4)
    assert parts


def test_what_cannot_be_said_runs_in_pytorch_and_is_named(parts, caplog):
    def mixed(x):
        return torch.cumsum(torch.relu(x) * 2, 1).sigmoid() + 1

    image = random(1, 3, 8, 8)
    with torch.no_grad(), caplog.at_level(logging.WARNING, "tilesmith"):
        torch.testing.assert_close(torch.compile(mixed, backend=dynamo.backend)(image), mixed(image))
    assert len(parts) == 2
    (record,) = (r for r in caplog.records if r.name == "tilesmith")
    assert "1 nodes of the graph run in PyTorch" in record.message
    assert "(aten.cumsum.default): the operator cannot be said" in record.message


def test_derivatives_are_those_of_pytorch(parts):
    module, image = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True)), random(1, 3, 8, 8)
    module(image).sum().backward()
    wanted = module[0].weight.grad.clone()
    module.zero_grad()
    torch.compile(module, backend=dynamo.backend)(image).sum().backward()
    torch.testing.assert_close(module[0].weight.grad, wanted)
    assert parts


def test_a_part_that_cannot_be_compiled_runs_in_pytorch(monkeypatch, caplog):
    def fails(*_):
        raise dynamo.TilesmithError("no compiler")

    monkeypatch.setattr(dynamo, "compile", fails)
    image = random(1, 3, 8, 8)
    with torch.no_grad(), caplog.at_level(logging.WARNING, "tilesmith"):
        found = torch.compile(torch.tanh, backend=dynamo.backend)(image)
    torch.testing.assert_close(found, torch.tanh(image))
    assert "a part of the graph runs in PyTorch: no compiler" in caplog.text
