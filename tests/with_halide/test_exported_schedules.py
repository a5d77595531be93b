"""Exported schedules, Python and C++, on Funcs of every shipped pipeline: the values stay what they are."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.modules import require_module
from support.shipped import LIGHT, WITHIN, loaded
from support.tools import require_tool

from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.codegen.halide.source import to_cpp, to_python
from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.plan import Plan

require_module("halide")

import halide as hl  # noqa: E402

from benchmarks.contest import storage_order  # noqa: E402
from benchmarks.judge import room  # noqa: E402
from benchmarks.problem import Problem, at_regions  # noqa: E402
from tilesmith.app.bench.to_halide import HalidePipeline, to_halide  # noqa: E402

pytestmark = pytest.mark.halide

PACKAGE = Path(hl.__file__).parent
LOWERED = ("blur", "harris", "sobel")
PYRAMIDS = ("interpolate", "machado_interpolation", "pyramid_blend")
REALISED = [name for name in LIGHT if name not in PYRAMIDS]
"""Pipelines that LLVM is soon done with. The schedules of others are lowered, which refuses what changes values."""
PLANE = ((5, 83), (-3, 67))
"""Neither side is a multiple of a vector."""


@cache
def plan(name: str, method: str) -> Plan:
    return compile_pipeline(loaded(name), host(), Options(method)).plan


@cache
def problem(name: str) -> Problem:
    pipeline = loaded(name)
    regions = {n: PLANE + ((0, 3),) * (len(pipeline.stage(n).dims) - 2) for n in pipeline.outputs}
    return at_regions(pipeline, regions, use_estimates=False)


@cache
def expected(name: str) -> dict[str, tuple[np.ndarray, ...]]:
    p = problem(name)
    images = {n: Image(a, tuple(lo for lo, _ in p.input_regions[n])) for n, a in p.inputs.items()}
    return interpret(p.pipeline, images, p.params, p.output_regions)


def assert_realised(made: HalidePipeline, name: str) -> None:
    """The values of scheduled Funcs are the interpreter's; floats as far as Halide contracts and reassociates them."""
    p = problem(name)
    kept = []  # Halide does not hold on to arrays
    for i in p.pipeline.inputs:
        array, buffer = room(i.type.numpy, p.input_regions[i.name], storage_order(i.dims, i.storage))
        array[...] = p.inputs[i.name]
        made.inputs[i.name].set(buffer)
        kept.append(array)
    for param in p.pipeline.params:
        made.params[param.name].set(p.params[param.name])
    arrays, buffers = [], []
    for output in p.pipeline.outputs:
        stage = p.pipeline.stage(output)
        for t in stage.types:
            array, buffer = room(t.numpy, p.output_regions[output], storage_order(stage.dims, stage.storage))
            arrays.append(array)
            buffers.append(buffer)
    made.pipeline.realize(buffers)
    for got, value in zip(arrays, (v for o in p.pipeline.outputs for v in expected(name)[o]), strict=True):
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, value, rtol=0, atol=1e-5 * float(np.abs(value).max()))
        else:
            apart = np.maximum(got, value) - np.minimum(got, value)
            assert int(apart.max()) <= WITHIN.get(name, 0)


def method_of(name: str) -> str:
    """Methods take turns where values are computed. Others have the paper's, which Halide is sooner done with."""
    return ("taco2019", "default")[REALISED.index(name) % 2] if name in REALISED else "taco2019"


@pytest.mark.parametrize("name", [n for n in pipelines.names() if n != "vdsr"])  # Halide takes minutes for its layers
def test_python_that_was_exported_computes_what_the_interpreter_computes(name: str) -> None:
    method = method_of(name)
    made = to_halide(loaded(name), defined=True)
    module: dict[str, Any] = {}
    exec(compile(to_python(plan(name, method)), "schedule.halide.py", "exec"), module)
    module["schedule"](made.stages)
    if name in REALISED:
        assert_realised(made, name)
    else:
        made.pipeline.compile_to_module(made.pipeline.infer_arguments(), name)


MAIN = r"""
#include <map>
#include <string>

#include "Halide.h"
#include <cstdio>
#include <cstring>
%(headers)s

/* Each pipeline is read and scheduled. Lowering refuses what cannot be: it takes long for the large ones. */
int main(int argc, char **argv) {
    for (int k = 1; k < argc; k++) {
        std::map<std::string, Halide::Parameter> params;
        Halide::Pipeline pipeline = Halide::deserialize_pipeline(std::string(argv[k]) + ".hlpipe", params);
        std::map<std::string, Halide::Func> funcs;
        std::vector<Halide::Internal::Function> outputs;
        for (auto &output : pipeline.outputs()) outputs.push_back(output.function());
        for (auto &f : Halide::Internal::build_environment(outputs))
            funcs[f.first.substr(0, f.first.find('$'))] = Halide::Func(f.second); // made unique in our process
        %(dispatch)s
        if (k <= LOWERED) try {
            pipeline.compile_to_module(pipeline.infer_arguments(), "made");
        } catch (const Halide::Error &error) {
            std::printf("%%s: %%s\n", argv[k], error.what());
            return 1;
        }
        std::printf("%%s is scheduled\n", argv[k]);
    }
}
"""


def test_headers_that_were_exported_schedule_the_funcs(tmp_path: Path) -> None:
    """All of them in one program, which reads the pipelines as Halide wrote them."""
    require_tool("g++")
    headers, dispatch = [], []
    for name in pipelines.names():
        made = to_halide(loaded(name))
        hl.serialize_pipeline(made.pipeline, str(tmp_path / f"{name}.hlpipe"))
        (tmp_path / f"{name}.h").write_text(to_cpp(plan(name, "taco2019")).replace("#pragma once\n", ""))
        headers.append(f'namespace {name} {{\n#include "{name}.h"\n}}')
        dispatch.append(f'if (!std::strcmp(argv[k], "{name}")) {name}::tilesmith_schedule(funcs);')
    source = MAIN % {"headers": "\n".join(headers), "dispatch": "\n        ".join(dispatch)}
    (tmp_path / "main.cpp").write_text(source)
    library = PACKAGE / "lib64"
    options = ["-std=c++17", "-O0", f"-I{PACKAGE / 'include'}"]
    link = [f"-L{library}", "-lHalide", f"-Wl,-rpath,{library}"]
    options += [f"-DLOWERED={len(LOWERED)}"]
    subprocess.run(["g++", *options, "main.cpp", "-o", "main", *link], cwd=tmp_path, check=True)
    names = [*LOWERED, *(n for n in pipelines.names() if n not in LOWERED)]
    done = subprocess.run(["./main", *names], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
    assert [line.split()[0] for line in done.stdout.splitlines() if line.endswith("is scheduled")] == names
