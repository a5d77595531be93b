"""A backend: loop programs without vectors as Python functions of `images` (array, mins) and `params`, by name."""

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.codegen.registry import Backend, register
from tilesmith.scheduler.ir.loop import ops, program
from tilesmith.scheduler.ir.loop.printer import Printer, print_index
from tilesmith.scheduler.ir.loop.values import Value

HEAD = """import numpy as np
from operator import mul
from tilesmith.scheduler.ir.index import floor_div as div, remainder as mod
from tilesmith.scheduler.ir.pipeline.semantics import binary, call, compare, constant, convert, unary
from tilesmith.scheduler.ir.pipeline.types import TYPES as T
from types import SimpleNamespace as Names
def _image(dims, array, mins):
    strides = [s // array.itemsize for s in array.strides]
    mins, extents, strides = (Names(**dict(zip(dims, numbers))) for numbers in (mins, array.shape, strides))
    return Names(data=(array.ravel("K"), 0), min=mins, origin=mins, extent=extents, stride=strides)

"""
FORMATS: dict[type, str] = {
    ops.Binary: "binary('{op:name}', {a}, {b}, {a:type})",
    ops.Call: "call('{function:name}', [{args}], [T[str(a.dtype)] for a in ({args},)], {result:type})",
    ops.Cast: "convert({a}, {a:type}, {result:type}, {saturate:name})",
    ops.Compare: "compare('{op:name}', {a}, {b})",
    ops.Copy: "{a}",
    ops.FromIndex: "np.int32({at})",
    ops.Load: "{row}[0][{row}[1] + {at}]",  # a pointer is an array, and the place of its first element
    ops.Logical: "np.logical_{op:name}({a}, {b})",
    ops.Select: "np.where({condition}, {a}, {b})",
    ops.ToIndex: "int({a})",
    ops.Unary: "unary('{op:name}', {a}, {a:type})",
    program.Accumulator: "{result} = {start}",
    program.Allocate: "{memory}",
    program.Assign: "{target} = {value}",
    program.Bind: "{scratch}",
    program.Comment: "# {text:name}",
    program.Define: "{result} = {op}",
    program.If: "if all([{nonnegative:conditions}]) [[and {condition}]]{body} [[\nelse{otherwise}]]",
    program.Loop: "for {var} in range({lo}, {hi} + 1, {step}){body}",
    program.RowPointer: "{result:pointer} = {buffer}[0], {buffer}[1] + {offset}",
    program.Store: "{row}[0][{row}[1] + {index}] = {value}",
    **dict.fromkeys((program.Let, program.MutableIndex, program.AssignIndex), "{name} = {value}"),
    **dict.fromkeys((program.Free, program.OverflowGuard, program.Scratch), "pass"),
}


class PythonBackend(Printer, Backend):
    name, platform_kind = "python", "cpu"

    def __init__(self) -> None:
        kinds = {"Value": self.value, "type": lambda v: f"T['{v.type}']", "Body": self.block, "Extents": self.memory}
        super().__init__(FORMATS, kinds | {"Buffer": lambda b: b.pointer, "Scratch": lambda s: self.memory(*s.buffers)})

    def emit(self, p: program.Program, platform: object = None) -> CSource:
        lines = ["param = Names(**params)", *map(self.text, p.derived)]  # those that follow from others have no format
        lines += [f"{q.c_name} = constant(params['{q.name}'], T['{q.type}'])" for q in p.params]
        lines += [f"{a.name} = {a.c_name} = _image({a.dims}, *images['{a.c_name}'])" for a in p.arguments]
        lines += [f"{a.c_name}_data = {a.c_name}.data" for a in p.arguments]
        code = f"{HEAD}def {p.name}(images, params)" + self.block(p.bounds + p.body, *lines) + "\n"
        return CSource(code, "", f"{p.name}.py", p.name, (), p.estimates, "py")

    def block(self, body: program.Body, *lines: str) -> str:
        return ":" + "".join(f"\n{line}" for line in (*lines, *map(self.text, body))).replace("\n", "\n    ")

    def value(self, v: Value) -> str:
        return v.name if v.literal is None else f"constant({v.literal!r}, T['{v.type}'])"

    def memory(self, *buffers: program.Extents) -> str:
        lines = []
        for m in buffers:
            sizes = ["1", *(f"({print_index(e)})" for e in m.extents)]
            for n, d in enumerate(m.order, start=1):
                lines += [f"{name} = {' * '.join(sizes[:n])}" for name in m.buffer.stride[d].symbols()]
            lines.append(f"{m.buffer.pointer} = np.empty({' * '.join(sizes)}, '{m.buffer.type}'), 0")
        return "\n".join(lines)


register(PythonBackend())
