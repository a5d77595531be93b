"""Contenders: the code of tilesmith, the interpreter, OpenCV, Halide, and functions of the user's own."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tilesmith.app.bench.contest import Absent, Contender, Run
from tilesmith.app.bench.problem import Problem
from tilesmith.app.inprocess.compile import compile as compiled
from tilesmith.platforms import Platform
from tilesmith.scheduler.compiler import Options
from tilesmith.scheduler.interpreter.interpreter import interpret
from tilesmith.scheduler.ir.pipeline.arguments import Region
from tilesmith.scheduler.strategies import catalog

MOST_INTERPRETED_S = 20.0
SHARE = 8
"""The part of an output along its first two dims that tells how long the interpreter takes for all of it."""
HALIDE_METHODS = ("Mullapudi2016", "Adams2019", "Li2018")


def tilesmith(problem: Problem, platform: Platform, options: Options, threads: int) -> Contender:
    """The code of the schedule that is asked for. Raises what `compile` and `build` raise."""
    return Contender("tilesmith", _code(problem, platform, options, threads), f"this schedule, {threads} threads")


def naive(problem: Problem, platform: Platform, threads: int) -> Contender:
    """The code of every stage alone and whole, without vectors or threads: what the pipeline says."""
    options = Options(strategy=catalog.load("naive"))
    return Contender(
        "naive C", _code(problem, platform, options, threads), "the same in C, a stage at a time, one thread"
    )


def numpy(problem: Problem) -> Contender:
    """The reference interpreter, which computes whole stages with NumPy. Raises Absent where it would take too long."""
    small = {name: _part(region) for name, region in problem.regions.items()}
    start = time.perf_counter()
    interpret(problem.pipeline, problem.inputs, problem.params, small)
    foreseen = (time.perf_counter() - start) * max(_points(problem.regions[n]) / _points(small[n]) for n in small)
    if foreseen > MOST_INTERPRETED_S:
        raise Absent(f"it would take about {foreseen:.0f} s")

    def run() -> tuple[np.ndarray, ...]:
        made = interpret(problem.pipeline, problem.inputs, problem.params, problem.regions)
        return tuple(part for name in problem.pipeline.outputs for part in made[name])

    return Contender("NumPy", run, "the reference interpreter, a stage at a time")


def opencv(problem: Problem, threads: int) -> Contender:
    """A shipped pipeline by OpenCV's functions. Raises Absent where there is none, or no OpenCV."""
    from tilesmith.app.bench.opencv import OPENCV
    from tilesmith.scheduler import pipelines

    name = problem.pipeline.name
    if name not in OPENCV or name not in pipelines.names() or pipelines.load(name).stages != problem.pipeline.stages:
        raise Absent(f"no equal is known of it: of {', '.join(sorted(OPENCV))} there is one; write it as --against")
    if importlib.util.find_spec("cv2") is None:
        raise Absent("it is not installed: pip install opencv-python-headless")
    import cv2

    cv2.setNumThreads(threads)
    return Contender("OpenCV", OPENCV[name](problem.arrays[0]), f"cv2 {cv2.__version__}, {threads} threads")


def halide(problem: Problem, method: str, threads: int) -> Contender:
    """The pipeline in Halide, scheduled by one of its autoschedulers and compiled by it. Raises Absent."""
    if importlib.util.find_spec("halide") is None:
        raise Absent("it is not installed: pip install 'tilesmith[halide]'")
    from tilesmith.app.bench.halide_peer import scheduled

    return Contender(f"Halide {method}", scheduled(problem, method, threads), f"its autoscheduler, {threads} threads")


def own(problem: Problem, spec: str) -> Contender:
    """FILE.py:function of the user: called with the images in their order (NumPy arrays, rows first) and the params by
    name; returns the outputs in their order. Raises Absent."""
    path, _, name = spec.rpartition(":")
    function = _function(Path(path), name)
    params = dict(problem.params)

    def run() -> tuple[np.ndarray, ...]:
        made = function(*problem.arrays, **params)
        return tuple(np.asarray(a) for a in (made if isinstance(made, tuple | list) else (made,)))

    return Contender(name, run, path)


def _function(path: Path, name: str) -> Callable[..., Any]:
    found = importlib.util.spec_from_file_location("tilesmith_against", path) if path.is_file() else None
    if found is None or found.loader is None or not name:
        raise Absent("expected FILE.py:function, of a file that is there")
    module = importlib.util.module_from_spec(found)
    try:
        found.loader.exec_module(module)
    except Exception as error:  # the user's own code
        raise Absent(f"{path} fails: {type(error).__name__}: {error}") from None
    function = getattr(module, name, None)
    if not callable(function):
        raise Absent(f"{path} has no function {name!r}")
    return function  # type: ignore[no-any-return]


def _code(problem: Problem, platform: Platform, options: Options, threads: int) -> Run:
    function = compiled(problem.pipeline, platform, options, threads=threads).build()
    named: dict[str, Any] = dict(problem.params)
    named["region"] = dict(problem.regions)
    named["origin"] = {name: image.min for name, image in problem.inputs.items()}
    named["out"] = _parts(function(*problem.arrays, **named), len(problem.pipeline.outputs))

    def run() -> tuple[np.ndarray, ...]:
        function(*problem.arrays, **named)
        return tuple(_flat(named["out"]))

    return run


def _parts(made: Any, outputs: int) -> tuple[Any, ...]:
    return tuple(made) if outputs > 1 else (made,)


def _flat(parts: Sequence[Any]) -> list[np.ndarray]:
    return [a for part in parts for a in (part if isinstance(part, tuple) else (part,))]


def _part(region: Region) -> Region:
    return tuple(
        (low, max(extent // SHARE, min(extent, 1))) if d < 2 else (low, extent)
        for d, (low, extent) in enumerate(region)
    )


def _points(region: Region) -> int:
    return int(np.prod([extent for _, extent in region]))
