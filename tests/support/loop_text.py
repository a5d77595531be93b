"""Text of the loop program of a pipeline, as a pass finds it: where to take inputs of cases of passes from.

.venv/bin/python tests/support/loop_text.py blur --before carry-vectors --vector-bytes 32
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
if __name__ == "__main__":
    sys.path[:1] = [str(ROOT), str(ROOT / "tests")]

from support.machines import machine  # noqa: E402

from tilesmith.scheduler import pipelines  # noqa: E402
from tilesmith.scheduler.frontends.document.document import load_text  # noqa: E402
from tilesmith.scheduler.ir.loop.printer import print_program  # noqa: E402
from tilesmith.scheduler.ir.loop.program import Program  # noqa: E402
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline  # noqa: E402
from tilesmith.scheduler.ir.schedule.schedule import Schedule  # noqa: E402
from tilesmith.scheduler.loop_passes.passes import PASSES  # noqa: E402
from tilesmith.scheduler.lowering import lower  # noqa: E402
from tilesmith.scheduler.rewrites.passes import rewrite  # noqa: E402
from tilesmith.scheduler.search import autoschedule  # noqa: E402


def before(name: str | None, pipeline: Pipeline, schedule: Schedule | None = None, vector_bytes: int = 64) -> Program:
    """The program that the pass of that name is given, by the default schedule if there is no other; None: what the
    last one leaves."""
    platform = machine(vector_bytes=vector_bytes)
    plan = autoschedule(pipeline, platform).plan if schedule is None else rewrite(pipeline, schedule)
    program = lower(plan, platform)
    for p in PASSES.passes:
        if p.name == name:
            break
        program = p.run(program)
    return program


def changes(name: str, pipeline: Pipeline, schedule: Schedule, vector_bytes: int = 64) -> bool:
    """Whether the pass of that name finds anything to do: a test of values that it keeps is one of nothing without."""
    program = before(name, pipeline, schedule, vector_bytes)
    (run,) = (p.run for p in PASSES.passes if p.name == name)
    return run(program) != program


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("pipeline", help="a shipped pipeline, or the file of a document")
    parser.add_argument("--before", choices=[p.name for p in PASSES.passes], help="default: after all of them")
    parser.add_argument("--vector-bytes", type=int, default=64)
    asked = parser.parse_args()
    shipped = asked.pipeline in pipelines.names()
    pipeline = pipelines.load(asked.pipeline) if shipped else load_text(Path(asked.pipeline).read_bytes(), yaml=True)
    print(print_program(before(asked.before, pipeline, None, asked.vector_bytes)), end="")


if __name__ == "__main__":
    main()
