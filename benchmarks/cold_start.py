"""`tilesmith schedule harris` in a process that has just started, from the command to its end.

python -m benchmarks.cold_start [--repeats 7] [--json FILE]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figures import Figure, main, median

REPEATS = 7
LIMIT_MS = 1000.0


def measure(repeats: int = REPEATS) -> list[Figure]:
    """One figure. The first start, which reads the files from the disk, is reported beside it."""
    command = [str(Path(sys.executable).with_name("tilesmith")), "schedule", "harris"]
    samples = []
    with tempfile.TemporaryDirectory() as empty:
        for _ in range(repeats + 1):
            start = time.perf_counter()
            subprocess.run(command, cwd=empty, check=True, capture_output=True)
            samples.append((time.perf_counter() - start) * 1e3)
    note = f"the first one {samples[0]:.0f} ms"
    return [median("cold `tilesmith schedule harris`", samples[1:], LIMIT_MS, note=note)]


if __name__ == "__main__":
    main("A cold start of the command line.", measure, REPEATS)
