"""`tilesmith import onnx`: the document, its weights beside it, and the command that runs both."""

from __future__ import annotations

import re
import shlex
import sys

import numpy as np
import onnx
import pytest
from onnx_models import by_onnxruntime, close, floats
from onnx_networks import mobilenet
from typer.testing import CliRunner

from tilesmith.app.cli import app


def called(*arguments, status=0):
    result = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result


@pytest.fixture
def network(tmp_path):
    path = tmp_path / "network.onnx"
    onnx.save(mobilenet(), path)
    np.save(tmp_path / "image.npy", floats(1, 8, 14, 15))
    return path


@pytest.fixture
def wanted():
    return by_onnxruntime(mobilenet(), {"image": floats(1, 8, 14, 15)})[0]


def test_the_document_and_its_weights_run(network, wanted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = called("import", "onnx", network, "--output", "network.yaml").stderr
    command = shlex.split(re.search(r"to run it: tilesmith run (.*)", told)[1].replace("=FILE", "=image.npy"))
    called("interpret", *command, "--output", f"{output(tmp_path)}=result.npy")
    assert close(np.load("result.npy"), wanted)


def output(folder) -> str:
    return re.search(r"^outputs: \[(\w+)\]", (folder / "network.yaml").read_text(), re.MULTILINE)[1]


def test_a_model_is_a_document(network, wanted, tmp_path):
    name = mobilenet().graph.output[0].name
    called("interpret", network, "--input", f"image={tmp_path}/image.npy", "--output", f"{name}={tmp_path}/result.npy")
    assert close(np.load(tmp_path / "result.npy"), wanted)
    assert "valid" in called("validate", network).stdout


def test_weights_that_are_not_written_are_told_of(network):
    assert "the source has the values of the inputs weight_2" in called("import", "onnx", network).stderr


def test_archives_that_do_not_fit(network, tmp_path):
    called("import", "onnx", network, "--output", tmp_path / "network.yaml")
    (tmp_path / "none.npz").write_bytes(b"hello")
    np.savez(tmp_path / "other.npz", other=np.zeros(3))
    np.savez_compressed(tmp_path / "packed.npz", **np.load(tmp_path / "network.npz"))
    for archive, words in {
        "none.npz": "not a zip file",
        "other.npz": "it has no array named after an input",
        "gone.npz": "No such file",
        "packed.npz": "is compressed hint: write it by numpy.savez",
    }.items():
        image = f"image={tmp_path}/image.npy"
        refused = called(
            "interpret", tmp_path / "network.yaml", "--input", image, "--input", tmp_path / archive, status=2
        )
        assert words in " ".join(refused.stderr.split())


def test_what_cannot_be_said_is_told_with_its_node(network, tmp_path):
    found = mobilenet()
    found.graph.node[1].op_type = "Strange"
    onnx.save(found, tmp_path / "strange.onnx")
    told = called("import", "onnx", tmp_path / "strange.onnx", status=2).stderr
    assert f"node '{found.graph.node[1].name}' (Strange): the operator cannot be said" in told


def test_files_that_are_not_there(tmp_path):
    assert "cannot be read: No such file" in called("import", "onnx", tmp_path / "none.onnx", status=2).stderr


def test_without_onnx_the_extra_is_named(network, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert "pip install 'tilesmith[onnx]'" in called("import", "onnx", network, status=2).stderr
