"""Pipelines in Halide: translated, scheduled by an autoscheduler of Halide's, compiled by its just-in-time compiler."""

from __future__ import annotations

import multiprocessing
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import halide as hl
import numpy as np

from tilesmith.app.bench.contest import Absent
from tilesmith.app.bench.halide_buffers import room
from tilesmith.app.bench.memory import storage_order
from tilesmith.app.bench.problem import Problem
from tilesmith.app.bench.to_halide import HalidePipeline, Untranslatable, to_halide
from tilesmith.scheduler.ir.pipeline.arguments import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Input

MOST_S = 120.0
"""Seconds that an autoscheduler has, with the compiler behind it."""


@dataclass(frozen=True)
class HalidePeer:
    """A pipeline as Halide compiled it, with its images. Halide's buffers do not own the memory: `inputs` and `outputs`
    do."""

    made: HalidePipeline
    target: hl.Target
    inputs: tuple[np.ndarray, ...]
    outputs: tuple[np.ndarray, ...]
    buffers: list[hl.Buffer]

    def __call__(self) -> tuple[np.ndarray, ...]:
        self.made.pipeline.realize(self.buffers, self.target)
        return self.outputs


def scheduled(problem: Problem, method: str, threads: int) -> HalidePeer:
    """The peer, tried in a process of its own first: autoschedulers may crash, or find no end. Raises Absent."""
    trial = multiprocessing.get_context("spawn").Process(target=_tried, args=(problem, method, threads), daemon=True)
    trial.start()
    trial.join(MOST_S)
    if trial.exitcode is None:
        trial.kill()
        trial.join()
        raise Absent(f"it took more than {MOST_S:.0f} s")
    if trial.exitcode < 0:
        raise Absent(f"it crashes ({signal.Signals(-trial.exitcode).name})")
    return _compiled(problem, method, threads)


def _tried(problem: Problem, method: str, threads: int) -> None:
    with suppress(Absent):
        _compiled(problem, method, threads)()


def _compiled(problem: Problem, method: str, threads: int) -> HalidePeer:
    """The pipeline scheduled and compiled. Raises Absent, with Halide's own words."""
    try:
        made = to_halide(problem.pipeline)
        _estimate(made, problem)
        target = hl.get_host_target()
        _autoschedule(made, method, threads, target)
        made.pipeline.compile_jit(target)
    except (Untranslatable, hl.HalideError, RuntimeError) as error:
        raise Absent(" ".join(str(error).split())[:200]) from None
    inputs = tuple(_input(made, wanted, problem.inputs[wanted.name]) for wanted in problem.pipeline.inputs)
    for param in problem.pipeline.params:
        made.params[param.name].set(problem.params[param.name])
    rooms = [
        room(type_.numpy, problem.regions[name], storage_order(stage.dims, stage.storage))
        for name in problem.pipeline.outputs
        for stage in (problem.pipeline.stage(name),)
        for type_ in stage.types
    ]
    return HalidePeer(made, target, inputs, tuple(array for array, _ in rooms), [buffer for _, buffer in rooms])


def _input(made: HalidePipeline, wanted: Input, image: Image) -> np.ndarray:
    """The memory of an image, which Halide reads."""
    region = tuple(zip(image.min, reversed(image.array.shape), strict=True))
    array, buffer = room(wanted.type.numpy, region, storage_order(wanted.dims, wanted.storage))
    array[...] = image.array
    made.inputs[wanted.name].set(buffer)
    return array


def _estimate(made: HalidePipeline, problem: Problem) -> None:
    """The sizes that the schedule is made for."""
    for name, param in made.inputs.items():
        image = problem.inputs[name]
        for d, (low, extent) in enumerate(zip(image.min, reversed(image.array.shape), strict=True)):
            param.dim(d).set_estimate(low, extent)
    for name, output in zip(problem.pipeline.outputs, made.outputs, strict=True):
        output.set_estimates([hl.Range(low, extent) for low, extent in problem.regions[name]])
    for name, scalar in made.params.items():
        scalar.set_estimate(problem.params[name])


def _autoschedule(made: HalidePipeline, method: str, threads: int, target: hl.Target) -> None:
    plugin = Path(hl.__file__).parent / "lib64" / f"libautoschedule_{method.lower()}.so"
    hl.load_plugin(str(plugin))
    made.pipeline.apply_autoscheduler(target, hl.AutoschedulerParams(method, {"parallelism": str(threads)}))
