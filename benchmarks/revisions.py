"""This checkout against an earlier revision of the project: document to C, the size of the C, the time that GCC takes
for it, and the speed of the code.

    python -m benchmarks.revisions REVISION [--pipelines NAME ...] [--threads 2 1] [--repeats 9] [--rounds 8]
                                   [--platform NAME|FILE] [--json FILE]

Both sides are asked in turns for the same platform, this machine as it was measured on first use if none is named.
Document to C is warm and in CPU time, as that of the compiler is, which is given what `tilesmith run` gives it: the
platform's flags and those that each side's C comes with. Code is called in turns in one process, on the same images
(`interleaved`), without where --threads is empty. A ratio is this checkout's over the revision's: of the least times,
for code the verdict over all rounds.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import everywhere, machine, report
from benchmarks.builds import NATIVE, machine_of
from benchmarks.contest import BUILD
from benchmarks.verdicts import geometric_mean, verdict
from tilesmith import platforms
from tilesmith.platforms import CpuPlatform
from tilesmith.platforms.cpu.detect import host
from tilesmith.platforms.toolchain import Compiler
from tilesmith.scheduler import pipelines

ROOT = Path(__file__).resolve().parent.parent
THIS, EARLIER = "this", "earlier"
LONG = ("vdsr",)
"""Pipelines that are left out if none is named: a call takes minutes."""


@dataclass
class Side:
    """One side's figures of a pipeline: milliseconds of CPU time from document to C, and the phases of the least;
    characters of C; the flags that it asks for; seconds of CPU time of the C compiler."""

    compile_ms: list[float] = field(default_factory=list)
    phases_ms: dict[str, float] = field(default_factory=dict)
    characters: int = 0
    flags: list[str] = field(default_factory=list)
    gcc_s: list[float] = field(default_factory=list)
    entry: str = ""


@dataclass
class Comparison:
    """A pipeline on both sides; `speed` are the ratios of the code's times by threads, `failed` what went wrong."""

    pipeline: str
    this: Side = field(default_factory=Side)
    earlier: Side = field(default_factory=Side)
    speed: dict[int, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def ratios(self) -> dict[str, float]:
        mine, its = self.this, self.earlier
        return {
            "document to C": min(mine.compile_ms) / min(its.compile_ms),
            "size": mine.characters / its.characters,
            "gcc": min(mine.gcc_s) / min(its.gcc_s),
            **{f"code, threads: {n}": ratio for n, ratio in self.speed.items()},
        }


def checkout(revision: str) -> Path:
    """A folder with the files of a revision. Raises CalledProcessError where there is no such revision."""
    sha = _git("rev-parse", "--verify", f"{revision}^{{commit}}").decode().strip()
    folder = BUILD / "revisions" / sha[:12]
    if not folder.exists():
        with tarfile.open(fileobj=io.BytesIO(_git("archive", sha))) as files:
            files.extractall(folder, filter="data")
    return folder


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True).stdout


@contextmanager
def compiler_of(tree: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that compiles documents by the code of a checkout (`revision_compiler`)."""
    command = [sys.executable, "-P", str(Path(__file__).with_name("revision_compiler.py")), str(tree)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        yield p
        assert p.stdin is not None
        p.stdin.close()


def ask(process: subprocess.Popen[str], question: dict[str, Any]) -> dict[str, Any]:
    """The answer of a side's process. Raises RuntimeError where it ends instead; it has said why."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(question) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("a checkout could not compile the pipeline")
    answer: dict[str, Any] = json.loads(line)
    return answer


def library(folder: Path, compiler: Compiler, flags: Sequence[str]) -> float:
    """Seconds of CPU time in which the compiler makes the library of the C in a folder, with the flags that the C asks
    for."""
    command = [
        compiler.command, *compiler.flags, *flags, "-shared", "-fPIC", "-fopenmp",
        "-o", "pipeline.so", "pipeline.c", "-lm",
    ]  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(
    name: str, sides: dict[str, subprocess.Popen[str]], platform: CpuPlatform, repeats: int, threads: Sequence[int],
    rounds: int,
) -> Comparison:  # fmt: skip
    """Both sides of a pipeline, in turns."""
    found, folders = Comparison(name), {side: BUILD / "revisions" / "code" / name / side for side in sides}
    figures = {THIS: found.this, EARLIER: found.earlier}
    for _ in range(repeats):
        for side, process in sides.items():
            question = {"pipeline": name, "platform": platforms.to_document(platform), "into": str(folders[side])}
            answer, of = ask(process, question), figures[side]
            if not of.compile_ms or answer["ms"] < min(of.compile_ms):
                of.phases_ms = answer["phases_ms"]
            of.compile_ms.append(answer["ms"])
            of.entry, of.flags = answer["entry"], answer["flags"]
    for of, folder in zip(figures.values(), folders.values(), strict=True):
        of.characters = len((folder / "pipeline.c").read_text())
    for _ in range(3):
        for side, of in figures.items():
            of.gcc_s.append(library(folders[side], platform.compiler, of.flags))
    libraries = {side: (str(folders[side] / "pipeline.so"), figures[side].entry) for side in sides}
    for n in threads:
        timing = everywhere.measured(everywhere.Job(name, NATIVE, "gcc", n), libraries, rounds)
        if "error" in timing:
            found.failed.append(f"threads: {n}: {timing['error']}")
        else:
            found.speed[n] = verdict(timing["rounds"], THIS, EARLIER).ratio
    return found


def tables(found: Sequence[Comparison]) -> str:
    """A line a pipeline, and the geometric means."""
    columns = list(dict.fromkeys(key for c in found for key in c.ratios()))
    rows = []
    for c in found:
        ratios = c.ratios()
        rows.append(
            [
                c.pipeline,
                f"{min(c.earlier.compile_ms):.1f} -> {min(c.this.compile_ms):.1f}",
                f"{c.earlier.characters} -> {c.this.characters}",
                f"{min(c.earlier.gcc_s):.2f} -> {min(c.this.gcc_s):.2f}",
                *(report.number(ratios.get(key)) for key in columns),
                "; ".join(c.failed),
            ]
        )
    means = [geometric_mean([c.ratios()[key] for c in found if key in c.ratios()]) for key in columns]
    rows.append(["geometric mean", "", "", "", *map(report.number, means), ""])
    return report.table(["pipeline", "document to C, ms", "C, characters", "gcc, s", *columns, ""], rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.revisions", description="Against an earlier revision.")
    parser.add_argument("revision", help="a commit, a branch or a tag")
    names = [n for n in pipelines.names() if n not in LONG]
    parser.add_argument("--pipelines", nargs="+", default=names, choices=pipelines.names(), metavar="NAME")
    parser.add_argument("--threads", nargs="*", type=int, default=list(dict.fromkeys((host().threads, 1))))
    parser.add_argument("--repeats", type=int, default=9, help="of the way from document to C")
    parser.add_argument("--rounds", type=int, default=8, help="of calls of the code")
    parser.add_argument("--platform", metavar="NAME|FILE", help="other machines' C is not called")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    here = asked.platform is None
    platform = machine_of(NATIVE, "gcc", host().threads) if here else CpuPlatform.of(_named(asked.platform))
    found: list[Comparison] = []
    with ExitStack() as stack:
        trees = {THIS: ROOT, EARLIER: checkout(asked.revision)}
        sides = {side: stack.enter_context(compiler_of(tree)) for side, tree in trees.items()}
        for name in asked.pipelines:
            report.progress(name)
            found.append(compare(name, sides, platform, asked.repeats, asked.threads if here else (), asked.rounds))
    print(tables(found))
    report.write(asked.json, {"machine": machine.describe(), "comparisons": [asdict(c) for c in found]})
    sys.exit(any(c.failed for c in found))


def _named(name: str) -> platforms.Platform:
    file = Path(name)
    return platforms.load_text(file.read_bytes()) if file.exists() else platforms.load(name)


if __name__ == "__main__":
    main()
