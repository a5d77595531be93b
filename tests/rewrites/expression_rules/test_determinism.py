"""Places, their order, and what rules make do not depend on how Python hashes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
from support.random_pipelines import random_pipeline
from tilesmith.scheduler.errors import DocumentError
from tilesmith.scheduler.frontends.document.document import canonical_json, load
from tilesmith.scheduler.rewrites.expression_rules.application import matches, normalize
from tilesmith.scheduler.rewrites.expression_rules.document import rules_of
from tilesmith.scheduler.rewrites.expression_rules.library import SIMPLIFICATIONS, rule

rules = [rule(name) for name in (*SIMPLIFICATIONS, "factor_common", "convert_once")]
for seed in range(12):
    pipeline = load(random_pipeline(seed))
    print([str(m) for r in rules for m in matches(r, pipeline)])
    print(canonical_json(normalize(rules, pipeline)))
for r in rules:
    print(getattr(r, "instances", None))
try:
    rules_of([{"name": "wrong", "match": "?a * ?b + ?c", "result": "?a + ?b * ?c"}])
except DocumentError as error:
    print(error)
"""


@pytest.mark.slow
def test_any_hash_seed() -> None:
    root = Path(__file__).parents[3]
    path = os.pathsep.join(map(str, (root, root / "tests", root / "tests" / "support")))
    outputs = {
        subprocess.run(
            [sys.executable, "-c", CODE],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1
