"""Lines by stage, of loop nests and of code: every stage that is stored has some, and no other."""

import pytest

from tilesmith.platforms import load
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.codegen.loopnest import stages_of_lines
from tilesmith.scheduler.codegen.stage_lines import stage_lines
from tilesmith.scheduler.compiler import compile_pipeline


@pytest.mark.parametrize(
    ("name", "machine"),
    [("harris", "i7-6700"), ("harris", "nvidia-a100"), ("bilateral_grid", "nvidia-a100"), ("camera_pipe", "cortex-a53"),
     ("max_filter", "i7-6700")],
)  # fmt: skip
def test_every_stage_in_memory_has_lines(name: str, machine: str) -> None:
    """Lines of C and of OpenCL C. Machines take turns."""
    made = compile_pipeline(pipelines.load(name), load(machine))
    groups = made.schedule.groups
    own = {p.stage: p for g in groups for p in g.placements if p.compute != "inline"}
    run, in_memory = {g.output for g in groups}, {n for n, p in own.items() if p.storage == "memory"}
    nest = stages_of_lines(made.loopnest)
    assert set(nest) - {""} == {*run, *own}
    assert len(nest) == len(made.loopnest.splitlines())
    found = stage_lines(made.source.code, {s.name for s in made.plan.pipeline.stages})
    assert {*run, *in_memory} <= set(found.values()) <= {*run, *own}


def test_a_line_of_a_loop_nest_is_of_the_stage_around_it() -> None:
    text = """# p, method default

group out  # inline: c
  produce out:
    for y.inner in 2:
      allocate a
      keep b in registers, rotating along the vectorised loop
      produce a, what is new of it:
        for x:
          a(x) = ...
      out(x, y) = ...
  update out:
    for r:
      out(...) = ...
"""
    assert stages_of_lines(text) == ("", "", "out", "out", "out", "a", "b", "a", "a", "a", "out", "out", "out", "out")


@pytest.mark.parametrize(
    ("line", "stage"),
    [
        ("  /* a: y.outer, x.outer, y.inner, x.inner */", "a"),
        ("    /* a: computed at y.inner, stored at x.outer */", "a"),
        ("  /* y.inner of a, 1 ahead to fill windows */", "a"),
        ("/* rows of a, b, in the names of the first */", "a"),
        ("  /* update 0 of a: r */", "a"),
        ('    "    /* y.inner of a */\\n",', "a"),
        ("    STORE(f32x8, own->a_14 + (x_2 + 8), t_1);", "a"),
        ("    ts_part_f32x8(a_1 + (x + 8), t_2, 0, 1);", "a"),
        ("    w0.a_before_0 = t_68;", "a"),
        ("    a_1[x_5] = t_25;", "a"),
        ("    if (x_1 >= 0 && x_1 <= 9) a_1[x_1] = t_25;", "a"),
        ('    "                    a_1[x_5] = t_25;\\n",', "a"),
        ('    "        vstore4(t_3, 0, a_1 + x_2);\\n",', "a"),
        ("    const float a_2 = a_1[x_5];", None),
        ("    a_1 = t_2;", None),
        ("  /* whole vectors */", None),
        ("  f32x8 a_before_0, a_before_1;", None),
        ("    ts_ask_ends(a_1, 2);", None),
    ],
)
def test_lines_that_compute_a_stage(line: str, stage: str | None) -> None:
    assert stage_lines(line, {"a", "b"}) == ({} if stage is None else {1: stage})
