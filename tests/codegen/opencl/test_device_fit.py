"""Schedules that fit a device, and others: local memory, coalesced accesses, enough work-groups."""

from __future__ import annotations

import pytest
from support.opencl import device
from support.shipped import scheduled

from tilesmith.platforms.catalog import get
from tilesmith.scheduler.codegen.opencl.device_fit import Misfit, misfits
from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.strategies.document import load_text

LOOPS = ("x.inner", "y.inner", "x.outer", "y.outer")
PIPELINE: Pipeline = load(
    {
        "format": 1,
        "name": "small",
        "inputs": [{"name": "f", "type": "float32", "dims": ["x", "y"]}],
        "stages": [
            {"name": "h", "dims": ["x", "y"], "value": "f(x, y) * 2.0"},
            {"name": "g", "dims": ["x", "y"], "value": "h(x, y) + h(x, y + 1)"},
        ],
        "outputs": ["g"],
        "estimates": {"g": [[0, 1024], [0, 768]]},
    }
)


def found(tile: int, width: int | None, **changes: object) -> tuple[Misfit, ...]:
    """Misfits of strips of so many rows, in tiles of so many columns, with what each of them reads in its memory."""
    inside = Placement("h", "x.outer", "x.outer", order=("x", "y"), vector=Vector("x", 8))
    group = Group("g", LOOPS, (Tile("x", width), Tile("y", tile)), "y.outer", Vector("x", 8), (), (inside,))
    plan = rewrite(PIPELINE, Schedule("small", "by hand", (group,)))
    return misfits(plan, device("gpu", **{"compute_units": 16, "local_memory_bytes": 65536, **changes}))


def test_strips_for_every_unit_whose_buffers_are_in_local_memory_fit() -> None:
    assert found(16, 512) == ()


def test_buffers_of_a_work_group_are_held_against_local_memory() -> None:
    (misfit,) = found(16, 1024)
    assert (misfit.rule, misfit.why) == ("local memory", "work-groups keep 73,984 bytes, local memory has 65,536")
    assert found(16, 1024, local_memory_bytes=131072) == ()
    assert found(16, 1024, local_memory_dedicated=False) == ()


def test_units_without_work_are_counted() -> None:
    (misfit,) = found(128, 64)
    assert (misfit.rule, misfit.why) == ("work-groups", "6 work-groups for 16 compute units")
    assert found(64, 128) == ()  # twelve are three quarters


def test_rows_that_are_not_neighbours_in_memory_are_not_coalesced() -> None:
    document = {
        "format": 1,
        "name": "evens",
        "inputs": [{"name": "f", "type": "float32", "dims": ["x"]}],
        "stages": [
            {
                "name": "g",
                "dims": ["x"],
                "value": "0.0",
                "updates": [{"at": ["2 * r"], "value": "f(r)", "domain": {"r": [0, 100000]}}],
            }
        ],
        "outputs": ["g"],
        "estimates": {"g": [[0, 200000]]},
    }
    rules = {
        shape: [m.rule for m in misfits(compile_pipeline(load(document), device(shape)).plan, device(shape))]
        for shape in ("cpu", "gpu")
    }
    assert "coalesced" in rules["gpu"]
    assert "coalesced" not in rules["cpu"]  # one work-item has no neighbours


def test_windows_in_registers_keep_a_row_to_one_work_item() -> None:
    text = "strategy: s\nsteps: [{at: {stage: blur_y, do: [{tile: {sizes: {y: 8}}}, parallel, vectorize]}}, %s]"
    kinds = {"fits": "{inline: {stage: rows}}", "rotates": "{rotate_registers: {stage: rows}}"}
    document = {
        "format": 1,
        "name": "box",
        "inputs": [{"name": "f", "type": "float32", "dims": ["x", "y"]}],
        "stages": [
            {"name": "rows", "dims": ["x", "y"], "value": "f(x, y) + f(x, y + 1)"},
            {"name": "blur_y", "dims": ["x", "y"], "value": "rows(x, y) + rows(x + 1, y) + rows(x + 2, y)"},
        ],
        "outputs": ["blur_y"],
        "estimates": {"blur_y": [[0, 1024], [0, 768]]},
    }
    pipeline, machine = load(document), device("gpu")
    made = {
        kind: misfits(compile_pipeline(pipeline, machine, Options(strategy=load_text(text % step))).plan, machine)
        for kind, step in kinds.items()
    }
    assert "coalesced" not in {m.rule for m in made["fits"]}
    assert "coalesced" in {m.rule for m in made["rotates"]}


@pytest.mark.parametrize("name", ["blur", "sobel", "machado_blur"])
def test_a_shipped_pipeline_fits_a_gpu_by_default(name: str) -> None:
    machine = get("nvidia-a100")
    assert misfits(scheduled(name, machine).plan, machine) == ()


def test_other_machines_have_no_such_rules() -> None:
    machine = get("i7-6700")
    assert misfits(scheduled("blur", machine).plan, machine) == ()
