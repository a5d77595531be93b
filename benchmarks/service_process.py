"""The real service in a process of its own, on loopback, with its defaults and an empty store."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

START_TIMEOUT_S = 180.0


@dataclass(frozen=True)
class Service:
    """A service: the address where it answers, and its process."""

    host: str
    port: int
    pid: int

    @property
    def address(self) -> str:
        return f"http://{self.host}:{self.port}"


@contextmanager
def service(**settings: str) -> Iterator[Service]:
    """A service that has just become ready, with the settings that are named as variables are, on a data folder of its
    own where none is among them; it is ended on the way out."""
    with tempfile.TemporaryDirectory() as made, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        log = Path(made) / "log"
        command = [str(Path(sys.executable).with_name("tilesmith")), "serve", "--port", str(port)]
        environment = os.environ | {"TILESMITH_DATA_DIR": str(Path(made) / "data")} | settings
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
        try:
            found = Service("127.0.0.1", port, process.pid)
            _wait_until_ready(found.address, process, log)
            yield found
        finally:
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_until_ready(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
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
