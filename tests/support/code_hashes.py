"""Hashes of generated C, to be compared with those that another process finds."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from support.machines import machine
from support.native import source_of
from support.random_cases import random_case
from support.shipped import scheduled


def of_cases() -> dict[str, str]:
    """Hashes of the C of some shipped pipelines, and of random cases, one of each kind."""
    sources = {name: scheduled(name, machine()).source for name in ("harris", "interpolate", "unsharp")}
    cases = {str(seed): random_case(seed) for seed in range(12)}
    sources |= {name: source_of(case.pipeline, case.schedule, machine()) for name, case in cases.items()}
    return {name: hashlib.sha256(repr(source).encode()).hexdigest() for name, source in sources.items()}


if __name__ == "__main__":
    print(json.dumps(of_cases()))
