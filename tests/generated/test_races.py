"""No two iterations of a parallel loop touch a place that one of them writes: ThreadSanitizer watches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.builds import BUILDS, environment
from support.random_cases import judged_in_a_child, source_of_seed
from support.tools import require_tool


def test_iterations_keep_to_themselves() -> None:
    """Cases that have such loops: two of three."""
    require_tool("gcc")
    seeds = [seed for seed in range(18) if (source := source_of_seed(seed)) and "PARALLEL" in source.code]
    assert len(seeds) >= 11
    assert judged_in_a_child(seeds, "threads") == {}


RACE = """
#include <stdint.h>
void sums(float *total, const float *data, int64_t rows, int together) {
#pragma omp parallel for schedule(dynamic, 1)
    for (int64_t y = 0; y < rows; y++) total[together ? 0 : y] += data[y];
}
void sums_in_order(float *total, const float *data, int64_t rows, int together) {
#pragma omp parallel for ordered schedule(dynamic, 1)
    for (int64_t y = 0; y < rows; y++) {
        if (together) total[0] += data[y];
#pragma omp ordered
        total[0] += data[y];
    }
}
"""

CALL = """
import ctypes, sys
data, total = (ctypes.c_float * 20)(), (ctypes.c_float * 20)()
getattr(ctypes.CDLL(sys.argv[1]), sys.argv[3])(total, data, ctypes.c_int64(20), int(sys.argv[2]))
print("done")
"""


@pytest.mark.parametrize("function", ["sums", "sums_in_order"])
@pytest.mark.parametrize("together", [0, 1])
def test_the_watch_is_awake(together: int, function: str, tmp_path: Path) -> None:
    """Each iteration into a place of its own, or in order, and all into one."""
    build = BUILDS["threads"]
    source, library = tmp_path / "sums.c", tmp_path / "sums.so"
    source.write_text(RACE)
    command = [require_tool("gcc"), *build.flags, "-fopenmp", "-shared", "-fPIC", source, "-o", library]
    subprocess.run(command, check=True)
    done = subprocess.run(
        [sys.executable, "-c", CALL, library, str(together), function],
        capture_output=True, text=True, check=False, env={**os.environ, **environment(build)},
    )  # fmt: skip
    assert (done.stdout == "done\n") == (not together), done.stderr[-3000:]
    assert ("data race" in done.stderr) == bool(together)
