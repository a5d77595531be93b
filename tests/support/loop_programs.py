"""Loop programs called by their interpreter, as compiled ones are called by `support.calls.call`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from support.calls import Region

from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.loop import interpreter
from tilesmith.scheduler.ir.loop.program import Program
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline


def run_program(
    program: Program,
    pipeline: Pipeline,
    inputs: Mapping[str, Image],
    params: Mapping[str, int | float | bool],
    regions: Mapping[str, Region],
) -> dict[str, tuple[np.ndarray, ...]]:
    """The outputs (axes reversed) that the program computes; images are dense in their storage order."""
    images: dict[str, interpreter.Image] = {}
    outputs: dict[str, list[np.ndarray]] = {}
    for a in program.arguments:
        if a.output:
            lo = tuple(start for start, _ in regions[a.name])
            shape = tuple(n for _, n in regions[a.name])
            elements = _laid_out(np.zeros(shape, a.type.numpy), a.dims, a.storage)
            outputs.setdefault(a.name, []).append(elements.transpose())
        else:
            lo = inputs[a.name].min
            elements = _laid_out(inputs[a.name].array.transpose(), a.dims, a.storage)
        images[a.c_name] = interpreter.Image(elements, tuple(lo))
    known = {p.name: params.get(p.name, p.default) for p in pipeline.params if p.value is None}
    interpreter.execute(program, images, {n: v for n, v in known.items() if v is not None})
    return {name: tuple(arrays) for name, arrays in outputs.items()}


def _laid_out(a: np.ndarray, dims: Sequence[str], storage: Sequence[str]) -> np.ndarray:
    """The array with its first dim of `storage` fastest in memory."""
    order = [dims.index(d) for d in reversed(storage)]
    dense = np.array(a.transpose(order), order="C")
    return dense.transpose(np.argsort(order).astype(int))
