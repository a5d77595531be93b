"""One C file through other compilers: Clang, without OpenMP, for AArch64, and its header from C++."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.builds import HOST_BYTES, WIDTHS, for_vectors
from support.calls import call
from support.machines import here, machine
from support.native import WARNINGS, compiled
from support.shipped import LONG, TOLERANCE, Problem, assert_right, problem, scheduled
from support.tools import require_tool

from tilesmith import platforms
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.codegen.c.types import element, literal

NAMES = [name for name in pipelines.names() if name not in LONG]
SIZES = ("1x1", "7x3", "shifted")


def write(source: CSource, folder: Path) -> Path:
    (folder / source.header_name).write_text(source.header)
    (folder / "generated.c").write_text(source.code)
    return folder / "generated.c"


def run(*command: object, cwd: Path | None = None) -> str:
    """The output of the command; a warning of a compiler is an error by its flags."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, f"{command}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def built(compiler: str, name: str, folder: Path) -> tuple[ctypes.CDLL, CSource]:
    require_tool(compiler)
    source = scheduled(name, here()).source
    c = write(source, folder)
    library = folder / "generated.so"
    flags = (*source.flags, *WARNINGS, *for_vectors(HOST_BYTES), "-O1")
    run(compiler, *flags, "-shared", "-fPIC", c, "-o", library, "-lm")
    return ctypes.CDLL(str(library)), source


def assert_computes(library: ctypes.CDLL, source: CSource, name: str) -> None:
    for size in SIZES:
        p = problem(name, size)
        status, got = call(library, source, p.pipeline, p.inputs, {}, p.regions)
        assert status == 0
        assert_right(got, p.expected, p.within)


@pytest.mark.parametrize("name", NAMES[::2])
def test_clang(name: str, tmp_path: Path) -> None:
    assert_computes(*built("clang", name, tmp_path), name)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", ["harris", "unsharp"])
def test_without_openmp(name: str, compiler: str, tmp_path: Path) -> None:
    """Neither a call of its library nor a warning about its pragmas is left."""
    library, source = built(compiler, name, tmp_path)
    assert_computes(library, source, name)
    assert "omp_get" not in run("nm", "-D", "--undefined-only", tmp_path / "generated.so")
    assert "GOMP" not in run("nm", "-D", "--undefined-only", tmp_path / "generated.so")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("vector_bytes", WIDTHS)
def test_compilers_have_nothing_to_warn_of_whatever_the_machine(vector_bytes: int, compiler: str) -> None:
    """Each gets another pipeline on each machine."""
    names = ("camera_pipe", "harris", "unsharp")
    name = names[(WIDTHS.index(vector_bytes) + (compiler == "clang")) % len(names)]
    source = scheduled(name, machine(vector_bytes=vector_bytes)).source
    assert compiled(source, ("-O1",), compiler, vector_bytes).exists()


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_the_header_is_for_cpp_too(compiler: str, tmp_path: Path) -> None:
    source = scheduled("unsharp", here()).source
    write(source, tmp_path)
    (tmp_path / "caller.cpp").write_text(
        f'#include "{source.header_name}"\n#include "{source.header_name}"\n'
        f"int main() {{ return {source.entry}(nullptr, nullptr) == TILESMITH_E_ARGUMENT ? 0 : 1; }}\n"
    )
    objects = []
    for tool, name, flags in (
        ("gcc", "generated.c", source.flags),
        (compiler, "caller.cpp", ("-Wall", "-Wextra", "-Werror")),
    ):
        objects.append(tmp_path / f"{name}.o")
        run(require_tool(tool), *flags, "-O1", "-c", tmp_path / name, "-o", objects[-1])
    run(compiler, *objects, "-o", tmp_path / "caller", "-lm")
    run(tmp_path / "caller")


# AArch64

MAIN = """\
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include "{header}"

{data}

static double difference(double a, double b) {{ return a > b ? a - b : b - a; }}

int main(void) {{
    static {out_type} out[{out_size}];
    tilesmith_buffer from = {{(void *)input, {in_dims}, {{{in_min}}}, {{{in_extent}}}, {{{in_stride}}}}};
    tilesmith_buffer to = {{out, {out_dims}, {{{out_min}}}, {{{out_extent}}}, {{{out_stride}}}}};
    const int status = {entry}(&from, &to);
    if (status) return printf("status %d\\n", status), 1;
    for (int n = 0; n < {out_size}; n++)
        if (!(difference((double)out[n], (double)expected[n]) <= {allowed}))
            return printf("element %d: %.9g instead of %.9g\\n", n, (double)out[n], (double)expected[n]), 1;
    puts("right");
    return 0;
}}
"""


def main_of(p: Problem, source: CSource) -> str:
    """A program that calls the function and compares with what the interpreter makes of the same input."""
    (i,), (o,) = p.pipeline.inputs, p.pipeline.outputs
    image, (expected,) = p.inputs[i.name], p.expected[o]
    stage = p.pipeline.stage(o)
    allowed = 0.0 if expected.dtype.kind != "f" else TOLERANCE * float(np.abs(expected).max())

    def array(name: str, values: np.ndarray, type_) -> str:
        body = ",\n".join(
            ", ".join(literal(v.item(), type_) for v in row) for row in np.array_split(values.ravel(), 64)
        )
        return f"static const {element(type_)} {name}[] = {{{body}}};"

    def dense(extents: tuple[int, ...]) -> str:
        return ", ".join(str(int(np.prod(extents[:d], initial=1))) for d in range(len(extents)))

    region = p.regions[o]
    extents = tuple(n for _, n in region)
    return MAIN.format(
        header=source.header_name,
        entry=source.entry,
        data="\n".join((array("input", image.array, i.type), array("expected", expected, stage.types[0]))),
        in_dims=len(i.dims),
        in_min=", ".join(map(str, image.min)),
        in_extent=", ".join(map(str, image.array.shape[::-1])),
        in_stride=dense(image.array.shape[::-1]),
        out_type=element(stage.types[0]),
        out_size=expected.size,
        out_dims=len(region),
        out_min=", ".join(str(lo) for lo, _ in region),
        out_extent=", ".join(map(str, extents)),
        out_stride=dense(extents),
        allowed=repr(allowed),
    )


@pytest.mark.parametrize(
    ("name", "threads"), [("blur", 1), ("gaussian3x3", 1), ("harris", 2), ("laplacian_sharpen", 2), ("sobel", 2)]
)
def test_aarch64(name: str, threads: int, tmp_path: Path) -> None:
    """Scheduled for a machine of that kind, cross-compiled, run by QEMU."""
    platform = platforms.get("cortex-a73")
    compiler, (qemu, *more) = require_tool(platform.compiler.command), platform.compiler.run_prefix
    require_tool(qemu)
    source = scheduled(name, platform).source
    write(source, tmp_path)
    (tmp_path / "main.c").write_text(main_of(problem(name, "64x64"), source))
    program = tmp_path / "program"
    flags = (*source.flags, *WARNINGS, *platform.compiler.flags, *(["-fopenmp"] if threads > 1 else []))
    run(compiler, *flags, tmp_path / "main.c", tmp_path / "generated.c", "-o", program, "-lm")
    assert run(qemu, *more, program) == "right\n"
