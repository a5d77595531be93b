"""Scratch memory: freed on every path, and a status where there is none."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.buffers import E_MEMORY, E_REGION, OK, invoke, query, view
from support.machines import machine
from support.native import call, source_of
from support.shipped import assert_right, loaded, problem

from scheduler.compile import compile_pipeline
from scheduler.emit.csource import CSource
from scheduler.lang.document import load
from scheduler.search import root_schedule

COUNTED = Path(__file__).parents[1] / "support" / "counted_memory.c"


@pytest.fixture
def counted(tmp_path: Path):
    """Builds a source so that its allocations are counted."""

    def make(source: CSource) -> ctypes.CDLL:
        objects = []
        (tmp_path / source.header_name).write_text(source.header)
        (tmp_path / "generated.c").write_text(source.code)
        shutil.copy(COUNTED, tmp_path)
        renamed = ("-Daligned_alloc=counted_aligned_alloc", "-Dfree=counted_free")
        for name, more in (("generated.c", renamed), (COUNTED.name, ())):
            objects.append(f"{name}.o")
            command = ["gcc", *source.flags, "-O1", "-march=native", "-fopenmp", "-fPIC", *more, "-c", name, "-o"]
            subprocess.run([*command, objects[-1]], cwd=tmp_path, check=True, capture_output=True)
        library = tmp_path / f"{hashlib.sha256(source.code.encode()).hexdigest()}.so"
        subprocess.run(["gcc", "-shared", "-fopenmp", "-o", library, *objects, "-lm"], cwd=tmp_path, check=True)
        return ctypes.CDLL(str(library))

    return make


def counter(library: ctypes.CDLL, name: str) -> ctypes.c_int:
    return ctypes.c_int.in_dll(library, f"counted_{name}")


@pytest.mark.parametrize("how", ["taco2019", "root"])
@pytest.mark.parametrize("name", ["blur", "unsharp", "interpolate"])
def test_every_block_is_freed_whichever_is_missing(name: str, how: str, counted) -> None:
    pipeline = loaded(name)
    if how == "root":
        source = source_of(pipeline, root_schedule(pipeline, machine()), machine())
    else:
        source = compile_pipeline(pipeline, machine()).source
    library = counted(source)
    p = problem(name, "shifted")
    status, got = call(library, source, p.pipeline, p.inputs, {}, p.regions)
    assert status == OK
    assert_right(got, p.expected)
    blocks = counter(library, "calls").value
    assert blocks > 0
    assert counter(library, "live").value == 0
    for n in range(1, blocks + 1):
        counter(library, "calls").value, counter(library, "fail_at").value = 0, n
        status, _ = call(library, source, p.pipeline, p.inputs, {}, p.regions)
        assert status == E_MEMORY
        assert counter(library, "calls").value == n
        assert counter(library, "live").value == 0


def test_copies_for_other_strides_are_freed(counted) -> None:
    source = compile_pipeline(loaded("blur"), machine()).source
    library = counted(source)
    image, out = np.zeros((66, 66), np.uint16), np.zeros((64, 64), np.uint16)
    arguments = [view(image.T, (0, 0)), view(out.T, (0, 0))]
    assert invoke(library, source, arguments) == OK
    blocks = counter(library, "calls").value
    assert blocks == 3
    for n in range(1, blocks + 1):
        counter(library, "calls").value, counter(library, "fail_at").value = 0, n
        assert invoke(library, source, arguments) == E_MEMORY
        assert counter(library, "live").value == 0


def test_nothing_is_allocated_for_a_query_or_a_mistake(counted) -> None:
    source = compile_pipeline(loaded("blur"), machine()).source
    library = counted(source)
    out = view(memory := np.zeros((64, 64), np.uint16), (0, 0))
    assert invoke(library, source, [query(((0, 0), (0, 0))), out]) == E_REGION
    assert invoke(library, source, [view(memory, (0, 0)), out]) == E_REGION
    assert counter(library, "calls").value == 0


def test_sizes_beyond_all_memory_are_a_status() -> None:
    """2^31 - 1 squared elements: neither an overflow nor a crash. The image is never touched."""
    from support.native import build

    document = {
        "format": 1,
        "name": "huge",
        "inputs": [{"name": "input", "type": "float64", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
        "stages": [
            {"name": "a", "dims": ["x", "y"], "value": "input(x, y) + 1.0"},
            {"name": "b", "dims": ["x", "y"], "value": "a(x - 1, y) + a(x + 1, y - 1)"},
        ],
        "outputs": ["b"],
        "estimates": {"b": [[0, 64], [0, 64]]},
    }
    pipeline = load(document)
    source = source_of(pipeline, root_schedule(pipeline, machine()), machine())
    library = build(source, ("-O1", "-march=native"))
    image, out = np.zeros((4, 4)), np.zeros((4, 4))
    asked = view(out, (0, 0))
    asked.extent[0] = asked.extent[1] = 2**31 - 1
    assert invoke(library, source, [view(image, (0, 0)), asked]) == E_MEMORY
