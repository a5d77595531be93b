"""The whole API under requests that schemathesis makes of its OpenAPI document, for so many seconds.

`make fuzz-api` runs it for ten minutes; it ends with a status that is not 0 where an answer is not as described.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
from pydantic import SecretStr

sys.path[:0] = [str(Path(__file__).parents[1])]

from support.servers import running  # noqa: E402

from tilesmith.app.service import logs  # noqa: E402
from tilesmith.app.service.main import create_app  # noqa: E402
from tilesmith.app.service.settings import Settings  # noqa: E402

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
    logs.configure("json", "error")
    with tempfile.TemporaryDirectory(prefix="tilesmith-fuzz-") as name:
        folder = Path(name)
        configuration = folder / "schemathesis.toml"
        configuration.write_text(CONFIGURATION, encoding="utf-8")
        with running(create_app(_settings(folder))) as url:
            description = f"{url}/openapi.json"
            httpx.get(description, timeout=120)  # made once, and waited for only so long by `st`
            command = [
                *(str(Path(sys.executable).with_name("st")), "--config-file", str(configuration), "run", description),
                *("--max-time", str(asked.seconds), "--max-examples", str(asked.examples), "--continue-on-failure"),
                *("--generation-database", "none", "--request-timeout", "60"),
                *("--header", f"Authorization: Bearer {TOKEN}"),
                *([] if asked.seed is None else ["--seed", str(asked.seed)]),
                *others,
            ]
            return subprocess.run(command, cwd=folder, check=False).returncode


def _settings(folder: Path) -> Settings:
    """Settings of a service that schedules in earnest, without doing jobs; requests are small, so that it has time for
    many."""
    return Settings(
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


if __name__ == "__main__":
    sys.exit(main())
