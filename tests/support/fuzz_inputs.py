"""Coverage-guided fuzzing of what reads untrusted input, by atheris, for so many seconds.

    python tests/support/fuzz_inputs.py documents|expressions|strategies|... [--seconds 3600] [--seed 1]
    python tests/support/fuzz_inputs.py documents --replay FILE

`make fuzz-inputs` runs it. An input is wrong where anything but a documented refusal leaves its reader, where it takes
more than SECONDS of CPU time or MEMORY_BYTES, or where the same input gives something else the second time. The fuzzer
runs in a process of its own, which begins anew after a crash; what it finds is judged again, alone, in a process
that is not instrumented, and kept in out/fuzz-inputs/TARGET/wrong. The corpus grows in the folder beside it.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import resource
import signal
import subprocess
import sys
import time
import traceback
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "support")]

from support.fuzz_targets import TARGETS, Target  # noqa: E402

SECONDS = 5
MEMORY_BYTES = 500 << 20
MOST_BYTES = 64 << 10
SLOWER = 4
"""Times that the limits are as high in the fuzzer itself: its code is instrumented, and its memory is that of many."""
REPEATED = 8
"""One input of so many is read twice."""


class Endless(BaseException):
    """The input has taken its time; no reader catches it."""


@contextmanager
def _limited(times: int) -> Iterator[None]:
    """Endless, and MemoryError, beyond so many times the limits."""

    def over(*_: object) -> None:
        raise Endless(f"more than {SECONDS} s")

    status = Path("/proc/self/status").read_text(encoding="ascii")
    (held,) = re.findall(r"VmData:\s+(\d+) kB", status)
    before = signal.signal(signal.SIGPROF, over), resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, ((int(held) << 10) + times * MEMORY_BYTES, before[1][1]))
    signal.setitimer(signal.ITIMER_PROF, times * SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before[0])
        resource.setrlimit(resource.RLIMIT_DATA, before[1])


def judge(target: Target, content: bytes, times: int = 1, twice: bool = True) -> tuple[str, str] | None:
    """What is wrong with how the target reads the input: a short name of it, and all that is known. None: nothing."""
    try:
        with warnings.catch_warnings(), _limited(times):
            warnings.simplefilter("error", RuntimeWarning)
            first = target.read(content)
            if twice and target.read(content) != first:
                return "another answer", "read twice, the input gave two answers"
    except (Exception, Endless) as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if "tilesmith/" in f.filename] or frames
        name = type(error).__name__
        if not isinstance(error, (Endless, MemoryError)):  # these end anywhere
            name += f" {Path(ours[-1].filename).stem}.{ours[-1].name}:{ours[-1].lineno}"
        return name, "".join(traceback.format_exception(error))
    return None


def fuzz(name: str, seconds: float, seed: int, out: Path) -> int:
    """Runs the fuzzer for so many seconds and tells how it goes; the number of inputs that are wrong."""
    begin, executions, wrong = time.monotonic(), 0, dict[str, Path]()
    folder = out / name
    for part in ("corpus", "candidates", "wrong"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    _write_seeds(TARGETS[name], folder)
    while (left := seconds - (time.monotonic() - begin)) >= 1:
        log = folder / "log"
        options = [f"-max_total_time={int(left)}", f"-seed={seed}", f"-artifact_prefix={folder}/candidates/crash-"]
        options += [f"-max_len={MOST_BYTES}", f"-timeout={8 * SLOWER * SECONDS}", f"-rss_limit_mb={4 << 10}"]
        options += [f"-dict={folder}/words", "-print_final_stats=1", f"{folder}/corpus"]
        command = [sys.executable, __file__, name, "--out", str(out), "--instrumented", *options]
        with log.open("w") as file:
            status = subprocess.run(command, stdout=file, stderr=file, check=False).returncode
        said = log.read_text(encoding="utf-8", errors="replace")
        count = re.findall(r"^stat::number_of_executed_units:\s*(\d+)|^#(\d+)\t", said, re.MULTILINE)
        executions += max((int(a or b) for a, b in count), default=0)
        for candidate in sorted((folder / "candidates").iterdir()):
            found = _judged_alone(name, candidate)
            if found is not None and found[0] not in wrong:
                wrong[found[0]] = _keep(folder, candidate, found)
                print(f"{found[0]}\n  {sys.executable} {__file__} {name} --replay {wrong[found[0]]}", flush=True)
            candidate.unlink()
        covered = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", said)
        spent = time.monotonic() - begin
        told = "" if not covered else "coverage {}, features {}, corpus {}, ".format(*covered[-1])
        print(f"{name}: {executions:,} inputs in {spent:.0f} s, {told}{len(wrong)} wrong", flush=True)
        if not count:
            print(said[-2000:])
            return len(wrong) + 1
        seed += 1
        if status == 0:
            break
    return len(wrong)


def _write_seeds(target: Target, folder: Path) -> None:
    for content in target.seeds():
        (folder / "corpus" / hashlib.sha1(content).hexdigest()).write_bytes(content)
    escaped = ("".join(f"\\x{b:02x}" for b in word.encode()) for word in dict.fromkeys(target.words()))
    (folder / "words").write_text("".join(f'"{word}"\n' for word in escaped), encoding="ascii")


def _judged_alone(name: str, file: Path) -> tuple[str, str] | None:
    """The verdict of a fresh process."""
    command = [sys.executable, __file__, name, "--replay", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return None
    if done.returncode == 1:
        short, _, told = done.stdout.partition("\n")
        return short, told
    return f"ended by {done.returncode}", done.stdout + done.stderr


def _keep(folder: Path, file: Path, found: tuple[str, str]) -> Path:
    kept = folder / "wrong" / re.sub(r"\W+", "-", found[0])
    kept.write_bytes(file.read_bytes())
    kept.with_name(f"{kept.name}.txt").write_text(f"{found[0]}\n{found[1]}", encoding="utf-8")
    return kept


def _run_instrumented(name: str, folder: Path, options: list[str]) -> None:
    """Does not return: the fuzzer ends the process."""
    import atheris

    target, seen = TARGETS[name], set[str]()
    with atheris.instrument_imports(include=list(target.instrumented)):
        target.read(next(target.seeds()))

    def one(content: bytes) -> None:
        found = judge(target, content, SLOWER, zlib.crc32(content) % REPEATED == 0)
        if found is not None and found[0] not in seen:
            seen.add(found[0])
            (folder / "candidates" / hashlib.sha1(content).hexdigest()).write_bytes(content)

    def mutated(content: bytes, most: int, seed: int) -> bytes:
        return target.mutated(Random(seed), content, atheris.Mutate, most)[:most]

    atheris.Setup([sys.argv[0], *options], one, custom_mutator=mutated)
    atheris.Fuzz()


def _replay(target: Target, file: Path) -> int:
    """Judges one input in this process; its first reading is for what is loaded once."""
    target.read(next(target.seeds()))
    found = judge(target, file.read_bytes())
    if found is None:
        print("not wrong")
        return 0
    print("\n".join(found))
    return 1


def main(arguments: list[str] | None = None) -> int:
    """The status: 1 where an input is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=[*TARGETS, "api"])
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "fuzz-inputs")
    parser.add_argument("--replay", type=Path, metavar="FILE")
    parser.add_argument("--instrumented", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    a = parser.parse_args(arguments)
    if a.target == "api":
        from support import fuzz_api

        return fuzz_api.main(["--seconds", str(a.seconds), "--seed", str(a.seed)])
    if a.replay is not None:
        return _replay(TARGETS[a.target], a.replay)
    if a.instrumented is not None:
        _run_instrumented(a.target, a.out / a.target, a.instrumented)
    return 1 if fuzz(a.target, a.seconds, a.seed, a.out) else 0


if __name__ == "__main__":
    sys.exit(main())
