"""Outputs that one group computes together are what they are one by one; what cannot be joined is refused, with why."""

from __future__ import annotations

from dataclasses import replace
from itertools import count, islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from support.machines import here
from support.native import source_of
from support.random_cases import case_of, judge
from support.tools import require_tool

from tilesmith.app.runtime.build import build
from tilesmith.app.runtime.regions import largest_regions
from tilesmith.app.runtime.run import run
from tilesmith.scheduler.codegen.halide.source import to_cpp, to_python
from tilesmith.scheduler.codegen.loopnest import to_text
from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.pipeline.arguments import ArgumentError
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.difference import differences
from tilesmith.scheduler.ir.schedule.document import from_document, to_document
from tilesmith.scheduler.ir.schedule.schedule import Group, Joining, Schedule
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import SearchOptions, autoschedule, root_schedule
from tilesmith.scheduler.search.output_fusion import together, ways

GRADIENT = {
    "smooth": ["x", "y", "(img(x - 1, y) + 2 * int32(img(x, y)) + img(x + 1, y)) * 0.25"],
    "gx": ["x", "y", "smooth(x + 1, y) - smooth(x - 1, y)"],
    "gy": ["x", "y", "smooth(x, y + 1) - smooth(x, y - 1)"],
    "strong": ["x", "y", "abs(gx(x, y)) + abs(gy(x, y)) > 9"],
}


def pipeline(
    stages: dict[str, list], outputs: list[str], sizes: dict[str, list] | None = None, boundary: bool = True
) -> Pipeline:
    """Stages as their dims and, last, their value."""
    image: dict = {"name": "img", "type": "uint8", "dims": ["x", "y"]}
    if boundary:
        image["boundary"] = {"kind": "repeat_edge"}
    return load(
        {
            "format": 1,
            "name": "gradient",
            "inputs": [image],
            "stages": [{"name": n, "dims": dims, "value": value} for n, (*dims, value) in stages.items()],
            "outputs": outputs,
            "estimates": {o: (sizes or {}).get(o, [[0, 4096], [0, 2048]][: len(stages[o]) - 1]) for o in outputs},
        }
    )


def joining(of: Pipeline, copied: bool = False) -> Schedule:
    normal = rewrite(of, Schedule(of.name, "", ())).pipeline
    return Schedule(of.name, "by hand", (), joinings=together(normal, copied))


ALL = pipeline(GRADIENT, ["strong", "gy", "gx"])
SOME = pipeline(
    {
        **{name: stage for name, stage in GRADIENT.items() if name != "strong"},
        "both": ["x", "y", ["gx(x, y) * 2", "int32(x) + img(x, y)"]],
        "column": ["y", "img(3, y) + 1"],
        "shifted": ["x", "y", "gy(x + 1, y)"],
    },
    ["column", "gx", "gy", "both", "shifted"],
)
STEPS = pipeline(
    {
        "e": ["x", "y", "img(x, y) - img(x, y - 1)"],
        "f": ["x", "y", ["img(x, y) - img(x - 1, y) + e(x, y)", "int32(img(x, y)) * 3"]],
        "h": ["x", "y", "int32(img(x, y)) - f(x + 1, y)[0] + f(x, y + 1)[1] - e(x, y)"],
        "near": ["x", "y", "h(x, y) + e(x, y)"],
    },
    ["e", "f", "h", "near"],
)


def test_outputs_alike_are_joined_but_those_that_others_read() -> None:
    assert ways(ALL) == ((Joining(("strong", "gy", "gx"), "strong_gy_gx"),),)
    without = Joining(("gx", "both", "shifted"), "gx_both_shifted")
    assert ways(SOME) == ((without,), (Joining(("gx", "gy", "both", "shifted"), "gx_gy_both_shifted"),))
    assert ways(pipeline(GRADIENT, ["gx", "gy"], {"gy": [[0, 4096], [1, 2048]]})) == ()
    assert ways(pipeline(GRADIENT, ["gx"])) == ()


def test_what_others_read_stays_a_stage_of_its_name() -> None:
    """Among it what such a stage reads, if only at the point itself."""
    (chosen,) = joining(STEPS, copied=True).joinings
    assert chosen == Joining(("e", "f", "h", "near"), "e_f_h_near")
    plan = rewrite(STEPS, joining(STEPS, copied=True))
    assert [s.name for s in plan.pipeline.stages] == ["e", "f", "e_f_h_near"]
    assert plan.pipeline.outputs == ("e_f_h_near",)
    assert len(plan.pipeline.stage("e_f_h_near").values) == 5


def test_the_joint_is_named_for_an_output_in_it() -> None:
    chosen = joining(ALL)
    with pytest.raises(IllegalSchedule, match="stage 'gx': it is computed as a value of 'strong_gy_gx'"):
        check(rewrite(ALL, replace(chosen, groups=(Group("gx", (), (), None, None, (), ()),))))


def test_outputs_that_would_grow_are_not_joined() -> None:
    """Each has twice the parts of the one before it; what is read outside cannot be joined either."""
    names = [f"o{k}" for k in range(16)]
    value = {"o0": ["x", "y", "img(x, y)"]}
    value |= {n: ["x", "y", f"{p}(x, y) ^ {p}(x, y)"] for p, n in pairwise(names)}
    assert together(pipeline(dict(islice(value.items(), 9)), names[:9]), False)[0].stages == tuple(names[:9])
    of = pipeline(value, names)
    assert together(of, False) == ()
    with pytest.raises(IllegalSchedule, match=r"with what it reads of the others put in, 'o\d+' is too large"):
        rewrite(of, Schedule(of.name, "", (), joinings=(Joining(tuple(names), "o"),)))


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("of", [ALL, SOME, STEPS], ids=["all", "some", "steps"])
def test_what_is_joined_is_what_it_was(of: Pipeline, copied: bool) -> None:
    require_tool("gcc")
    chosen = joining(of, copied)
    found = root_schedule(rewrite(of, chosen).pipeline, here())
    for seed in range(2):
        assert judge(case_of(of, replace(found, joinings=chosen.joinings), seed), ("-O0",)) is None


@pytest.mark.parametrize("of", [ALL, SOME, STEPS], ids=["all", "some", "steps"])
def test_the_search_joins(of: Pipeline) -> None:
    """What it finds is one nest that keeps the shared stage in registers or a ring, and right; explained."""
    require_tool("gcc")
    result = autoschedule(of, here(threads=2), SearchOptions())
    found = result.schedule
    (joined,) = found.joinings
    assert any(g.output == joined.joint for g in found.groups)
    (decision,) = [d for d in result.trace.decisions if d.kind == "joining"]
    assert decision.chosen == f"{', '.join(joined.stages)} together, as {joined.joint}"
    assert decision.rejected[0].choice == "outputs one by one"
    for seed in range(2):
        assert judge(case_of(of, found, seed), ("-O0",)) is None


def test_said() -> None:
    found = autoschedule(ALL, here(threads=2), SearchOptions()).schedule
    assert from_document(to_document(found)) == found
    assert "# strong_gy_gx: strong, gy, gx, computed together\n" in to_text(rewrite(ALL, found))
    apart = autoschedule(ALL, here(), SearchOptions("taco2019")).schedule
    assert "outputs computed together: strong, gy, gx" in differences(found, apart)
    for printed in (to_cpp(rewrite(ALL, found)), to_python(rewrite(ALL, found))):
        assert "Not said: that strong, gy, gx are computed together: each has loops of its own" in printed
        assert "strong_gy_gx" not in printed
    source = source_of(ALL, found, here())
    assert "/* strong, gy, gx are computed together: on one region */" in source.header


REFUSED = [
    (("gx",), "g", "two stages or more are joined, each once"),
    (("gx", "gx"), "g", "two stages or more are joined, each once"),
    (("gx", "smooth"), "g", "'smooth' is no output, or is in another joining"),
    (("gx", "gy"), "strong", "the name is taken"),
    (("gx", "column"), "g", "the dims of 'column' are others than those of 'gx', or lie otherwise in memory"),
    (("gx", "elsewhere"), "g", "'elsewhere' is asked for on another region than 'gx'"),
    (("gx", "summed"), "g", "'summed' has updates"),
]


@pytest.mark.parametrize(("stages", "joint", "why"), REFUSED)
def test_refused(stages: tuple[str, ...], joint: str, why: str) -> None:
    more = {
        **GRADIENT,
        "column": ["y", "img(3, y) + 1"],
        "elsewhere": ["x", "y", "img(x, y) + 1"],
        "summed": ["x", "y", "img(x, y) + 1"],
    }
    outputs = ["gx", "gy", "column", "elsewhere", "summed"]
    of = pipeline(more, outputs, {"elsewhere": [[0, 9], [0, 9]]})
    if "summed" in stages:
        sums = load(
            {
                "format": 1, "name": "p", "inputs": [{"name": "img", "type": "uint8", "dims": ["x", "y"]}],
                "stages": [{"name": "summed", "dims": ["x", "y"], "value": "int32(0)", "updates": [
                    {"domain": {"r": [0, 99]}, "at": ["x", "y"], "value": "summed(x, y) * 2 + img(x + r, y)"}]}],
                "outputs": ["summed"], "estimates": {"summed": [[0, 9], [0, 9]]},
            }
        ).stages  # fmt: skip
        of = replace(of, stages=(*(s for s in of.stages if s.name != "summed"), *sums))
    with pytest.raises(IllegalSchedule, match=r"joining '.*' of ") as refused:
        rewrite(of, Schedule(of.name, "by hand", (), joinings=(Joining(stages, joint),)))
    assert why in str(refused.value)


def test_regions_of_outputs_that_are_computed_together(tmp_path: Path) -> None:
    """Nobody says which: one that all can be computed on. Different ones are refused with the remedy."""
    require_tool("gcc")
    of = pipeline({n: s for n, s in GRADIENT.items() if n != "strong"}, ["gx", "gy"], boundary=False)
    numbers = count()
    image = Image(np.array([next(numbers) % 251 for _ in range(600)], np.uint8).reshape(20, 30), (0, 0))
    both = ((2, 26), (1, 18))
    assert largest_regions(of, {"img": image}, {}) == {"gx": both, "gy": both}
    platform = here(threads=2)
    compiled = compile_pipeline(of, platform, Options(), lambda: 0.0)
    assert compiled.schedule.joinings
    library = build(compiled.source, platform, tmp_path, 60)
    done = run(library, of, {"img": image}, {})
    assert done.regions == {"gx": both, "gy": both}
    with pytest.raises(ArgumentError, match=r"compute gx and gy together: .* on one region, or .* different estimates"):
        run(library, of, {"img": image}, {}, {"gx": ((2, 5), (1, 5)), "gy": ((2, 5), (1, 6))})
