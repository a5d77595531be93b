"""Windows that are split compute what whole ones do: at root, by the method, and by hand with halves in registers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.calls import call
from support.machines import here
from support.native import build, source_of
from support.shipped import loaded

from tilesmith.scheduler.codegen.halide.source import to_cpp
from tilesmith.scheduler.codegen.loopnest import to_text
from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.document import from_document, to_document
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Separation, Tile, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import normalise, rewrite
from tilesmith.scheduler.search import autoschedule, root_schedule
from tilesmith.scheduler.search.separable_choice import separate

MORPHOLOGY = load(
    {
        "format": 1,
        "name": "opened",
        "inputs": [{"name": "input", "type": "uint8", "dims": ["x", "y"], "boundary": {"kind": "mirror_interior"}}],
        "stages": [
            {
                "name": "eroded",
                "dims": ["x", "y"],
                "value": "min(input(x + i, y + j) for j in range(-2, 3) for i in range(-3, 4))",
            },
            {
                "name": "out",
                "dims": ["x", "y"],
                "value": "max(eroded(x + i, y + j) for j in range(-2, 3) for i in range(-3, 4))",
            },
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 256], [0, 256]]},
    }
)
SIZES = ((1, 1), (5, 3), (33, 9), (64, 17))


def pipeline(name: str) -> Pipeline:
    return MORPHOLOGY if name == "opened" else loaded(name)


def search(of: Pipeline, strict: bool = False) -> tuple[Separation, ...]:
    plan = rewrite(of, Schedule(of.name, "", (), strict))
    return separate(plan, gather(plan.pipeline)).plan.schedule.separations


@pytest.mark.parametrize("method", ["root", "taco2019"])
@pytest.mark.parametrize("name", ["harris", "sobel", "opened"])
def test_what_the_search_separates(name: str, method: str) -> None:
    of = pipeline(name)
    cut = Schedule(of.name, "none", (), separations=search(of))
    assert cut.separations
    parts = rewrite(of, cut).pipeline
    found = root_schedule(parts, here()) if method == "root" else autoschedule(parts, here()).schedule
    judge(of, replace(found, separations=cut.separations))


def harris_by_rows() -> Schedule:
    """Everything in one loop over rows: gradients in rings, all that is read along the row only in registers."""
    rows, vectors = ("y.inner", "y.outer"), ("x.inner", "y.inner")
    separations = search(pipeline("harris"))
    x16 = Vector("x", 16)
    placements = []
    for name in rewrite(pipeline("harris"), Schedule("harris", "", (), separations=separations)).pipeline.stages[:-1]:
        at, storage = (rows, "memory") if name.name in ("gray", "Ix", "Iy") else (vectors, "registers")
        if name.name in ("Ixx", "Iyy", "Ixy", "Ix_y", "Iy_y", "Sxx", "Syy", "Sxy", "det", "trace"):
            placements.append(Placement(name.name, INLINE, INLINE))
        else:
            placements.append(Placement(name.name, *at, storage=storage, order=("x", "y"), vector=x16))  # type: ignore[arg-type]
    group = Group("output", ("x.inner", "y.inner", "y.outer"), (Tile("y", 32),), "y.outer", x16, (), tuple(placements))
    return Schedule("harris", "hand", (group,), separations=separations)


def test_halves_in_registers() -> None:
    chosen = harris_by_rows()
    check(rewrite(loaded("harris"), chosen))
    judge(loaded("harris"), chosen)


def test_said() -> None:
    chosen = harris_by_rows()
    assert from_document(to_document(chosen)) == chosen
    assert "# Sxx_y: window 0 of Sxx, the part along y\n" in to_text(rewrite(loaded("harris"), chosen))
    printed = to_cpp(rewrite(loaded("harris"), chosen))
    assert "// Not said: the separation 'Sxx_y' of 'Sxx': its window is computed whole" in printed
    assert "Sxx_y" not in printed.replace("separation 'Sxx_y'", "")


def test_refused() -> None:
    with pytest.raises(IllegalSchedule, match=r"separation 'Ix_y' of stage 'Ix' along 'y': .* strict"):
        check(rewrite(loaded("harris"), replace(harris_by_rows(), strict=True)))
    with pytest.raises(IllegalSchedule, match=r"stage 'Ix_y': no output of the pipeline needs a stage of this name"):
        check(rewrite(loaded("harris"), replace(harris_by_rows(), separations=())))


def judge(of: Pipeline, chosen: Schedule) -> None:
    check(rewrite(of, chosen))
    source = source_of(of, chosen, here())
    library = build(source)
    rng = np.random.default_rng(3)
    (output,) = of.outputs
    for width, height in SIZES:
        regions = {output: ((3, width), (-2, height))}
        boxes = {i.name: ((2, 41), (3, 23)) for i in of.inputs}
        needed = required_regions(normalise(of), regions, {}, {n: b for n, b in boxes.items() if of.input(n).boundary})
        images = {}
        for i in of.inputs:
            box = boxes[i.name] if i.boundary else needed[i.name]
            shape = [n for _, n in reversed(box)]
            data = rng.random(shape) if i.type.is_float else rng.integers(0, 256, shape)
            images[i.name] = Image(data.astype(i.type.numpy), tuple(lo for lo, _ in box))
        expected = interpret(of, images, {}, regions)[output][0]
        status, got = call(library, source, of, images, {}, regions)
        assert status == 0
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(got[output][0], expected, rtol=0, atol=1e-5 * float(np.abs(expected).max()))
        else:
            np.testing.assert_array_equal(got[output][0], expected)
