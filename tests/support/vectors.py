"""Machines and compilers that functions of whole vectors are tested with, and values for them."""

from __future__ import annotations

import platform

import numpy as np

FLAGS = {"gcc": ("-O1",), "clang": ("-O1",)}
"""Compilers, with flags: vectors are in registers, and intrinsics take the operands that they need."""

OLDEST = ("-march=x86-64",) if platform.machine() == "x86_64" else ()
MACHINES = [(64, ()), (32, ("-O0",)), (16, ()), (16, ("-O0", *OLDEST))]
"""The bytes of a vector, and flags that come last: for what has less than others with such vectors, and on every other
machine not to optimize, which takes half the time."""
BUILDS = [(*m, compiler) for m, compiler in zip(MACHINES, ("gcc", "clang", "clang", "gcc"), strict=True)]
"""Compilers take turns: each of them optimizes once, and once it does not."""


def pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of values, in two columns."""
    return np.repeat(values, len(values)), np.tile(values, len(values))
