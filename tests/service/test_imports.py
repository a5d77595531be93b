"""Imports over HTTP: a file in another format becomes a document."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
from onnx_networks import super_resolution

from tilesmith.app.service.schedules import work
from tilesmith.app.service.schedules.examples import BLUR
from tilesmith.scheduler.frontends import registry
from tilesmith.scheduler.frontends.document.document import load, load_text, to_document
from tilesmith.scheduler.frontends.importer import ImportedPipeline, ImportFailed

BYTES = {"Content-Type": "application/octet-stream"}


@dataclass(frozen=True, slots=True)
class Documents:
    """An importer of documents themselves."""

    name: str = "documents"
    suffixes: tuple[str, ...] = ()

    def load(self, source: str) -> ImportedPipeline:
        raise AssertionError("the service opens no file")

    def read(self, content: bytes) -> ImportedPipeline:
        if content == b"empty":
            raise ImportFailed(("node 'a' (Loop): loops cannot be said", "unroll it"), ("node 'b': neither", None))
        return ImportedPipeline(load_text(content), ("a note",), {"input": np.zeros((2, 3), np.uint16)})


@pytest.fixture
def whole(start, monkeypatch):
    monkeypatch.setattr(registry, "_IMPORTERS", dict(registry._IMPORTERS))
    registry.register(Documents())
    return start(scheduling=work)


def test_a_file_becomes_a_document_that_can_be_scheduled(whole):
    content = json.dumps(BLUR).encode()
    answer = whole.client.post("/v1/imports/documents", content=content, headers=BYTES)
    assert answer.status_code == 200
    assert answer.json() == {
        "importer": "documents",
        "document": to_document(load(BLUR)),
        "notes": ["a note"],
        "weights": [{"name": "input", "type": "uint16", "shape": [2, 3]}],
    }
    stored = whole.client.post("/v1/pipelines", json=answer.json()["document"])
    assert stored.status_code in (200, 201)  # 200 if others have stored the same
    assert "documents" in whole.client.get("/v1/capabilities").json()["importers"]


def test_all_reasons_are_told(whole):
    answer = whole.client.post("/v1/imports/documents", content=b"empty", headers=BYTES)
    assert answer.status_code == 422
    assert answer.json()["code"] == "bad_source"
    assert [e.get("hint") for e in answer.json()["errors"]] == ["unroll it", None]
    assert "node 'a' (Loop)" in answer.json()["detail"]


def test_a_document_that_is_wrong_is_told_as_one(whole):
    answer = whole.client.post("/v1/imports/documents", content=b'{"format": 1}', headers=BYTES)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_document")


@pytest.mark.parametrize("name", ["nothing", "python", "halide.py", "%2e%2e", "x" * 64])
def test_importers_that_run_files_are_not_there(whole, name):
    answer = whole.client.post(f"/v1/imports/{name}", content=b"import os", headers=BYTES)
    assert (answer.status_code, answer.json()["code"]) == (404, "importer_not_found")
    assert "documents" in answer.json()["detail"]


def test_the_body_says_that_it_is_a_file(whole):
    answer = whole.client.post("/v1/imports/documents", json=BLUR)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


def test_files_have_a_limit_of_their_own(start):
    small = start(scheduling=work, import_bytes=100)
    answer = small.client.post("/v1/imports/documents", content=b" " * 101, headers=BYTES)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
    assert "100 bytes" in answer.json()["detail"]


def test_a_model_of_onnx_becomes_a_document(whole):
    answer = whole.client.post("/v1/imports/onnx", content=super_resolution().SerializeToString(), headers=BYTES)
    assert answer.status_code == 200
    document = answer.json()["document"]
    weights = {w["name"] for w in answer.json()["weights"]}
    assert {i["name"] for i in document["inputs"]} - weights == {"image"}
    asked = {"pipeline": document, "platform_name": "i7-6700"}
    assert whole.client.post("/v1/schedules", json=asked).status_code == 201


@pytest.mark.parametrize("content", [b"", b"hello", super_resolution().SerializeToString()[:500]])
def test_what_is_no_model_is_told(whole, content):
    answer = whole.client.post("/v1/imports/onnx", content=content, headers=BYTES)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_source")
