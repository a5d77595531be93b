"""The unit of lowering: builders that know what a program has, params by the names that it gives them."""

from __future__ import annotations

from support.lowered import group, pipeline
from support.machines import machine

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.index import sym
from tilesmith.scheduler.ir.loop.program import Let
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.lowering.bounds import with_bounds
from tilesmith.scheduler.lowering.loops import with_loops
from tilesmith.scheduler.lowering.passes import begun
from tilesmith.scheduler.lowering.unit import LoweringUnit
from tilesmith.scheduler.rewrites.passes import rewrite

P = pipeline("f(x, clamp(y, 0, 9)) + 1.0", dims=("x", "y"))


def bounded() -> LoweringUnit:
    plan = rewrite(P, Schedule(P.name, "by hand", (group("x.inner y.inner"),)))
    return with_bounds(begun(plan, machine(vector_bytes=32)))


def test_no_fresh_name_is_one_of_the_program() -> None:
    unit = with_loops(bounded())
    used = {s.name for s in unit.program.bounds if isinstance(s, Let)} | {a.c_name for a in unit.program.arguments}
    b = unit.builder()
    assert used
    for name in used:
        hint = name.rsplit("_", 1)[0]
        assert b.fresh(hint) not in used


def test_what_bounds_define_is_known_and_not_written_again() -> None:
    unit = bounded()
    (let, *_) = (s for s in unit.program.bounds if isinstance(s, Let))
    b = unit.builder()
    assert b.scopes[0].statements == []
    assert b.let(let.value, "again") == sym(let.name)
    assert b.scopes[0].statements == []


def test_builders_are_of_the_platform() -> None:
    b = bounded().builder()
    assert b.vectors.register_bytes == 32
    assert not b.strict


def test_estimates_are_of_what_bounds_define() -> None:
    unit = bounded()
    found = unit.estimates(unit.builder())
    (lo, hi) = unit.boxes["out"][0]
    assert found.range((lo, hi)) == (0, 64)
    assert found.range(unit.boxes["f"][1]) == (0, 10)


def test_params_have_the_names_of_the_program() -> None:
    p = load(
        {
            "format": 1,
            "name": "scaled",
            "params": [{"name": "int", "type": "float32", "default": 2.0}],
            "inputs": [{"name": "f", "type": "float32", "dims": ["x"]}],
            "stages": [{"name": "out", "dims": ["x"], "value": "f(x) * int"}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 64]]},
        }
    )
    unit = with_bounds(begun(rewrite(p, Schedule(p.name, "by hand", (group("x.inner"),))), machine()))
    assert unit.params() == {"int": unit.program.params[0].c_name}
    assert unit.params()["int"] != "int"
