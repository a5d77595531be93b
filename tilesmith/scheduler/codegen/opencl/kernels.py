"""The text of kernels, with what each is called with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tilesmith.scheduler.codegen.c.types import Symbols
from tilesmith.scheduler.codegen.opencl import types
from tilesmith.scheduler.codegen.opencl.operands import Operands
from tilesmith.scheduler.codegen.opencl.outline import Kernel, names_inside
from tilesmith.scheduler.codegen.opencl.prelude import TYPES, helpers_used
from tilesmith.scheduler.codegen.opencl.statements import Statements
from tilesmith.scheduler.codegen.opencl.work_items import ALONE, Shared
from tilesmith.scheduler.ir.loop.program import Bind, Scratch
from tilesmith.scheduler.ir.loop.signature import Parameter
from tilesmith.scheduler.ir.loop.traversal import used
from tilesmith.scheduler.ir.loop.values import Buffer

PRAGMAS = {
    "strict": "#pragma OPENCL FP_CONTRACT OFF",
    "double": "#pragma OPENCL EXTENSION cl_khr_fp64 : enable",
}


LOCAL = "_local"
"""The end of the name of a kernel whose work-groups have their buffers in local memory."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a kernel: buffers of the call, memory of work-groups, params, and integers by the names that
    they have in C, in this order."""

    buffers: tuple[Buffer, ...]
    scratches: tuple[Scratch, ...]
    params: tuple[Parameter, ...]
    numbers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """The names that all kernels may use: buffers by their pointers, params by their symbols and by their names in C,
    the names of symbols in C, and the buffers that are written."""

    buffers: Mapping[str, Buffer]
    params: Mapping[str, Parameter]
    names: Mapping[str, str]
    written: frozenset[str]


def signature(kernel: Kernel, known: Known) -> Signature:
    """The parameters of a kernel: all that it uses of what is known outside of it."""
    statements = tuple(kernel.statements())
    inside = names_inside(statements)
    outside = dict.fromkeys(name for s in statements for name in used(s) if name not in inside)
    scratches = dict.fromkeys(s.scratch.name for s in statements if isinstance(s, Bind))
    layouts = {s.scratch.name: s.scratch for s in statements if isinstance(s, Bind)}
    own = [known.names.get(n, n) for n in outside if n not in known.buffers and n not in known.params]
    numbers = [*own, *(x for name in scratches for x in _places(layouts[name]))]
    return Signature(
        tuple(known.buffers[n] for n in outside if n in known.buffers),
        tuple(layouts[name] for name in scratches),
        tuple(dict.fromkeys(known.params[n] for n in outside if n in known.params)),
        tuple(dict.fromkeys(numbers)),
    )


def _places(s: Scratch) -> Iterable[str]:
    """The integers that say where the buffers of a work-group are."""
    return (f"{s.name}_bytes", *(f"{m.buffer.pointer}_at" for m in s.buffers))


def text_of(kernel: Kernel, own: Signature, known: Known, items: Shared = ALONE, local: bool = False) -> str:
    """The function of a kernel, whose work-items share `items`; with `local` the one of those two whose work-groups
    have their buffers in local memory."""
    printer = Statements(Operands(Symbols(known.names)), known.written, kernel.shared, items, local)
    pointers = [f"{printer.pointer(b)}restrict {b.pointer}" for b in own.buffers]
    pointers += [f"{'local' if local else 'global'} char *{s.name}" for s in own.scratches]
    values = [f"{types.element(p.type)} {p.c_name}" for p in own.params] + [f"long {n}" for n in own.numbers]
    name = kernel.name + LOCAL * local
    lines = [f"kernel void {name}({', '.join([*pointers, *values])}) {{"]
    return "\n".join([*lines, *printer.inner(tuple(kernel.body)), "}", ""])


def program_of(functions: Iterable[str], strict: bool) -> str:
    """The whole program of such functions."""
    text = "\n".join(functions)
    pragmas = [PRAGMAS["strict"]] if strict else []
    pragmas += [PRAGMAS["double"]] if "double" in text else []
    return "\n".join([*pragmas, TYPES, helpers_used(text), text])
