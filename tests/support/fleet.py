"""A fleet of processes: a scheduler, workers and services, forked from one that has imported everything once.

`python fleet.py CONFIG.json` prints a line of JSON with the ids of the processes, and ends them when its input ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import distributed

from tilesmith.app.runtime import confinement
from tilesmith.app.service import main, worker
from tilesmith.app.service.settings import Settings


def forked(log: Path, run: Callable[[], object]) -> int:
    """The id of a process that does this."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.setsid()
        output = os.open(log, os.O_CREAT | os.O_WRONLY, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        run()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def scheduler(port: int) -> None:
    async def serve() -> None:
        async with distributed.Scheduler(host="127.0.0.1", port=port, dashboard_address=None, dashboard=False) as made:
            await made.finished()

    asyncio.run(serve())


def work(settings: dict[str, Any], isa: str | None) -> None:
    if isa is not None:
        os.environ["TILESMITH_HOST_ISA"] = isa
    worker.work(Settings(**settings), 1)


def start(config: dict[str, Any]) -> dict[str, Any]:
    """Starts what the configuration asks for; the ids of the processes."""
    folder = Path(config["folder"])
    confinement.mechanism()  # tried once, for all
    common = {"pool": f"dask://127.0.0.1:{config['scheduler']}", "artifacts": str(folder / "objects"), "drain_s": 5}
    ids: dict[str, Any] = {"scheduler": forked(folder / "scheduler.log", lambda: scheduler(config["scheduler"]))}
    ids["workers"] = [
        forked(
            folder / f"worker-{n}.log",
            lambda n=n, isa=isa: work({**common, "data_dir": folder / f"worker-{n}"}, isa),  # type: ignore[misc]
        )
        for n, isa in enumerate(config["workers"])
    ]
    ids["services"] = [
        forked(
            folder / f"service-{n}.log",
            lambda n=n, port=port: main.serve(  # type: ignore[misc]
                settings=Settings(
                    **common,
                    **config["settings"],
                    data_dir=folder / f"service-{n}",
                    port=port,
                    schedule_workers=0,
                )
            ),
        )
        for n, port in enumerate(config["services"])
    ]
    return ids


if __name__ == "__main__":
    found = start(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    print(json.dumps(found), flush=True)
    sys.stdin.read()
    for process in (*found["services"], *found["workers"], found["scheduler"]):
        os.kill(process, signal.SIGKILL)  # children that have not been waited for: their ids are still theirs
