"""Serialised pipelines of Halide (`serialize_pipeline`, .hlpipe): read without Halide, and nothing of them is run."""

from __future__ import annotations

import re

import networkx as nx

from tilesmith.scheduler.frontends.halide.document import Obstacle
from tilesmith.scheduler.frontends.halide.facts import ImageFacts, ParamFacts
from tilesmith.scheduler.frontends.halide.imported import Imported, imported, sizes_of
from tilesmith.scheduler.frontends.halide.options import HalideOptions
from tilesmith.scheduler.frontends.halide.serialized import BadBuffer, HalideParameter, HalideProgram, read
from tilesmith.scheduler.frontends.halide.structure import nodes_of


def from_serialized(content: bytes, name: str | None = None, options: HalideOptions | None = None) -> Imported:
    """The pipeline in the bytes. Estimates and strides of an ImageParam are those of the Func that Halide wraps around
    it; of a Param the bytes have the type alone, and `options` what else is known. Raises NotExpressible, ImportFailed
    for options that fit nothing, and BadBuffer for other bytes."""
    program = read(content)
    _check(program)
    images = {p.name: _image(p, program) for p in program.parameters if p.is_buffer}
    scalars = {p.name: ParamFacts(p.type, None, None, None) for p in program.parameters if not p.is_buffer}
    options = options or HalideOptions()
    return imported(program, images, options.applied(scalars), options.spans(sizes_of(program)), name)


def _check(program: HalideProgram) -> None:
    """Halide writes what hangs together; bytes of others need not. Raises BadBuffer."""
    known = {p.name for p in program.parameters} | set(program.buffers)
    graph: nx.DiGraph[str] = nx.DiGraph()
    for f in program.funcs.values():
        if not set(f.storage) <= set(f.args) or len(set(f.args)) != len(f.args):
            raise BadBuffer(f"the storage of the Func {f.name!r} is of other dims")
        if not f.extern and (not f.definitions or any(not d.values for d in f.definitions)):
            raise BadBuffer(f"the Func {f.name!r} has no values")
        if any(len(d.args) != len(f.args) for d in f.definitions):
            raise BadBuffer(f"a definition of the Func {f.name!r} has another number of dims")
        for n in nodes_of(f):
            if n.kind == "halide" and n.name not in program.funcs:
                raise BadBuffer(f"the Func {n.name!r} is called, and is not there")
            if (n.kind == "image" and n.name not in known) or (n.param and n.param not in known):
                raise BadBuffer(f"{n.name!r} is read, and is not there")
            if n.kind == "halide" and n.name != f.name:
                graph.add_edge(f.name, n.name)
    if not program.outputs or any(o not in program.funcs for o in program.outputs):
        raise BadBuffer("outputs are no Funcs of the pipeline")
    if not nx.is_directed_acyclic_graph(graph):
        raise BadBuffer("Funcs call each other in a ring")


def _image(p: HalideParameter, program: HalideProgram) -> ImageFacts:
    wrapped = re.compile(rf"{re.escape(p.name)}_im(\$\d+)?")
    dims = next((c for name, c in program.constraints.items() if wrapped.fullmatch(name)), ())
    if len(dims) != p.dimensions:
        if not 0 <= p.dimensions <= 16:
            raise BadBuffer(f"an image of {p.dimensions} dims")
        return ImageFacts(p.type, ((None, None),) * p.dimensions, (None,) * p.dimensions)
    return ImageFacts(p.type, tuple((d.min, d.extent) for d in dims), tuple(d.stride for d in dims))


__all__ = ["BadBuffer", "Obstacle", "from_serialized"]
