"""The text of kernels: what each operation becomes, and what a kernel is called with."""

from __future__ import annotations

import json
import re

import pytest
from support.opencl import device

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.compiler import Options, compile_pipeline, generate
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, Tile, Vector


def pipeline(
    value: str, type_: str = "float32", stages: tuple[dict[str, object], ...] = (), **more: object
) -> Pipeline:
    return load(
        {
            "format": 1,
            "name": "small",
            "inputs": [{"name": "f", "type": type_, "dims": ["x", "y"]}],
            "stages": [*stages, {"name": "g", "dims": ["x", "y"], "value": value}],
            "outputs": ["g"],
            "estimates": {"g": [[0, 1024], [0, 768]]},
            **more,
        }
    )


def kernels(source: CSource) -> str:
    """The program that the device's compiler is given."""
    found = re.search(r"ts_source\[\] = \{\n(.*?)\n\};", source.code, re.DOTALL)
    assert found is not None
    return "".join(json.loads(line.strip().removesuffix(",")) for line in found[1].splitlines())


def of(value: str, type_: str = "float32") -> str:
    return kernels(compile_pipeline(pipeline(value, type_), device()).source)


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        ("f(x, y) + f(x + 1, y)", "int32", r"as_int16\(as_uint16\(\w+\) \+ as_uint16\(\w+\)\)"),
        ("f(x, y) // 2", "int16", r"\w+ >> \(short16\)\(1\)"),
        ("sat_add(f(x, y), f(x + 1, y))", "uint8", r"add_sat\(\w+, \w+\)"),
        ("int32(f(x, y))", "float32", r"convert_int16_sat\(\w+\)"),
        ("max(f(x, y), 0.0)", "float32", r"select\(\(float16\)\(0\.0f\), \w+, \w+ > \(float16\)\(0\.0f\)\)"),
        ("max(f(x, y), 3)", "int32", r"max\(\w+, \(int16\)\(3\)\)"),
        ("select(f(x, y) > 2.0, f(x, y), 1.0)", "float32", r"select\(\(float16\)\(1\.0f\), \w+, \w+\)"),
        ("sqrt(f(x, y))", "float64", r"sqrt\(\w+\)"),
        ("f(2 * x, y)", "float32", r"\(float16\)\(\w+\.s0246, \w+\.s8ace|\w+\.s02468ace"),
    ],
)  # fmt: skip
def test_vectors_have_the_functions_of_the_language(value: str, type_: str, text: str) -> None:
    assert re.search(text, of(value, type_)), of(value, type_)


def test_no_vector_is_longer_than_those_of_the_language() -> None:
    text = of("uint8((uint16(f(x, y)) + f(x + 1, y)) // 2)", "uint8")
    assert "uchar16" in text
    assert not re.search(r"\b(u?char|u?short)(32|64)\b", text)


def test_a_stage_at_root_is_a_kernel_of_its_own_and_a_buffer_of_the_call() -> None:
    stages = ({"name": "h", "dims": ["x", "y"], "value": "f(x, y) * 2.0"},)
    two = pipeline("h(x, y) + h(x, y + 1)", stages=stages)
    groups = tuple(Group(n, ("x.inner", "y.inner"), (), "y.inner", Vector("x", 8), (), ()) for n in ("h", "g"))
    source = generate(two, Schedule("small", "by hand", groups), device())
    text = kernels(source)
    assert re.findall(r"kernel void (\w+)\((.*?), long", text) == [
        ("h_0", "global const float *restrict f_0_data, global float *restrict h_0"),
        ("g_1", "global float *restrict h_0, global float *restrict g_0_data"),
    ]
    assert "const cl_mem h_0 = ts_memory(call, ts_block(" in source.code
    assert "ts_return(call, h_0);" in source.code


def test_buffers_of_a_tile_are_memory_of_the_work_group() -> None:
    stages = ({"name": "h", "dims": ["x", "y"], "value": "f(x, y) * 2.0"},)
    two = pipeline("h(x, y) + h(x, y + 1)", stages=stages)
    loops = ("x.inner", "y.inner", "x.outer", "y.outer")
    inside = Placement("h", "y.inner", "x.outer", order=("x", "y"), vector=Vector("x", 8))
    group = Group("g", loops, (Tile("x", None), Tile("y", 32)), "y.outer", Vector("x", 8), (), (inside,))
    source = generate(two, Schedule("small", "by hand", (group,)), device())
    text = kernels(source)
    assert "mine_scratch_of_g = scratch_of_g + scratch_of_g_bytes * (long)get_group_id(0);" in text
    assert re.search(r"ts_launch\(call, 0, ts_groups\(.*, ts_most\), 1, values, \d+\);", source.code)


def test_params_come_with_their_types_and_what_the_host_knows_as_integers() -> None:
    text = kernels(
        compile_pipeline(
            pipeline("f(x, y) * gain + float32(n)", params=[
                {"name": "gain", "type": "float32", "default": 2.0}, {"name": "n", "type": "int32", "default": 1}]),
            device(),
        ).source
    )  # fmt: skip
    (parameters,) = re.findall(r"kernel void \w+\((.*?)\) \{", text)
    assert "float gain_0" in parameters
    assert "int n_0" in parameters
    assert "long f_0_stride1" in parameters


def test_floats_are_computed_as_written_where_the_schedule_is_strict() -> None:
    relaxed = compile_pipeline(pipeline("f(x, y) * 2.0 + 1.0"), device()).source
    assert '"-cl-std=CL1.2 -cl-mad-enable -cl-no-signed-zeros"' in relaxed.code
    strict = compile_pipeline(pipeline("f(x, y) * 2.0 + 1.0"), device(), Options(strict=True)).source
    assert '"-cl-std=CL1.2"' in strict.code
    assert "#pragma OPENCL FP_CONTRACT OFF" in kernels(strict)


def test_helpers_are_those_that_are_used() -> None:
    text = of("f(x, y) * 2.0")
    assert "ts_last_vector(" in text
    assert "ts_shift" not in text


def test_the_same_question_has_the_same_text() -> None:
    assert of("f(x, y) + f(x, y + 1)") == of("f(x, y) + f(x, y + 1)")
