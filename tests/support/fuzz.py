"""`make fuzz`: random cases for as long as asked, judged in two processes, built and watched in every way there is.

What goes wrong is kept in out/fuzz/<seed>-<build>: the pipeline, the schedule, what was said, and the command that
does it again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support import random_cases  # noqa: E402
from support.builds import BUILDS, environment  # noqa: E402
from support.random_cases import Verdict, judged, random_case  # noqa: E402

from tilesmith.scheduler.frontends.document.document import to_document  # noqa: E402
from tilesmith.scheduler.ir.schedule.document import to_document as schedule_document  # noqa: E402

MIX = ("gcc-O1", "gcc-O0", "memory", "clang-O1", "gcc-O3", "threads", "gcc-O0", "clang-O3")
CHUNK = 24
PROCESSES = 2


def chunks(start: int, cases: int | None) -> Iterator[tuple[str, range]]:
    """Seeds with the build that they are judged by, without end where `cases` is None."""
    n = 0
    while cases is None or n * CHUNK < cases:
        last = CHUNK if cases is None else min(CHUNK, cases - n * CHUNK)
        yield MIX[n % len(MIX)], range(start + n * CHUNK, start + n * CHUNK + last)
        n += 1


def command(folder: Path, build: str) -> list[str]:
    """The command that judges the case in `folder` again."""
    return [sys.executable, str(Path(__file__)), "--replay", str(folder), "--build", build]


def keep(out: Path, seed: int, build: str, wrong: str) -> Path:
    """The folder where the case was written to."""
    folder = out / f"{seed}-{build}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "case.json").write_text(json.dumps({"seed": seed, "build": build}, indent=2) + "\n")
    (folder / "wrong.txt").write_text(wrong + "\n")
    try:
        case = random_case(seed)
    except Exception as e:  # it has no schedule: the seed and what was said are all there is
        (folder / "wrong.txt").write_text(f"{wrong}\n\nthe case cannot be made: {e}\n")
        return folder
    for name, document in (("pipeline", to_document(case.pipeline)), ("schedule", schedule_document(case.schedule))):
        (folder / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n")
    (folder / "again.sh").write_text(" ".join(command(folder, build)) + "\n")
    return folder


def fuzz(seconds: float, cases: int | None, start: int, out: Path) -> int:
    """Judges cases and tells how it goes; the number of those that went wrong."""
    begin, count = time.monotonic(), Counter[str]()
    todo = chunks(start, cases)
    running: dict[Future[Verdict], tuple[str, range]] = {}

    def more() -> None:
        while len(running) < PROCESSES and time.monotonic() - begin < seconds:
            chunk = next(todo, None)
            if chunk is None:
                return
            running[pool.submit(judged, chunk[1], chunk[0])] = chunk

    with ThreadPoolExecutor(PROCESSES) as pool:
        more()
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                build, seeds = running.pop(future)
                verdict = future.result()
                count.update(cases=len(seeds), wrong=len(verdict.wrong), skipped=len(verdict.skipped))
                for seed, wrong in verdict.wrong.items():
                    folder = keep(out, seed, build, wrong)
                    last = wrong.strip().splitlines()[-1][:100]
                    print(f"\nseed {seed}, {build}: {last}\n  {' '.join(command(folder, build))}", flush=True)
                spent = time.monotonic() - begin
                print(
                    f"{count['cases']} cases in {spent:.0f} s ({count['cases'] / spent:.1f} a second), "
                    f"{count['wrong']} wrong, {count['skipped']} too long to compile; last {build}, seed {seeds[-1]}",
                    flush=True,
                )
            more()
    return count["wrong"]


def replay(folder: Path, build: str) -> int:
    """Judges the case in `folder` again, in a process of its own."""
    how = BUILDS[build]
    again = [sys.executable, random_cases.__file__, str(folder), how.compiler, *how.flags]
    done = subprocess.run(again, env={**os.environ, **environment(how)}, capture_output=True, text=True, check=False)
    print(done.stdout or done.stderr)
    return 0 if done.returncode == 0 and "wrong" in done.stdout and json.loads(done.stdout)["wrong"] is None else 1


def main() -> None:
    """The command line: what the Makefile passes, or --replay."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600, help="begin nothing new after that long")
    parser.add_argument("--cases", type=int, help="end after so many")
    parser.add_argument("--seed", type=int, default=1_000_000, help="the first one; others follow it")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "fuzz")
    parser.add_argument("--replay", type=Path, help="the folder of one case")
    parser.add_argument("--build", choices=BUILDS, default="gcc-O1", help="how --replay builds it")
    a = parser.parse_args()
    if a.replay is not None:
        sys.exit(replay(a.replay, a.build))
    sys.exit(1 if fuzz(a.seconds, a.cases, a.seed, a.out) else 0)


if __name__ == "__main__":
    main()
