"""Calls of compiled pipelines, by themselves: as a program, those that `support.children` asks for. It loads little, as
all that a process does takes two or three times as long under a sanitizer."""

from __future__ import annotations

import ctypes
import faulthandler
import pickle
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

SECONDS = 300
"""The most that one call may take before it counts as one that does not end."""

Region = tuple[tuple[int, int], ...]
RUBBISH = 0xA5
"""The byte that outputs are filled with before the call."""


class Buffer(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("dims", ctypes.c_int32),
        ("min", ctypes.c_int32 * 5),
        ("extent", ctypes.c_int32 * 5),
        ("stride", ctypes.c_int64 * 5),
    )


def _strides(shape_by_dim: tuple[int, ...], order: tuple[int, ...]) -> list[int]:
    strides, n = [0] * len(shape_by_dim), 1
    for d in order:
        strides[d] = n
        n *= shape_by_dim[d]
    return strides


def call(
    library: ctypes.CDLL,
    source: CSource,
    pipeline: Pipeline,
    inputs: Mapping[str, Image],
    params: Mapping[str, int | float | bool],
    regions: Mapping[str, Region],
    guard: int = 0,
) -> tuple[int, dict[str, tuple[np.ndarray, ...]]]:
    """The status and the outputs (axes reversed), every image dense in its storage order."""
    args: list[object] = []
    keep: list[object] = []
    for i in pipeline.inputs:
        if i.table is not None and i.name not in inputs:
            args.append(None)
            continue
        image = inputs[i.name]
        extents = image.array.shape[::-1]
        order = tuple(i.dims.index(d) for d in i.storage)
        data = np.ascontiguousarray(np.transpose(image.array, [len(order) - 1 - d for d in reversed(order)]))
        b = Buffer(data.ctypes.data, len(i.dims))
        for d, (lo, n, s) in enumerate(zip(image.min, extents, _strides(extents, order), strict=True)):
            b.min[d], b.extent[d], b.stride[d] = lo, n, s
        keep += [data, b]
        args.append(ctypes.addressof(b))
    for p in pipeline.params:
        cell = np.array(params.get(p.name, p.default), p.type.numpy)
        keep.append(cell)
        args.append(cell.ctypes.data)
    outputs: dict[str, list[np.ndarray]] = {}
    for name in pipeline.outputs:
        stage = pipeline.stage(name)
        order = tuple(stage.dims.index(d) for d in stage.storage)
        extents = tuple(n for _, n in regions[name])
        for t in stage.types:
            shape = [extents[d] for d in reversed(order)]
            data = np.frombuffer(bytearray([RUBBISH]) * int(np.prod(shape) * t.bytes), t.numpy).reshape(shape)
            b = Buffer(data.ctypes.data, len(stage.dims))
            for d, ((lo, n), s) in enumerate(zip(regions[name], _strides(extents, order), strict=True)):
                b.min[d], b.extent[d], b.stride[d] = lo, n, s
            keep += [data, b]
            args.append(ctypes.addressof(b))
            back = np.argsort([len(order) - 1 - d for d in reversed(order)])
            outputs.setdefault(name, []).append(np.transpose(data, back))
    f = getattr(library, source.entry + "_argv")
    f.restype = ctypes.c_int32
    status = f((ctypes.c_void_p * max(len(args), 1))(*args))
    return status, {name: tuple(arrays) for name, arrays in outputs.items()}


Outputs = dict[str, tuple[np.ndarray, ...]]


@dataclass(frozen=True)
class Call:
    """A compiled pipeline with what it is called with."""

    library: Path
    source: CSource
    pipeline: Pipeline
    inputs: Mapping[str, Image]
    params: Mapping[str, int | float | bool]
    regions: Mapping[str, Region]

    def made(self) -> tuple[int, Outputs]:
        """The status and the outputs, of a call in this process."""
        library = ctypes.CDLL(str(self.library))
        return call(library, self.source, self.pipeline, self.inputs, self.params, self.regions)


def main(asked: str, answers: str) -> None:
    """Answers one after the other, each as soon as it is there."""
    with open(answers, "wb", buffering=0) as file:
        for each in pickle.loads(Path(asked).read_bytes()):
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            file.write(pickle.dumps(each.made()))
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main(*sys.argv[1:])
