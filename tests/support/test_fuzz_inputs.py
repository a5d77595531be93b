"""What the fuzzer of inputs feeds is read, and what goes wrong is told from a refusal."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from random import Random

import fuzz_inputs
import pytest
from support.fuzz_targets import TARGETS
from support.modules import require_module

MOST = 1 << 16


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_read_and_mutated(name: str) -> None:
    if name == "importers":
        for module in ("halide", "onnx", "onnxruntime", "xdsl"):
            require_module(module)
    target, rng = TARGETS[name], Random(3)
    assert target.words()
    seeds = list(islice(target.seeds(), 12 if name in ("expressions", "importers", "images") else 3))
    for content in seeds:
        assert fuzz_inputs.judge(target, content) is None
        changed = [target.mutated(rng, content, lambda data, _: data[:-1], MOST) for _ in range(5)]
        assert any(c != content for c in changed)
        assert fuzz_inputs.judge(target, changed[0], twice=False) is None


def test_mutated_documents_are_documents() -> None:
    target = TARGETS["documents"]
    content, rng = next(target.seeds()), Random(1)
    trees = [target.mutated(rng, content, lambda data, _: data, MOST) for _ in range(40)]
    assert sum(tree.startswith(b"{") and isinstance(json.loads(tree), dict) for tree in trees) > 20


@dataclass
class Reader:
    """A target of which anything may be asked."""

    kind: str
    count: int = 0

    def read(self, content: bytes) -> str:
        self.count += 1
        if self.kind == "endless":
            while True:
                pass
        if self.kind == "large":
            return str(len(bytearray(4 * fuzz_inputs.MEMORY_BYTES)))
        if self.kind == "broken":
            raise KeyError("x")
        return str(self.count if self.kind == "different" else 1)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("good", None),
        ("endless", "Endless"),
        ("large", "MemoryError"),
        ("broken", "KeyError"),
        ("different", "another answer"),
    ],
)
def test_what_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch, kind: str, wrong: str | None) -> None:
    monkeypatch.setattr(fuzz_inputs, "SECONDS", 0.05)
    found = fuzz_inputs.judge(Reader(kind), b"")
    assert found == wrong if found is None or wrong is None else found[0].startswith(wrong)


@pytest.mark.parametrize("name", ["documents", "strategies", "schedules"])
def test_a_document_that_is_no_object_has_a_known_code(name: str) -> None:
    assert fuzz_inputs.judge(TARGETS[name], b"[1]") is None
