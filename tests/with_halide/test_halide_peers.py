"""Peers are compiled for the instruction set of the build that they are compared in."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from support.modules import require_module

from benchmarks.builds import NATIVE
from benchmarks.halide_peers import target_of
from tilesmith.platforms.cpu.isa import ISAS

require_module("halide")

import halide as hl  # noqa: E402

pytestmark = pytest.mark.halide

SCRIPT = """
import json
from dataclasses import asdict
from pathlib import Path
from benchmarks.halide_peers import build_here
from tilesmith.scheduler import pipelines
print(json.dumps(asdict("""


@pytest.mark.parametrize("isa", ISAS)
def test_targets_have_the_vectors_of_the_instruction_set(isa):
    assert target_of(isa).natural_vector_size(hl.UInt(8)) == ISAS[isa].vector_bytes


def test_without_one_it_is_the_target_of_the_host():
    assert target_of(NATIVE) == hl.get_host_target()


def test_peers_are_kept_by_instruction_set_and_found_where_they_were_moved(tmp_path):
    def made(isa: str, cache: str) -> dict[str, str]:
        """By a process of its own: Halide gives no two functions of one process the same name."""
        call = f"build_here(pipelines.load('blur'), 'expert', 2, Path({str(tmp_path / cache)!r}), isa={isa!r})"
        done = subprocess.run([sys.executable, "-c", SCRIPT + call + ")))"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout.splitlines()[-1])

    first, second = made("sse4.2", "before"), made("avx2", "before")
    assert first["target"] == str(target_of("sse4.2"))
    assert first["library"] != second["library"]
    (tmp_path / "before").rename(tmp_path / "after")
    assert made("avx2", "after") == second | {"library": second["library"].replace("/before/", "/after/")}
