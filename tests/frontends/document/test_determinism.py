"""Equal documents give equal pipelines and the same errors, whatever the hash seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, sys
from tilesmith.scheduler.errors import DocumentError
from tilesmith.scheduler.frontends.document.document import canonical_json, load
for document in json.load(sys.stdin):
    try:
        print(canonical_json(load(document)))
    except DocumentError as error:
        print(error)
"""
IMAGE = {"name": "image", "type": "int32", "dims": ["x"]}


@pytest.mark.slow
def test_hash_seeds() -> None:
    names = [f"s{i}" for i in range(12)]
    wide = {
        "format": 1, "name": "wide", "inputs": [IMAGE],
        "stages": [{"name": n, "dims": ["x"], "value": "image(x) + 1"} for n in names]
        + [{"name": "all_of_them", "dims": ["x"], "value": " + ".join(f"{n}(x)" for n in reversed(names))}],
        "outputs": ["all_of_them"], "estimates": {"all_of_them": [[0, 9]], "s3": [[0, 9]], "image": [[0, 9]]},
    }  # fmt: skip
    rings = wide | {
        "stages": [{"name": n, "dims": ["x"], "value": f"s{(i * 5 + 1) % 12}(x) + {n}x(x)"}
                   for i, n in enumerate(names)],
        "params": [{"name": "gain", "type": "int32"}], "outputs": ["s1"], "unknown": 1,
    }  # fmt: skip
    reads = wide | {"stages": [{"name": "f", "dims": ["x"], "value": "image(image(x) + image(image(x)) + lost)"}]}
    outputs = set()
    root = Path(__file__).parents[3]
    for seed in ("0", "1", "2", "42"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], input=json.dumps([wide, rings, reads]), env=environment,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert "[cycle]" in outputs.pop()
