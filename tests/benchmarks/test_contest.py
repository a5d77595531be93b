"""Contests: who disagrees or dies is told apart from who is timed. No figure is asserted."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.tools import require_tool

from benchmarks import compare, contest, report
from benchmarks.builds import NATIVE, machine_of
from benchmarks.contest import Entry
from benchmarks.figures import Figure, as_data, median
from benchmarks.problem import Problem, at_estimates, at_regions
from tilesmith.app.bench.agreement import ContenderError, agreement
from tilesmith.app.bench.memory import allocate, layout
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.frontends.document.document import load

RIGHT = "o[y * ob->stride[1] + x] = (uint16_t)(row(y) + row(y + 1) + row(y + 2)) / 3;"
KERNELS = {
    "right": RIGHT,
    "wrong": RIGHT.replace("/ 3", "/ 3 + (x == 5 && y == 2)"),
    "dying": "abort();",
}
SOURCE = """
#include <stdint.h>
#include <stdlib.h>
typedef struct { void *data; int32_t dims; int32_t min[5], extent[5]; int64_t stride[5]; } buffer;
#define row(r) ((uint16_t)((uint16_t)(i[(r) * ib->stride[1] + x] + i[(r) * ib->stride[1] + x + 1] \\
                + i[(r) * ib->stride[1] + x + 2]) / 3))
int32_t kernel_argv(void **arguments) {
    buffer *ib = arguments[0], *ob = arguments[1];
    const uint16_t *i = ib->data;
    uint16_t *o = ob->data;
    for (int y = 0; y < ob->extent[1]; y++)
        for (int x = 0; x < ob->extent[0]; x++) { KERNEL }
    return STATUS;
}
"""


@pytest.fixture(scope="module")
def problem() -> Problem:
    return replace(at_regions(pipelines.load("blur"), {"blur_y": ((3, 17), (-2, 9))}), document="blur")


def built(folder: Path, name: str, kernel: str, status: int = 0) -> Entry:
    source, library = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text(SOURCE.replace("KERNEL", kernel).replace("STATUS", str(status)))
    subprocess.run([require_tool("gcc"), "-shared", "-fPIC", "-o", library, source], check=True)
    return Entry(name, "tilesmith", str(library), "kernel")


def test_only_who_agrees_is_timed(problem: Problem, tmp_path: Path) -> None:
    entries = [
        built(tmp_path, "right", KERNELS["right"]),
        built(tmp_path, "wrong", KERNELS["wrong"]),
        built(tmp_path, "dying", KERNELS["dying"]),
        built(tmp_path, "refusing", KERNELS["right"], status=3),
        Entry("absent", "tilesmith", str(tmp_path / "none.so"), "kernel"),
        Entry("numpy", "numpy"),
    ]
    results = {r.name: r for r in contest.run(problem, entries, threads=1, rounds=2)}
    assert list(results) == [e.name for e in entries]
    assert results["right"].error is None
    assert results["numpy"].error is None
    assert len(results["right"].rounds_ms) == len(results["numpy"].rounds_ms) == 2
    assert results["wrong"].error == "disagrees in 1 of 153 values"
    assert "exit status -6" in str(results["dying"].error)
    assert "the library returned 3" in str(results["refusing"].error)
    assert "none.so" in str(results["absent"].error)
    assert all(not results[name].rounds_ms for name in ("wrong", "dying", "refusing", "absent"))


def test_every_stage_at_root_takes_part(problem: Problem) -> None:
    able, unable = compare.entries(problem, [compare.AT_ROOT], "taco2019", machine_of(NATIVE, "gcc", 1))
    results = contest.run(problem, able, threads=1, rounds=1)
    assert [(r.name, r.error) for r in results] == [("tilesmith", None), ("tilesmith at root", None)]
    assert unable == []
    first, second = (e.about["schedule"].splitlines()[0] for e in able)
    assert (first, second) == ("# blur, method taco2019", "# blur, method root")


def test_agreement_of_floats_is_relative_to_the_largest() -> None:
    a = np.array([0.0, 1000.0, np.inf, np.nan], np.float32)
    assert agreement([a], [a]) == 0
    assert agreement([a], [a + np.float32(0.0625)]) == pytest.approx(6.25e-5)
    with pytest.raises(ContenderError, match="largest magnitude"):
        agreement([a], [a + np.float32(0.5)])
    with pytest.raises(ContenderError, match="finite"):
        agreement([a], [np.zeros(4, np.float32)])
    with pytest.raises(ContenderError, match="float64"):
        agreement([a], [a.astype(np.float64)])
    with pytest.raises(ContenderError, match="0 outputs"):
        agreement([a], [])


def test_floats_may_choose_otherwise_in_fewer_places_than_a_column_has() -> None:
    """Integers that are made of floats may differ at few places; a column at an edge is a defect."""
    a = np.zeros((3, 40, 500), np.uint8)
    few, column = a.copy(), a.copy()
    few[1, 7, :39], column[0, :, 0] = 200, 200
    assert agreement([a], [few], cut=[True]) == 0
    for wrong, cut in ((few, False), (column, True)):
        with pytest.raises(ContenderError, match="disagrees in"):
            agreement([a], [wrong], cut=[cut])


def test_single_integers_agree_as_images_do() -> None:
    """Outputs without dims have no rows or columns."""
    a = np.array(3, np.int32)
    assert agreement([a], [a.copy()]) == 0
    with pytest.raises(ContenderError, match="disagrees in 1 of 1"):
        agreement([a], [a + np.int32(2)], cut=[True])


def test_arrays_lie_in_memory_as_storage_says() -> None:
    assert layout((5, 7, 3), (2, 0, 1)) == (3, 15, 1)
    array = allocate(np.dtype(np.float32), (5, 7, 3), (3, 15, 1))
    assert array.shape == (3, 7, 5)
    assert [s // 4 for s in reversed(array.strides)] == [3, 15, 1]
    assert array.ctypes.data % 128 == 0


def test_losses_name_who_is_faster_and_who_fails() -> None:
    mine = {"name": "tilesmith", "error": None, "ratio": 1.0, "best_ms": 2.0}
    peers = [
        {"name": "a", "error": None, "ratio": 1.25, "best_ms": 1.6},
        {"name": "b", "error": None, "ratio": 0.5, "best_ms": 4.0},
        {"name": "c", "error": "died", "ratio": None, "best_ms": None},
    ]
    contests = [{"pipeline": "p", "contenders": [mine, *peers]}]
    assert [line.split(":")[1].split()[0] for line in compare.losses(contests)] == ["a"]
    assert compare.losses(contests, against=["b", "c"]) == []
    failed = [{"pipeline": "p", "contenders": [mine | {"error": "no"}]}]
    assert compare.losses(failed) == ["p: ours fails: no"]


def test_figures_say_whether_they_held() -> None:
    held, missed, information = median("a", [3.0, 1.0, 2.0], 2.5), Figure("b", 9, "ms", 9), Figure("c", 1, "x")
    assert [d["held"] for d in as_data([held, missed, information])] == [True, False, True]
    assert held.value == 2


def test_tables_line_up() -> None:
    lines = report.table(["name", "ms"], [["a", "1"], ["long one", "12.34"]]).splitlines()
    assert len({len(line) for line in lines}) == 1


def test_an_input_of_other_dims_than_the_outputs_is_as_large_as_what_they_read() -> None:
    """Cells of an image with a boundary: it would be one of four places each way."""
    place = "image(8 * i + s, 8 * j + t, 0) + image(8 * i - 1, 8 * j, 2)"
    cells = {"name": "cells", "dims": ["i", "j"], "value": f"sum({place} for s in range(8) for t in range(8))"}
    image = {"name": "image", "type": "float32", "dims": ["x", "y", "c"], "boundary": {"kind": "repeat_edge"}}
    document = {
        "format": 1, "name": "p", "inputs": [image], "stages": [cells], "outputs": ["cells"],
        "estimates": {"cells": [[0, 20], [0, 10]]},
    }  # fmt: skip
    assert at_estimates(load(document)).input_regions["image"] == ((-1, 161), (0, 80), (0, 4))


def test_an_input_that_an_output_reads_at_twice_the_rate_is_as_large_as_what_it_reads() -> None:
    image = {"name": "image", "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}
    out = {"name": "out", "dims": ["x", "y"], "value": "image(2 * x, y - 1) + image(2 * x + 1, y + 1)"}
    document = {
        "format": 1, "name": "p", "inputs": [image], "stages": [out], "outputs": ["out"],
        "estimates": {"out": [[0, 20], [0, 10]]},
    }  # fmt: skip
    assert at_estimates(load(document)).input_regions["image"] == ((0, 40), (0, 10))
