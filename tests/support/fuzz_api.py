"""The whole API under requests that schemathesis makes of its OpenAPI document, for so many seconds.

`make fuzz-api` runs it for ten minutes; it ends with a status that is not 0 where an answer is not as described.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import uvicorn
from pydantic import SecretStr

from tilesmith.app.service import logs
from tilesmith.app.service.main import create_app
from tilesmith.app.service.settings import Settings

CONFIGURATION = """
[checks]
# no schema tells a pipeline that computes from one that does not
positive_data_acceptance.enabled = false

[[operations]]
include-operation-id = "createSchedules"
# each of its requests has a problem of its own
checks.negative_data_rejection.enabled = false

[[operations]]
include-operation-id = "createSchedule"
# it ends with 504, as described, where its timeout is shorter than the search
checks.not_a_server_error.expected-statuses = ["2xx", "4xx", 504]

[[operations]]
include-operation-id = "getLibrary"
# it is there once a job has built it
checks.ensure_resource_availability.enabled = false

[[operations]]
include-operation-id = "deletePipeline"
# names are those of pipelines that ship; what was stored has an id, whatever its name
checks.ensure_resource_availability.enabled = false

[[operations]]
include-operation-id = "startComparison"
# the schedule that its body names need not be there
checks.ensure_resource_availability.enabled = false

[[operations]]
include-path-regex = "^/v1/jobs/"
# DELETE cancels a job, which is there to be read until it is forgotten
checks.use_after_free.enabled = false
"""

TOKEN = "a-token-of-these-tests"


def main(arguments: list[str] | None = None) -> int:
    """The status of schemathesis."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--examples", type=int, default=100, help="of each operation, in each phase")
    parser.add_argument("--seed", type=int)
    asked, others = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory(prefix="tilesmith-fuzz-") as folder:
        server = _served(Path(folder))
        port = server.servers[0].sockets[0].getsockname()[1]
        httpx.get(
            f"http://127.0.0.1:{port}/openapi.json", timeout=120
        )  # made once, and waited for only so long by `st`
        configuration = Path(folder) / "schemathesis.toml"
        configuration.write_text(CONFIGURATION, encoding="utf-8")
        command = [
            *(str(Path(sys.executable).with_name("st")), "--config-file", str(configuration)),
            *("run", f"http://127.0.0.1:{port}/openapi.json"),
            *("--max-time", str(asked.seconds), "--max-examples", str(asked.examples), "--continue-on-failure"),
            *("--generation-database", "none", "--request-timeout", "60"),
            *("--header", f"Authorization: Bearer {TOKEN}"),
            *([] if asked.seed is None else ["--seed", str(asked.seed)]),
            *others,
        ]
        try:
            return subprocess.run(command, cwd=folder, check=False).returncode
        finally:
            server.should_exit = True
            server.thread.join()


class _Server(uvicorn.Server):
    thread: threading.Thread


def _served(folder: Path) -> _Server:
    """A service that schedules in earnest, without doing jobs; requests are small, so that it has time for many."""
    logs.configure("json", "error")
    settings = Settings(
        data_dir=folder,
        schedule_workers=2,
        job_workers=0,
        job_queue_ttl_s=0.5,
        schedule_timeout_s=20,
        calibrate=False,
        body_bytes=1 << 18,
        admin_token=SecretStr(TOKEN),
        token_failures=100_000,
    )
    server = _Server(uvicorn.Config(create_app(settings), host="127.0.0.1", port=0, log_config=None, access_log=False))
    server.thread = threading.Thread(target=server.run, daemon=True)
    server.thread.start()
    deadline = time.monotonic() + 60
    while not server.started:
        if not server.thread.is_alive() or time.monotonic() > deadline:
            raise RuntimeError("the service does not start")
        time.sleep(0.05)
    return server


if __name__ == "__main__":
    sys.exit(main())
