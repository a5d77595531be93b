"""Groups that are alike become one function: what it computes in each of them, and which are not alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support.calls import call
from support.loop_programs import run_program
from support.machines import here, machine
from support.native import build

from tilesmith.platforms import Platform
from tilesmith.scheduler.codegen.c.emitter import emit_c
from tilesmith.scheduler.codegen.registry import backend_for
from tilesmith.scheduler.compiler import generate
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.loop.parser import parse_program
from tilesmith.scheduler.ir.loop.printer import print_program
from tilesmith.scheduler.ir.loop.program import Comment, Free, Function, Invoke, Program
from tilesmith.scheduler.ir.loop.verifier import verify
from tilesmith.scheduler.ir.pass_manager import AfterEach
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.loop_passes.passes import optimize
from tilesmith.scheduler.lowering import lower
from tilesmith.scheduler.rewrites.passes import rewrite

X8 = Vector("x", 8)
PARAMS = {"w": 0.75, "k": 3}
LOOPS = ("x.inner", "y.inner", "y.outer")
SUM = " + ".join(f"{n}.0 * {{u}}(x + {n % 3 - 1}, y + {n // 3 - 1})" for n in range(9))
PLACES: dict[str, Callable[[str], Placement]] = {
    "inline": lambda name: Placement(name, INLINE, INLINE),
    "a row": lambda name: Placement(name, "y.inner", "y.inner", order=("x", "y"), vector=X8),
    "a ring": lambda name: Placement(name, "y.inner", "y.outer", order=("x", "y"), vector=X8),
    "a strip": lambda name: Placement(name, "y.outer", "y.outer", order=("x", "y"), vector=X8),
    "registers": lambda name: Placement(name, "x.inner", "y.inner", storage="registers", vector=X8),
}


def iterated(*values: str, boundary: bool = False, extents: tuple[int, int] = (64, 48)) -> Pipeline:
    """A pipeline of stages `u0`, `u1`, ..., each of the one before it, `{u}`, and of the image `u` at will."""
    held = {"boundary": {"kind": "repeat_edge", "domain": [[0, 64], [0, 48]]}} if boundary else {}
    names = ["u", *(f"u{n}" for n in range(len(values)))]
    return load(
        {
            "format": 1,
            "name": "iterated",
            "inputs": [{"name": "u", "type": "float32", "dims": ["x", "y"]}],
            "params": [
                {"name": "w", "type": "float32", "default": 0.5},
                {"name": "k", "type": "int32", "default": 2, "min": 0, "max": 3},
            ],
            "stages": [
                {"name": name, "dims": ["x", "y"], "value": f"0.03 * ({value.format(u=before)})", **held}
                for name, before, value in zip(names[1:], names, values, strict=False)
            ],
            "outputs": [names[-1]],
            "estimates": {names[-1]: [[0, extents[0]], [0, extents[1]]]},
        }
    )


def pairs(p: Pipeline, place: str, tile: int = 8, parallel: str | None = "y.outer") -> Schedule:
    """Two stages a group, of which the first has that place."""
    names = [s.name for s in p.stages]
    groups = (
        Group(b, LOOPS, (Tile("y", tile),), parallel, X8, (), (PLACES[place](a),))
        for a, b in zip(names[::2], names[1::2], strict=True)
    )
    return Schedule(p.name, "by hand", tuple(groups))


def singly(p: Pipeline, tile: int = 8) -> Schedule:
    """A group for each stage."""
    groups = (Group(s.name, LOOPS, (Tile("y", tile),), "y.outer", X8, (), ()) for s in p.stages)
    return Schedule(p.name, "by hand", tuple(groups))


def lowered(p: Pipeline, schedule: Schedule, platform: Platform | None = None) -> Program:
    plan = rewrite(p, schedule)
    check(plan)
    return lower(plan, platform or machine(vector_bytes=32), functions=True)


def functions(program: Program) -> list[Function]:
    return [s for s in program.body if isinstance(s, Function)]


def calls(program: Program) -> list[Invoke]:
    return [s for s in program.body if isinstance(s, Invoke)]


def assert_right(p: Pipeline, schedule: Schedule) -> None:
    """The verifier finds nothing wrong, the text is read back, and values are those of the pipeline: of the program as
    it was lowered and after the passes, and of the C."""
    program = lowered(p, schedule, here())
    verify(program)
    best = optimize(program, AfterEach(lambda _, step: verify(step)))
    for step in (program, best):
        assert parse_program(print_program(step)) == step
    source = emit_c(best)
    library = build(source, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"))
    rng, name = np.random.default_rng(7), p.outputs[0]
    images = {"u": Image(rng.random((96, 120), dtype=np.float32), (-24, -24))}
    for width, height in ((1, 1), (15, 3), (70, 41)):
        regions = {name: ((1, width), (2, height))}
        (expected,) = interpret(p, images, PARAMS, regions)[name]
        status, got = call(library, source, p, images, PARAMS, regions)
        assert status == 0
        np.testing.assert_allclose(got[name][0], expected, rtol=1e-5)
        if width < 64:
            for step in (program, best):
                (found,) = run_program(step, p, images, PARAMS, regions)[name]
                np.testing.assert_allclose(found, expected, rtol=1e-5)


# values ------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
def test_groups_of_one_function_keep_their_values(place: str) -> None:
    """The first group reads the image and the last one writes the output: those between are alike."""
    p = iterated(*[SUM] * 10)
    schedule = pairs(p, place)
    program = lowered(p, schedule)
    assert len(functions(program)) == 1
    assert len(calls(program)) == 3
    assert_right(p, schedule)


def test_what_all_groups_read_is_no_parameter() -> None:
    p = iterated(*[SUM + " + u(x, y)"] * 10)
    program = lowered(p, pairs(p, "a strip"))
    assert [b.stage for b in functions(program)[0].buffers] == ["u1", "u3"]
    assert_right(p, pairs(p, "a strip"))


def test_params_are_the_call_s_in_functions_too() -> None:
    p = iterated(*[f"w * ({SUM}) + {{u}}(x + k, y)"] * 8)
    assert len(functions(lowered(p, singly(p)))) == 1
    assert_right(p, singly(p))


def test_stages_that_end_with_their_domain_are_alike() -> None:
    p = iterated(*[SUM] * 6, boundary=True)
    assert len(calls(lowered(p, singly(p)))) == 4
    assert_right(p, singly(p))


def test_loops_of_one_thread_are_alike() -> None:
    p = iterated(*[SUM] * 10)
    schedule = pairs(p, "a ring", parallel=None)
    assert len(functions(lowered(p, schedule))) == 1
    assert_right(p, schedule)


def test_images_of_the_caller_are_given_to_a_function() -> None:
    planes = ("red", "green", "blue")
    p = load(
        {
            "format": 1,
            "name": "planes",
            "inputs": [{"name": name, "type": "uint8", "dims": ["x", "y"]} for name in planes],
            "stages": [
                *(
                    {"name": f"of_{name}", "dims": ["x", "y"], "value": f"float32({SUM.format(u=name)})"}
                    for name in planes
                ),
                {"name": "out", "dims": ["x", "y"], "value": "of_red(x, y) + of_green(x + 1, y) + of_blue(x, y)"},
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 64], [0, 48]]},
        }
    )
    schedule = singly(p)
    program = lowered(p, schedule, here())
    (f,) = functions(program)
    assert sorted(f.comment.split(", ")) == ["of_blue", "of_green", "of_red"]
    assert parse_program(print_program(program)) == program
    source = emit_c(optimize(program))
    rng, regions = np.random.default_rng(3), {"out": ((3, 41), (-2, 17))}
    images = {name: Image(rng.integers(0, 256, (32, 60), dtype=np.uint8), (-1, -6)) for name in planes}
    (expected,) = interpret(p, images, {}, regions)["out"]
    status, got = call(build(source), source, p, images, {}, regions)
    assert status == 0
    np.testing.assert_allclose(got["out"][0], expected, rtol=1e-5)


# parameters ------------------------------------------------------------


def test_numbers_that_differ_in_proportion_are_one_parameter() -> None:
    p = iterated(*[SUM] * 12)
    program = lowered(p, pairs(p, "a strip"))
    (f,) = functions(program)
    numbers = [[x for x in c.symbols if x.is_const] for c in calls(program)]
    assert [name.rpartition("_")[0] for name in f.symbols].count("n") == 1
    assert [x.const for (x,) in numbers] == [numbers[0][0].const + 2 * n for n in range(len(numbers))]


def test_numbers_without_a_proportion_are_parameters_of_their_own() -> None:
    """Reads of the stage in the middle lie to one side: how far each stage before it reaches there is in no
    proportion to how far it reaches elsewhere."""
    p = iterated(SUM, SUM, SUM, "{u}(x, y + 5) + {u}(x - 3, y)", SUM, SUM, SUM)
    (f,) = functions(lowered(p, singly(p)))
    assert sum(name.startswith("n_") for name in f.symbols) > 1
    assert_right(p, singly(p))


# what is not alike ------------------------------------------------------------


def test_other_weights_are_another_function() -> None:
    other = SUM.replace("2.0", "11.0")
    p = iterated(*[SUM] * 5, *[other] * 5)
    program = lowered(p, singly(p))
    assert [f.comment for f in functions(program)] == ["u1, u2, u3, u4", "u5, u6, u7, u8"]
    assert_right(p, singly(p))


def test_other_tiles_are_another_function() -> None:
    p = iterated(*[SUM] * 10)
    groups = pairs(p, "a row").groups
    mixed = replace(pairs(p, "a row"), groups=(*groups[:3], *pairs(p, "a row", tile=16).groups[3:]))
    assert len(calls(lowered(p, pairs(p, "a row")))) == 3
    assert [f.comment for f in functions(lowered(p, mixed))] == ["u2, u3, u4, u5"]


def test_sizes_that_differ_much_are_not_lowered_for_one_of_them() -> None:
    p = iterated(*[SUM] * 8, extents=(4, 4))
    assert sum(len(f.comment.split()) for f in functions(lowered(p, singly(p)))) < 6
    assert_right(p, singly(p))


def test_a_little_text_is_written_twice() -> None:
    p = iterated(*["{u}(x - 1, y) + {u}(x + 1, y)"] * 6)
    assert not functions(lowered(p, singly(p)))


def test_only_backends_with_functions_are_given_any() -> None:
    p = iterated(*[SUM] * 8)
    assert not functions(lower(rewrite(p, singly(p)), machine()))
    assert backend_for(here(), "c").functions
    assert backend_for(here(), "c-halide").functions


def test_memory_is_the_call_s() -> None:
    """Allocations and comments stay where they were, ahead of each call."""
    p = iterated(*[SUM] * 8)
    plain, shared = (lower(rewrite(p, singly(p)), machine(), functions=f) for f in (False, True))
    for kind in (Comment, Free):
        assert [s for s in plain.body if isinstance(s, kind)] == [s for s in shared.body if isinstance(s, kind)]


# C ------------------------------------------------------------


def test_rows_of_groups_in_a_function_and_of_others_are_one_function() -> None:
    p = iterated(*[SUM] * 12, boundary=True)
    names = [s.name for s in p.stages]
    groups = (
        Group(c, LOOPS, (Tile("y", 8),), "y.outer", X8, (), tuple(map(PLACES["a ring"], (a, b))))
        for a, b, c in zip(names[::3], names[1::3], names[2::3], strict=True)
    )
    schedule = Schedule(p.name, "by hand", tuple(groups))
    code = generate(p, schedule, here()).code
    entry = code.index("int32_t tilesmith_iterated(")
    assert code.index("static void rows0(") < code.index("static void group_0(") < entry
    assert " rows0(" in code[code.index("static void group_0(") : entry]
    assert " rows0(" in code[entry:]
    assert_right(p, schedule)


def test_the_c_says_whose_loops_a_function_has() -> None:
    p = iterated(*[SUM] * 6)
    code = generate(p, singly(p), here()).code
    assert "/* u1, u2, u3, u4: in the names of the first */\nstatic void group_0(int64_t n_0, " in code
    assert "float *restrict u0_1" in code
    assert code.count("  group_0(") == 4
    assert generate(p, singly(p), here()).code == code
