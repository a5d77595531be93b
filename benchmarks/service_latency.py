"""`POST /v1/schedules` of harris to a warm service on loopback: a new question, and one that the store has answered.

    python -m benchmarks.service_latency [--repeats 60] [--json FILE]

The service is the real one in a process of its own, on an empty SQLite file, spoken to over one
connection. A new question is harris under another name: the content differs, the work does not.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from benchmarks.figures import Figure, main, median
from tilesmith.scheduler import pipelines

REPEATS = 60
WARM_UP = 10
NEW_LIMIT_MS = 60.0
STORED_LIMIT_MS = 5.0
START_TIMEOUT_S = 60.0


@contextmanager
def service(data: Path | None = None) -> Iterator[str]:
    """The address of a service that has just become ready, with a store of its own where no folder with one is given;
    it is ended on the way out."""
    with tempfile.TemporaryDirectory() as made, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        log = Path(made) / "log"
        process = start(port, log, {"TILESMITH_DATA_DIR": str(data or Path(made) / "data")})
        try:
            address = f"http://127.0.0.1:{port}"
            wait_until_ready(address, process, log)
            yield address
        finally:
            process.terminate()
            process.wait(timeout=30)


def start(port: int, log: Path, settings: dict[str, str]) -> subprocess.Popen[bytes]:
    """A service that has just begun to start."""
    command = [str(Path(sys.executable).with_name("tilesmith")), "serve", "--port", str(port)]
    with log.open("wb") as out:
        return subprocess.Popen(command, stdout=out, stderr=out, env=os.environ | settings)


def wait_until_ready(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Returns when the service says that it is ready. Raises RuntimeError with its log if it never does."""
    end = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx.get(f"{address}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"the service did not become ready:\n{log.read_text(errors='replace')[-2000:]}")


def measure(repeats: int = REPEATS) -> list[Figure]:
    """Two figures: medians over a new question each time, and over one question asked again."""
    document = pipelines.document("harris")
    with service() as address, httpx.Client(base_url=address, timeout=60) as client:

        def post(name: str, expected: int) -> float:
            body = {"pipeline": document | {"name": name}}
            start = time.perf_counter()
            answer = client.post("/v1/schedules", json=body)
            taken = (time.perf_counter() - start) * 1e3
            if answer.status_code != expected:
                raise RuntimeError(f"{answer.status_code}, not {expected}: {answer.text[:500]}")
            return taken

        for k in range(WARM_UP):
            post(f"warm_{k}", 201)
        new = [post(f"harris_{k}", 201) for k in range(repeats)]
        for _ in range(WARM_UP):
            post("harris_0", 200)
        stored = [post("harris_0", 200) for _ in range(repeats)]
        # Questions asked once before, none of them lately: the store's answer and no cache's of requests.
        each = [post(f"harris_{k}", 200) for k in range(repeats)]
    return [
        median("POST /v1/schedules, harris, new", new, NEW_LIMIT_MS),
        median("POST /v1/schedules, harris, stored", stored, STORED_LIMIT_MS),
        median("POST /v1/schedules, harris, stored, another each time", each),
    ]


if __name__ == "__main__":
    main("Latency of the service.", measure, REPEATS)
