"""Recurrences along rows, vectors along these, compiled: against the interpreter, at sizes around those of vectors."""

from __future__ import annotations

import numpy as np
import pytest
from support.calls import call
from support.interpreted import interpreted
from support.machines import machine
from support.native import build
from support.threads import threads
from support.turns import in_turn

from tilesmith.scheduler.analysis.row_recurrences import along_recurrence
from tilesmith.scheduler.compiler import Compiled, Options, compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

ROWS_OF_FEW = 3
"""Too few rows for vectors across them, which two scans that follow each other would have."""
HERE, BACK = ("r", "r - 1"), ("input.extent.x - 1 - r", "input.extent.x - r")


def along(
    type_: str, value: str, *updates: tuple[tuple[str, str], str], down: dict[str, object] | None = None
) -> Pipeline:
    """Updates along rows, one way or the other: `HERE` and `BEFORE` are places in a row. One may go `down` columns."""
    done = [
        {
            "domain": {"r": [1, "input.extent.x - 1"]},
            "at": [here, "y"],
            "value": text.replace("HERE", f"{here}, y").replace("BEFORE", f"{before}, y"),
        }
        for (here, before), text in updates
    ]
    done += [] if down is None else [down]
    stage = {"name": "f", "dims": ["x", "y"], "value": value, "updates": done}
    document = {
        "format": 1,
        "name": "along",
        "inputs": [{"name": "input", "type": type_, "dims": ["x", "y"]}],
        "stages": [stage],
        "outputs": ["f"],
        "estimates": {name: [[0, 640], [0, ROWS_OF_FEW]] for name in ("f", "input")},
    }
    return load(document)


CASES = {
    "sums": along("uint8", "int32(input(x, y))", (HERE, "f(BEFORE) + f(HERE)")),
    "sums back, of squares": along(
        "uint8", "int32(input(x, y)) * int32(input(x, y))", (BACK, "f(BEFORE) - f(HERE) * 3 + r")
    ),
    "sums of 16 bits that wrap": along("uint8", "uint16(input(x, y)) * 255", (HERE, "f(HERE) + f(BEFORE)")),
    "sums of doubles": along("float64", "input(x, y)", (HERE, "f(BEFORE) + f(HERE)")),
    "extremes": along("int32", "input(x, y)", (HERE, "max(f(BEFORE), f(HERE))"), (BACK, "min(f(HERE), f(BEFORE), 77)")),
    "extremes of floats": along("float32", "input(x, y)", (BACK, "max(f(BEFORE), f(HERE))")),
    "both ways": along(
        "float32",
        "input(x, y)",
        (HERE, "f(BEFORE) * 0.9 + f(HERE) * 0.1"),
        (BACK, "f(BEFORE) + 0.25 * (f(HERE) - f(BEFORE))"),
    ),
    "a factor below 0": along("float32", "input(x, y)", (HERE, "f(HERE) - f(BEFORE) * 0.5")),
    "the next point as it was": along("int32", "input(x, y)", (HERE, "f(BEFORE) + f(HERE) - input(HERE)")),
}
DOWN = {"domain": {"q": [1, "input.extent.y - 1"]}, "at": ["x", "q"], "value": "f(x, q) + f(x, q - 1)"}
ROWS = {"domain": {"q": [2, "input.extent.y - 3"]}, "at": ["x", "q"]}
THEN = {
    "a summed-area table": along("uint8", "int32(input(x, y))", (HERE, "f(BEFORE) + f(HERE)"), down=DOWN),
    "back along rows": along(
        "float32",
        "input(x, y)",
        (HERE, "f(BEFORE) * 0.9 + f(HERE) * 0.1"),
        (BACK, "f(BEFORE) * 0.5 + f(HERE)"),
        down=ROWS | {"value": "f(x, q) - f(x, q - 2) * 0.5 + input(clamp(x + 3, 0, input.extent.x - 1), q)"},
    ),
    "with the place": along(
        "int32", "input(x, y)", (HERE, "min(f(BEFORE), f(HERE))"), down=DOWN | {"value": "f(x, q) - f(x, q - 1) + x"}
    ),
}
SIZES = ((2, 3), (5, 4), (17, 3), (38, 5), (97, 2), (130, 7))


@pytest.mark.parametrize(("case", "vector_bytes"), in_turn(sorted(CASES), (16,)) + in_turn(sorted(CASES), (32, 64)))
def test_points_that_are_joined_in_registers(case: str, vector_bytes: int) -> None:
    of = CASES[case]
    made = compile_pipeline(of, machine(vector_bytes=vector_bytes, threads=1))
    lanes = vector_bytes // of.stages[0].types[0].bytes
    (stage,) = made.plan.pipeline.stages
    found = [
        along_recurrence(stage, u, loops)
        for u, loops in zip(stage.updates, made.schedule.groups[0].updates, strict=True)
    ]
    assert all(found) == (lanes >= 4)
    check(of, made, vector_bytes)


@pytest.mark.parametrize("case", sorted(THEN))
@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_a_pass_down_columns_comes_to_each_vector_of_a_row_right_after_the_pass_along_it(
    case: str, vector_bytes: int
) -> None:
    made = compile_pipeline(THEN[case], machine(vector_bytes=vector_bytes, threads=1))
    assert "r_followed_0" in made.source.code
    check(THEN[case], made, vector_bytes)


def check(of: Pipeline, made: Compiled, vector_bytes: int) -> None:
    """Holds what the code computes against the interpreter."""
    library = build(made.source, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"), vector_bytes=vector_bytes)
    rng = np.random.default_rng(7)
    for width, height in SIZES:
        image = Image(rng.integers(0, 256, (height, width)).astype(of.inputs[0].type.name), (0, 0))
        for region in (((0, width), (0, height)), ((0, max(1, width - 1)), (height // 2, 1))):
            (expected,) = interpreted(of, {"input": image}, {}, {"f": region})["f"]
            with threads(2):
                status, got = call(library, made.source, of, {"input": image}, {}, {"f": region})
            assert status == 0
            at_most = 1e-5 * np.abs(expected).max() if expected.dtype.kind == "f" else 0
            np.testing.assert_allclose(got["f"][0], expected, rtol=0, atol=at_most, err_msg=f"{width} x {height}")


def test_rows_begin_and_end_with_narrower_vectors() -> None:
    made = compile_pipeline(CASES["sums"], machine(vector_bytes=64, threads=1))
    assert made.source.code.count("r_begin_0 - 4; r_1 += 4)") == 1
    assert "values and update 0, by 1 of y" in made.source.code


def test_strict_floats_are_joined_in_order() -> None:
    for case, joined in (("both ways", False), ("extremes", True)):
        made = compile_pipeline(CASES[case], machine(vector_bytes=32, threads=1), Options(strict=True))
        (stage,) = made.plan.pipeline.stages
        for update, loops in zip(stage.updates, made.schedule.groups[0].updates, strict=True):
            assert (along_recurrence(stage, update, loops, strict=True) is not None) == joined
            assert loops.vector is None or (loops.vector.dim == "r") == joined
