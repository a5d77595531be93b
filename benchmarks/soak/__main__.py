"""Kill -9 of everything at random, under load: is anything lost, done twice, corrupt or left over, is a reason wrong?

    python -m benchmarks.soak [--store sqlite|postgres] [--services N] [--pool embedded|dask] [--workers N]
                              [--minutes 30] [--seed S] [--keep FOLDER] [--json FILE]

Everything runs in a folder of its own, PostgreSQL by the programs that Debian installs. Clients ask for new schedules
and stored ones, builds, runs on random and on uploaded images, cancel and delete; they keep what was acknowledged.
Meanwhile services, the processes that search, fork servers, compilers, decoders, measured programs, launchers, the
scheduler and the workers of Dask, the server of the database and its backends are killed, and started again by a
supervisor. Then all jobs may end; each is held to its acknowledgement and its result to the reference interpreter;
everything is stopped, started and stopped, and database, artifacts, files and processes are looked through.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from benchmarks import machine, report
from benchmarks.soak.deployment import DATABASE, Deployment, Shape
from benchmarks.soak.judge import SHOWN, Verdict, faults, judge_database, judge_files, judge_jobs
from benchmarks.soak.killer import Killer
from benchmarks.soak.load import Client, Told

_SET_CHILD_SUBREAPER = 36
SETTLE_S = 300.0
BETWEEN_KILLS_S = (0.5, 4.0)
CLIENTS = 2


def soak(folder: Path, shape: Shape, minutes: float, seed: int, pause_s: float) -> dict[str, Any]:
    """The figures and findings of one soak."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans become ours: none escapes the count
    told, verdict = Told(), Verdict()
    rng = random.Random(seed)
    with Deployment(folder, shape) as deployment:
        deployment.start()
        clients = [Client(deployment.addresses, told, n, seed, pause_s) for n in range(CLIENTS)]
        for client in clients:
            client.start()
        killer = Killer(deployment, rng)
        began = time.monotonic()
        while time.monotonic() - began < 60 * minutes:
            pause = time.monotonic() + rng.uniform(*BETWEEN_KILLS_S)
            while time.monotonic() < pause:
                deployment.supervise()
                time.sleep(0.1)
            killer.kill_one()
            report.progress(
                f"{time.monotonic() - began:.0f} s: {killer.killed.total()} kills, {len(told.works)} jobs acknowledged"
            )
        for client in clients:
            client.end()
        for client in clients:
            while client.is_alive():
                deployment.supervise()
                client.join(0.1)
            if client.fault is not None:
                verdict.add("wrong reason", f"a client ended early: {client.fault}")
        settled = _settle(deployment, verdict)
        with httpx.Client(base_url=deployment.addresses[-1], timeout=60) as http:
            states = judge_jobs(told, http, verdict)
        kept = _stop_and_look(deployment, told, verdict)
        alone = {r.name: r.ended_alone for r in deployment.roles.values() if r.ended_alone and r.name != DATABASE}
        return {
            "shape": vars(shape),
            "minutes": minutes,
            "seed": seed,
            "requests": told.requests,
            "unanswered": dict(told.unanswered),
            "schedules": len(told.schedules),
            "jobs": len(told.works),
            "states": dict(states),
            "deleted": sum(w.deleted for w in told.works),
            "streams": len(told.streams),
            "kills": dict(killer.killed),
            "settled_s": settled,
            "ended_alone": alone,
            "kept": dict(kept),
            "faults": faults(folder / "logs"),
            "findings": verdict.findings,
        }


def _settle(deployment: Deployment, verdict: Verdict) -> float:
    """Waits until everything is up and no job is unfinished; the time that took, s."""
    began = time.monotonic()

    def done() -> bool:
        with httpx.Client(base_url=deployment.addresses[0], timeout=20) as http:
            found = [
                http.get("/v1/jobs", params={"state": s, "limit": 1}).json()["items"] for s in ("queued", "running")
            ]
            return not any(found)

    try:
        deployment.until(deployment.ready, SETTLE_S, "the services did not become ready again")
        deployment.until(done, SETTLE_S, "jobs did not come to an end")
    except RuntimeError as error:
        verdict.add("lost", str(error).splitlines()[0])
    return round(time.monotonic() - began, 1)


def _stop_and_look(deployment: Deployment, told: Told, verdict: Verdict) -> Mapping[str, int]:
    """Stops everything, starts it, stops it again, and looks through what is left."""
    verdict.extend("processes left", deployment.stop() + deployment.others())
    deployment.start()
    time.sleep(2)
    verdict.extend("processes left", deployment.stop() + deployment.others())
    server = deployment.roles.get(DATABASE)
    judge_database(deployment.database_url, told, verdict)
    if server is not None:
        verdict.extend("corrupt", deployment.check_database())
    kept = judge_files(deployment, verdict)
    verdict.extend("processes left", deployment.stop_database())
    verdict.extend("files left", sorted(name for name in deployment.seen_shared if Path(name).exists()))
    return kept


def in_words(found: Mapping[str, Any]) -> str:
    """The report for people."""
    shape = found["shape"]
    pool = f"Dask, {shape['workers']} workers" if shape["pool"] == "dask" else "embedded"
    head = (
        f"{shape['store']}, {shape['services']} service(s), pool {pool}: {found['minutes']:g} minutes, seed "
        f"{found['seed']}\n\n{found['requests']} requests, {found['schedules']} schedules, {found['jobs']} jobs "
        f"({_listed(found['states'])}; {found['deleted']} deleted with their schedule), {found['streams']} streams "
        f"followed.\nKilled: {_listed(found['kills'])}, in all {sum(found['kills'].values())}; settled after "
        f"{found['settled_s']} s.\n"
    )
    rows = [[kind, str(len(what)), "held" if not what else "MISSED"] for kind, what in found["findings"].items()]
    lines = [head, report.table(["finding", "number", ""], rows)]
    for kind, what in found["findings"].items():
        lines += [f"{kind}: {line}" for line in what[:SHOWN]]
    lines += [f"in the log: {line}" for line in found["faults"]]
    lines += [f"ended though nobody killed it: {_listed(found['ended_alone'])}"] if found["ended_alone"] else []
    return "\n".join(lines)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {what}" for what, n in sorted(counts.items())) or "none"


def main() -> int:
    """The command; its exit status, 1 where something was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--services", type=int, default=1, metavar="N")
    parser.add_argument("--pool", choices=("embedded", "dask"), default="embedded")
    parser.add_argument("--workers", type=int, default=4, metavar="N", help="of Dask")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--pause", type=float, default=1.0, metavar="S", help="between requests of each client, on average"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="an empty folder to work in, which is kept")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    shape = Shape(given.store, given.services, given.pool, given.workers if given.pool == "dask" else 0)
    folder = given.keep or Path(tempfile.mkdtemp(prefix="soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)  # the server of the database runs as nobody
    try:
        found = soak(folder.resolve(), shape, given.minutes, given.seed, given.pause)
    finally:
        if given.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    print(in_words(found))
    report.write(given.json, {"machine": machine.describe()} | found)
    return int(any(found["findings"].values()))


if __name__ == "__main__":
    sys.exit(main())
