"""One contender in a process of its own: a library, its arguments, and the timing loop.

It reads a specification as one line of JSON, answers `{"ready": true}`, then serves commands, one line each:

    {"do": "call", "directory": D}  one call; the outputs are saved as D/0.npy, D/1.npy, ... ; {"status": 0}
    {"do": "time", "calls": N}      N calls in the C loop; {"milliseconds": [...]}

Every contender has the same loop, the same allocator, the same alignment and layout of its arguments;
what differs is the struct that describes an image.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tilesmith.app.bench.memory import allocate, layout

MAX_DIMS = 5


class TilesmithBuffer(ctypes.Structure):
    """The image struct of the C that we generate."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("dims", ctypes.c_int32),
        ("min", ctypes.c_int32 * MAX_DIMS),
        ("extent", ctypes.c_int32 * MAX_DIMS),
        ("stride", ctypes.c_int64 * MAX_DIMS),
    )


class HalideDimension(ctypes.Structure):
    _fields_ = (
        ("min", ctypes.c_int32),
        ("extent", ctypes.c_int32),
        ("stride", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
    )


class HalideBuffer(ctypes.Structure):
    """halide_buffer_t of HalideRuntime.h."""

    _fields_ = (
        ("device", ctypes.c_uint64),
        ("device_interface", ctypes.c_void_p),
        ("host", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("type_code", ctypes.c_uint8),
        ("type_bits", ctypes.c_uint8),
        ("type_lanes", ctypes.c_uint16),
        ("dimensions", ctypes.c_int32),
        ("dim", ctypes.POINTER(HalideDimension)),
        ("padding", ctypes.c_void_p),
    )


def tilesmith_buffer(array: np.ndarray, region: Sequence[Sequence[int]], strides: Sequence[int]) -> TilesmithBuffer:
    buffer = TilesmithBuffer(data=array.ctypes.data, dims=len(region))
    for d, (low, extent) in enumerate(region):
        buffer.min[d], buffer.extent[d], buffer.stride[d] = low, extent, strides[d]
    return buffer


def halide_buffer(array: np.ndarray, region: Sequence[Sequence[int]], strides: Sequence[int]) -> HalideBuffer:
    dims = (HalideDimension * max(len(region), 1))()
    for d, (low, extent) in enumerate(region):
        dims[d] = HalideDimension(low, extent, strides[d], 0)
    code = {"i": 0, "u": 1, "f": 2, "b": 1}[array.dtype.kind]
    bits = 1 if array.dtype.kind == "b" else array.dtype.itemsize * 8
    return HalideBuffer(
        host=array.ctypes.data, type_code=code, type_bits=bits, type_lanes=1, dimensions=len(region), dim=dims
    )


class Compiled:
    """A library's `<symbol>_argv` on arguments that stay where they are."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.describe = tilesmith_buffer if spec["abi"] == "tilesmith" else halide_buffer
        self.outputs: list[np.ndarray] = []
        self.keep: list[object] = []
        library = ctypes.CDLL(spec["library"])
        call = getattr(library, spec["symbol"] + "_argv")
        arguments = spec["arguments"]
        harness = ctypes.CDLL(spec["harness"])
        harness.count_processor_time(ctypes.c_int32(spec["one_thread"]))
        if spec["abi"] == "halide":
            if spec["keeps"]:
                library.halide_set_custom_malloc(harness.keeping_malloc)
                library.halide_set_custom_free(harness.keeping_free)
            arguments = self.with_room(arguments, call)
        self.arguments = self.pointers([self.argument(a) for a in arguments])
        self.function = ctypes.cast(call, ctypes.c_void_p)
        self.loop = harness.time_calls
        self.loop.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_double)]
        self.loop.restype = ctypes.c_int32

    @staticmethod
    def pointers(addresses: Sequence[int]) -> ctypes.Array[ctypes.c_void_p]:
        return (ctypes.c_void_p * len(addresses))(*addresses)

    def argument(self, a: dict[str, Any]) -> int:
        """The address of a scalar, or of a buffer with its data: a file's, or none yet for an output."""
        dtype = np.dtype(a["dtype"])
        if a["kind"] == "scalar":
            scalar = np.array([a["value"]], dtype=dtype)
            self.keep.append(scalar)
            return scalar.ctypes.data
        extents = [n for _, n in a["region"]]
        strides = layout(extents, a["storage"])
        array = allocate(dtype, extents, strides)
        if a["file"] is None:
            self.outputs.append(array)
        else:
            array[...] = np.pad(np.load(a["file"]), list(reversed(a.get("padding", [[0, 0]] * len(extents)))), "edge")
        buffer = self.describe(array, a["region"], strides)
        self.keep += [array, buffer]
        return ctypes.addressof(buffer)

    def with_room(self, arguments: list[dict[str, Any]], call: Callable[..., int]) -> list[dict[str, Any]]:
        """The arguments with inputs padded to what a bounds query asks for.

        Some of Halide's schedules compute more of an inner stage than the output needs, and read their
        inputs beyond what the pipeline reads. What is there does not reach the output. Inputs whose extents
        mean something, "fixed" ones, stay as they are.
        """
        addresses, queried = [], {}
        for k, a in enumerate(arguments):
            if a["kind"] == "scalar":
                addresses.append(self.argument(a))
                continue
            extents = [n for _, n in a["region"]]
            empty = np.zeros((1,) * len(extents), np.dtype(a["dtype"]))
            buffer = halide_buffer(empty, a["region"], layout(extents, a["storage"]))
            buffer.host = None if a["file"] is not None else empty.ctypes.data
            self.keep += [empty, buffer]
            queried[k] = buffer
            addresses.append(ctypes.addressof(buffer))
        if call(self.pointers(addresses)) != 0:
            raise RuntimeError("the bounds query failed")
        padded = []
        for k, a in enumerate(arguments):
            if a["kind"] == "buffer" and a["file"] is not None and not a["fixed"]:
                wanted = [(queried[k].dim[d].min, queried[k].dim[d].extent) for d in range(len(a["region"]))]
                padding = [
                    (max(low - w, 0), max(w + m - low - n, 0))
                    for (low, n), (w, m) in zip(a["region"], wanted, strict=True)
                ]
                region = [
                    (low - before, n + before + after)
                    for (low, n), (before, after) in zip(a["region"], padding, strict=True)
                ]
                a = a | {"region": region, "padding": padding}
            padded.append(a)
        return padded

    def time(self, calls: int) -> list[float]:
        taken = (ctypes.c_double * calls)()
        status = self.loop(self.function, ctypes.addressof(self.arguments), calls, taken)
        if status != 0:
            raise RuntimeError(f"the library returned {status}")
        return list(taken)


class Python:
    """A contender that is a Python function of arrays: NumPy, OpenCV. Its outputs are what it returns."""

    def __init__(self, spec: dict[str, Any]) -> None:
        from benchmarks.python_peers import PEERS

        self.run: Callable[[], tuple[np.ndarray, ...]] = PEERS[spec["abi"]](spec)
        self.outputs: Sequence[np.ndarray] = ()
        self.clock = time.process_time if spec["one_thread"] else time.perf_counter

    def time(self, calls: int) -> list[float]:
        taken = []
        for _ in range(calls):
            start = self.clock()
            self.outputs = self.run()
            taken.append((self.clock() - start) * 1e3)
        return taken


def serve(contender: Compiled | Python, answer: Callable[[dict[str, Any]], None]) -> None:
    """Answers commands until the other side closes."""
    answer({"ready": True})
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "call":
            contender.time(1)
            for k, array in enumerate(contender.outputs):
                np.save(Path(command["directory"]) / f"{k}.npy", array)
            answer({"status": 0})
        else:
            answer({"milliseconds": contender.time(command["calls"])})


def private_stdout() -> Callable[[dict[str, Any]], None]:
    """The function that answers; whatever the libraries print to standard output goes to standard error instead."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(message: dict[str, Any]) -> None:
        print(json.dumps(message), file=channel, flush=True)

    return answer


def main() -> None:
    answer = private_stdout()
    spec = json.loads(sys.stdin.readline())
    serve(Compiled(spec) if spec["abi"] in ("tilesmith", "halide") else Python(spec), answer)


if __name__ == "__main__":
    main()
