"""Memory of a call: it stays for the next, is given back when asked for or where something fails, and a status says so
where there is none."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from support.buffers import E_MEMORY, E_REGION, OK, invoke, query, view
from support.builds import HOST_BYTES, for_vectors
from support.calls import call
from support.machines import here
from support.native import source_of
from support.shipped import assert_right, loaded, problem
from support.tools import require_compiler

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.search import root_schedule

COUNTED = Path(__file__).parents[1] / "support" / "counted_memory.c"


@pytest.fixture
def counted(tmp_path: Path):
    """Builds a source so that its allocations are counted."""

    def make(source: CSource, *flags: str) -> ctypes.CDLL:
        objects, gcc = [], require_compiler("gcc")
        (tmp_path / source.header_name).write_text(source.header)
        (tmp_path / "generated.c").write_text(source.code)
        shutil.copy(COUNTED, tmp_path)
        renamed = ("-Daligned_alloc=counted_aligned_alloc", "-Dfree=counted_free", *flags)
        for name, more in (("generated.c", renamed), (COUNTED.name, ())):
            objects.append(f"{name}.o")
            command = [gcc, *source.flags, "-O1", *for_vectors(HOST_BYTES), "-fopenmp", "-fPIC", *more, "-c", name]
            subprocess.run([*command, "-o", objects[-1]], cwd=tmp_path, check=True, capture_output=True)
        library = tmp_path / f"{hashlib.sha256(source.code.encode()).hexdigest()}.so"
        subprocess.run([gcc, "-shared", "-fopenmp", "-o", library, *objects, "-lm"], cwd=tmp_path, check=True)
        return ctypes.CDLL(str(library))

    return make


def counter(library: ctypes.CDLL, name: str) -> ctypes.c_int:
    return ctypes.c_int.in_dll(library, f"counted_{name}")


def release(library: ctypes.CDLL, source: CSource) -> None:
    getattr(library, f"{source.entry}_release")()


@pytest.mark.parametrize("how", ["default", "root"])
@pytest.mark.parametrize("name", ["sobel", "unsharp", "interpolate"])
def test_blocks_stay_for_the_next_call_and_every_one_is_freed_whichever_is_missing(
    name: str, how: str, counted
) -> None:
    pipeline = loaded(name)
    if how == "root":
        source = source_of(pipeline, root_schedule(pipeline, here()), here())
    else:
        source = compile_pipeline(pipeline, here()).source
    library = counted(source)
    p = problem(name, "shifted")
    status, got = call(library, source, p.pipeline, p.inputs, {}, p.regions)
    assert status == OK
    assert_right(got, p.expected)
    calls, live = counter(library, "calls"), counter(library, "live")
    blocks = calls.value
    assert live.value == blocks > 0
    status, got = call(library, source, p.pipeline, p.inputs, {}, p.regions)
    assert (status, calls.value, live.value) == (OK, blocks, blocks)
    assert_right(got, p.expected)
    release(library, source)
    assert live.value == 0
    for n in range(1, blocks + 1):
        calls.value, counter(library, "fail_from").value = 0, n
        status, _ = call(library, source, p.pipeline, p.inputs, {}, p.regions)
        assert status == E_MEMORY
        assert live.value == 0


def test_no_block_stays_where_none_is_to(counted) -> None:
    source = compile_pipeline(loaded("unsharp"), here()).source
    library = counted(source, "-DTILESMITH_KEEP=0")
    p = problem("unsharp", "shifted")
    status, got = call(library, source, p.pipeline, p.inputs, {}, p.regions)
    assert status == OK
    assert_right(got, p.expected)
    assert counter(library, "calls").value > 0
    assert counter(library, "live").value == 0


def test_a_block_that_waits_makes_room_for_one_of_another_size(counted) -> None:
    """Images of many sizes in turn: never more blocks than one call uses."""
    pipeline = loaded("blur")
    source = source_of(pipeline, root_schedule(pipeline, here()), here())
    library = counted(source)
    for size in (64, 512, 16, 1024, 8):
        image, out = np.zeros((size + 2, size + 2), np.uint16), np.zeros((size, size), np.uint16)
        assert invoke(library, source, [view(image, (0, 0)), view(out, (0, 0))]) == OK
        assert counter(library, "live").value == 1


def test_calls_at_the_same_time_have_blocks_of_their_own(counted) -> None:
    pipeline = loaded("unsharp")
    source = source_of(pipeline, root_schedule(pipeline, here()), here())
    library = counted(source)
    p = problem("unsharp", "shifted")
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(call, library, source, p.pipeline, p.inputs, {}, p.regions) for _ in range(40)]
        for status, got in (a.result() for a in asked):
            assert status == OK
            assert_right(got, p.expected)
    release(library, source)
    assert counter(library, "live").value == 0


def test_copies_for_other_strides_are_freed(counted) -> None:
    source = compile_pipeline(loaded("blur"), here(), Options("taco2019")).source  # its rows are in a buffer
    library = counted(source)
    image, out = np.zeros((66, 66), np.uint16), np.zeros((64, 64), np.uint16)
    arguments = [view(image.T, (0, 0)), view(out.T, (0, 0))]
    assert invoke(library, source, arguments) == OK
    blocks = counter(library, "calls").value
    assert blocks == counter(library, "live").value == 3
    release(library, source)
    for n in range(1, blocks + 1):
        counter(library, "calls").value, counter(library, "fail_from").value = 0, n
        assert invoke(library, source, arguments) == E_MEMORY
        assert counter(library, "live").value == 0


def test_nothing_is_allocated_for_a_query_or_a_mistake(counted) -> None:
    source = compile_pipeline(loaded("blur"), here(), Options("taco2019")).source  # its rows are in a buffer
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
    source = source_of(pipeline, root_schedule(pipeline, here()), here())
    library = build(source)
    image, out = np.zeros((4, 4)), np.zeros((4, 4))
    asked = view(out, (0, 0))
    asked.extent[0] = asked.extent[1] = 2**31 - 1
    assert invoke(library, source, [view(image, (0, 0)), asked]) == E_MEMORY
