"""Look-ups, resampling, wavelets and interleaved images: the method `default` against that of the paper, every stage at
root, and OpenCV's own function where it has one.

    python -m benchmarks.resampling [--pipelines NAME ...] [--isa avx2 ...] [--threads N] [--rounds 8] [--calibrated]

All are called in turns in one process, on the same images, and a figure is the fastest call of all rounds. OpenCV's
functions may round otherwise, so that their results are not compared; the others' are. Exit status 1 where `default`
takes more than 1.03 times the faster of the two.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks import builds, report
from benchmarks.arguments import Arguments
from benchmarks.builds import instruction_sets, platform_of
from benchmarks.contest import BUILD
from benchmarks.interleaved import Library, Loop, agree
from benchmarks.problem import Problem, at_estimates
from benchmarks.resampling_pipelines import DOCUMENTS
from tilesmith.app.bench.agreement import ContenderError
from tilesmith.app.runtime.build import build
from tilesmith.platforms import CpuPlatform
from tilesmith.scheduler.compiler import generate
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.search import SearchOptions, autoschedule, root_schedule

COMPILE_S = 300.0
BURST_MS = 20.0
BOUND = 1.03
OWN = ("default", "taco2019", "root")
LIBRARY = "opencv"

Images = Mapping[str, np.ndarray]
Operation = Callable[[Images], object]


def operations() -> dict[str, Operation]:
    """What OpenCV has of the pipelines, by name; nothing where it is not installed."""
    try:
        cv2: Any = import_module("cv2")
    except ImportError:
        return {}
    cv2.setNumThreads(1)
    size = (1536, 1024)
    matrix = np.array([[0.95, 0.12, 20.0], [-0.12, 0.95, 90.0]], np.float32)
    plane = np.vstack([matrix, np.array([[5e-5, 5e-5, 1.0]], np.float32)])
    backwards = cv2.WARP_INVERSE_MAP | cv2.INTER_LINEAR
    curve = np.uint8(np.arange(256))
    tiles = cv2.createCLAHE(1.0, (12, 8))

    def resized(how: int, to: tuple[int, int] = size) -> Operation:
        return lambda i: cv2.resize(i["a"], to, interpolation=how)

    def converted(code: int) -> Operation:
        return lambda i: cv2.cvtColor(i["a"], code)

    found: dict[str, Operation] = {
        "equalise": lambda i: cv2.equalizeHist(i["a"]),
        "local_equalise": lambda i: tiles.apply(i["a"]),
        "joint_histogram": lambda i: cv2.calcHist([i["a"], i["b"]], [0, 1], None, [32, 32], [0, 256, 0, 256]),
        "gamma": lambda i: cv2.LUT(i["a"], curve),
        "gamma_table": lambda i: cv2.LUT(i["a"], curve),
        "sigmoid_contrast": lambda i: cv2.LUT(i["a"], curve),
        "nv12": lambda i: cv2.cvtColorTwoPlane(i["l"], i["uv"], cv2.COLOR_YUV2RGB_NV12),
        "yuyv": lambda i: cv2.cvtColor(i["a"].reshape(size[1], size[0], 2), cv2.COLOR_YUV2RGB_YUY2),
        "swap_byte": converted(cv2.COLOR_RGB2BGR),
        "swap_float": converted(cv2.COLOR_RGB2BGR),
        "greyscale": converted(cv2.COLOR_RGB2GRAY),
        "matrix_byte": lambda i: cv2.transform(i["a"], i["m"]),
        "matrix_float": lambda i: cv2.transform(i["a"], i["m"]),
        "interleave": lambda i: cv2.merge(tuple(i["a"])),
        "deinterleave": lambda i: cv2.split(i["a"]),
        "blur_rgb": lambda i: cv2.GaussianBlur(i["a"], (3, 3), 0, borderType=cv2.BORDER_REPLICATE),
        "demosaic": converted(cv2.COLOR_BayerRGGB2RGB),
        "affine_byte": lambda i: cv2.warpAffine(i["a"], matrix, size, flags=backwards),
        "affine_float": lambda i: cv2.warpAffine(i["a"], matrix, size, flags=backwards),
        "perspective_byte": lambda i: cv2.warpPerspective(i["a"], plane, size, flags=backwards),
        "box2_byte": resized(cv2.INTER_AREA, (768, 512)),
        "box2_float": resized(cv2.INTER_AREA, (768, 512)),
        "box2_rgb": resized(cv2.INTER_AREA, (768, 512)),
        "box3_byte": resized(cv2.INTER_AREA, (512, 341)),
        "box3_float": resized(cv2.INTER_AREA, (512, 341)),
        "area": resized(cv2.INTER_AREA, (1024, 682)),
        "lanczos": resized(cv2.INTER_LANCZOS4),
        "crop_rgb": lambda i: i["a"][9:909, 17:1417].copy(),
    }
    found |= dict.fromkeys(
        ("bilinear_float", "bilinear_byte", "bilinear_rows", "bilinear_rgb"), resized(cv2.INTER_LINEAR)
    )
    found |= dict.fromkeys(("bicubic", "bicubic_byte", "bicubic_rgb"), resized(cv2.INTER_CUBIC))
    nearest = ("nearest_float", "nearest_byte", "nearest_rgb", "nearest_integer")
    found |= dict.fromkeys(nearest, resized(cv2.INTER_NEAREST))
    found |= dict.fromkeys(("transpose_byte", "transpose_float", "transpose_rgb"), lambda i: cv2.transpose(i["a"]))
    turned = cv2.ROTATE_90_CLOCKWISE
    found |= dict.fromkeys(("rotate_byte", "rotate_float"), lambda i: cv2.rotate(i["a"], turned))
    found |= dict.fromkeys(("flip_byte", "flip_rgb"), lambda i: cv2.flip(i["a"], 1))
    found |= dict.fromkeys(("pyramid_down_byte", "pyramid_down_float"), lambda i: cv2.pyrDown(i["a"]))
    found |= dict.fromkeys(("pyramid_up_byte", "pyramid_up_float"), lambda i: cv2.pyrUp(i["a"]))
    return found


def images(problem: Problem) -> Images:
    """The inputs as OpenCV has them: interleaved where the pipeline has them so."""
    found = {}
    for i in problem.pipeline.inputs:
        order = i.storage or i.dims
        axes = [len(i.dims) - 1 - i.dims.index(d) for d in reversed(order)]
        found[i.name] = np.ascontiguousarray(problem.inputs[i.name].transpose(axes))
    return found


@cache
def machine(isa: str, threads: int, calibrated: bool) -> CpuPlatform:
    """The platform that is scheduled for."""
    platform = platform_of(isa, "gcc", threads)
    return builds.measured(platform) if calibrated else platform


def compiled(name: str, pipeline: Pipeline, platform: CpuPlatform) -> Library:
    """One of our contenders."""
    if name == "root":
        schedule = root_schedule(pipeline, platform)
    else:
        schedule = autoschedule(pipeline, platform, SearchOptions(name)).schedule
    source = generate(pipeline, schedule, platform)
    return Library.load(name, str(build(source, platform, BUILD / "resampling", COMPILE_S).path), source.entry)


def timed(pipeline: Pipeline, platform: CpuPlatform, rounds: int, operation: Operation | None) -> dict[str, float]:
    """Milliseconds of the fastest call of each contender. Raises ContenderError where ours disagree."""
    libraries = [compiled(name, pipeline, platform) for name in OWN]
    problem, loop = at_estimates(pipeline), Loop()
    arguments = Arguments(problem)
    least = agree(problem, libraries, arguments, loop)
    turns: dict[str, Callable[[int], float]] = {lib.name: partial(loop, lib, arguments) for lib in libraries}
    if operation is not None and platform.threads == 1:
        own = images(problem)
        turns[LIBRARY] = lambda calls: min(_call(operation, own) for _ in range(calls))
        least[LIBRARY] = turns[LIBRARY](1)
    for _ in range(rounds):
        for name, turn in turns.items():
            calls = max(1, min(200, math.ceil(BURST_MS / least[name])))
            least[name] = min(least[name], turn(calls))
    return least


def _call(operation: Operation, own: Images) -> float:
    start = time.perf_counter()
    operation(own)
    return (time.perf_counter() - start) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resampling", description="Look-ups and resampling.")
    parser.add_argument("--pipelines", nargs="+", default=list(DOCUMENTS), choices=list(DOCUMENTS), metavar="NAME")
    parser.add_argument("--isa", nargs="+", default=list(instruction_sets())[:2], choices=instruction_sets())
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--calibrated", action="store_true", help="for the machine as it was measured on first use")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    library, lost = operations(), False
    print(f"{'':22}{'isa':8}" + "".join(f"{n:>10}" for n in (*OWN, LIBRARY, "/ours", "/opencv")))
    for name in arguments.pipelines:
        for isa in arguments.isa:
            report.progress(f"{name}, {isa}")
            platform = machine(isa, arguments.threads, arguments.calibrated)
            try:
                found = timed(load(DOCUMENTS[name]), platform, arguments.rounds, library.get(name))
            except ContenderError as e:
                print(f"{name:22}{isa:8} {e}")
                lost = True
                continue
            ratio = found["default"] / min(found[n] for n in OWN[1:])
            lost |= ratio > BOUND
            print(f"{name:22}{isa:8}" + line(found, ratio), flush=True)
    sys.exit(1 if lost else 0)


def line(found: Mapping[str, float], ratio: float) -> str:
    """The figures of a pipeline."""
    other = found.get(LIBRARY)
    cells: Sequence[float | None] = [*(found[n] for n in OWN), other, ratio, other and found["default"] / other]
    return "".join(f"{'':>10}" if c is None else f"{c:10.3f}" for c in cells)


if __name__ == "__main__":
    main()
