"""Echoes: recurrences along rows that reach further back than a vector has lanes, compiled: against the interpreter, at
sizes around those of vectors."""

from __future__ import annotations

import numpy as np
import pytest
from support.calls import call
from support.interpreted import interpreted
from support.machines import machine
from support.native import build

from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

HALF = {"kind": "constant", "value": "0.5"}


def echo(value: str, first: int, at: str = "r", beyond: int = 0, boundary: dict[str, str] = HALF) -> Pipeline:
    update = {"domain": {"r": [first, f"a.extent.t + {beyond} - {first}"]}, "at": [at, "c"], "value": value}
    return load(
        {
            "format": 1,
            "name": "echo",
            "inputs": [{"name": "a", "type": "float32", "dims": ["t", "c"], "boundary": boundary}],
            "stages": [{"name": "f", "dims": ["t", "c"], "value": "a(t, c)", "updates": [update]}],
            "outputs": ["f"],
            "estimates": {"a": [[0, 4096], [0, 2]], "f": [[0, 4096], [0, 2]]},
        }
    )


CASES = {
    "as far as a vector": echo("a(r, c) * 0.25 + 0.5 * f(r - 16, c)", 16),
    "back": echo("a(r, c) * 0.25 + 0.5 * f(a.extent.t - 1 - r + 19, c)", 19, "a.extent.t - 1 - r"),
    "rows begin beyond the image": echo("a(r - 20, c) * 0.25 + 0.5 * f(r - 17, c)", 17, beyond=40),
    "where data says": echo("select(a(r, c) > 0.3, 0.5 * f(r - 18, c), f(r, c))", 18),
    "of itself alone, vectors from the beginning of a row": echo("0.5 * f(r - 16, c) + f(r, c)", 16),
    "from two places": echo("a(r, c) * 0.25 + 0.5 * f(r - 31, c) - 0.25 * f(r - 64, c)", 64),
}


@pytest.mark.parametrize("case", sorted(CASES))
@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_echoes_have_vectors_along_rows(case: str, vector_bytes: int) -> None:
    of = CASES[case]
    made = compile_pipeline(of, machine(vector_bytes=vector_bytes, threads=1))
    (loops,) = made.schedule.groups[0].updates
    assert loops.vector is not None
    assert (loops.vector.dim, loops.vector.lanes) == ("r", vector_bytes // 4)
    flags = ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover")
    library = build(made.source, flags, vector_bytes=vector_bytes)
    rng = np.random.default_rng(7)
    for width in (65, 80, 97, 130, 214):
        image = Image(rng.random((2, width), np.float32), (0, 0))
        region = {"f": ((0, width), (0, 2))}
        (expected,) = interpreted(of, {"a": image}, {}, region)["f"]
        status, got = call(library, made.source, of, {"a": image}, {}, region)
        assert status == 0
        np.testing.assert_allclose(got["f"][0], expected, rtol=0, atol=1e-5, err_msg=str(width))


def test_what_reads_nearer_places_has_none() -> None:
    of = echo("a(r, c) * f(r - 3, c) + f(r - 40, c)", 40)
    made = compile_pipeline(of, machine(vector_bytes=32, threads=1))
    (loops,) = made.schedule.groups[0].updates
    assert loops.vector is None or loops.vector.dim != "r"
