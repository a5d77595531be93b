"""Loop program to one C file that has the kernels as text, and starts them; and its header."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tilesmith.platforms import OpenClPlatform
from tilesmith.scheduler.analysis.bounds_inference import param_symbol
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.codegen.c.control import advanced, opened, peeled, strides
from tilesmith.scheduler.codegen.c.emitter import FLAGS, STRICT
from tilesmith.scheduler.codegen.c.entry import Entry, header_of, safe_comment, symbol_names, used_lines
from tilesmith.scheduler.codegen.c.operands import Operands
from tilesmith.scheduler.codegen.c.prelude import (
    ABI,
    entry_name,
    helpers_used,
)
from tilesmith.scheduler.codegen.c.types import Symbols, element, scalar, words
from tilesmith.scheduler.codegen.opencl.kernels import LOCAL, Known, Signature, program_of, signature, text_of
from tilesmith.scheduler.codegen.opencl.outline import Host, HostIf, HostLoop, Kernel, outlined
from tilesmith.scheduler.codegen.opencl.runtime import FUNCTIONS, INCLUDES, STATUS
from tilesmith.scheduler.codegen.opencl.work_items import ALONE, shared
from tilesmith.scheduler.ir.index import divide
from tilesmith.scheduler.ir.loop.program import (
    Allocate,
    Extents,
    Free,
    Let,
    MutableIndex,
    OverflowGuard,
    PeelVectors,
    Program,
    Scratch,
)
from tilesmith.scheduler.ir.loop.signature import Argument

OPTIONS = {True: "-cl-std=CL1.2", False: "-cl-std=CL1.2 -cl-mad-enable -cl-no-signed-zeros"}
"""Options of the device's compiler, by whether floats are computed as written."""
DEVICE_TYPES = {"cpu": 2, "gpu": 4, "accelerator": 8}
GROUPS = 16
"""Work-groups for each compute unit that have memory of their own, at most."""


def emit(program: Program, platform: OpenClPlatform) -> CSource:
    """The C of a loop program for the device of the platform's name, or of its type: the same bytes for the same
    program."""
    entry, header_name = entry_name(program.name), f"{program.name}.h"
    header = header_of(program, entry, ABI + STATUS)
    code = _Emitter(program, entry, header_name, platform).run()
    return CSource(code, header, header_name, entry, FLAGS + STRICT, program.estimates, libraries=("dl", "pthread"))


class _Emitter:
    def __init__(self, program: Program, entry: str, header_name: str, platform: OpenClPlatform) -> None:
        self.program = program
        self.entry = entry
        self.header_name = header_name
        self.platform = platform
        self.symbols = Symbols(symbol_names(program))
        self.operands = Operands(self.symbols, True, 8, program.architecture)
        self.opening = Entry(program, entry, self.symbols, self.operands)
        self.steps = outlined(program.body)
        self.kernels = tuple(_kernels(self.steps))
        self.known = self._known()
        self.signatures = [signature(k, self.known) for k in self.kernels]
        self.items = [shared(k) if platform.work_items > 1 else ALONE for k in self.kernels]
        self.functions = [(n, local) for n in range(len(self.kernels)) for local in self._memories(n)]

    def run(self) -> str:
        p, device_type = self.program, self.platform.device_type
        bound_lines = self.opening.bound_lines()
        main = [*self.opening.opening(bound_lines), *self._run_lines(), "}", ""]
        lines, _ = used_lines([*main, *self.opening.argv_lines(), *self._release_lines()])
        text = "\n".join(lines)
        functions = [
            text_of(self.kernels[n], self.signatures[n], self.known, self.items[n], local)
            for n, local in self.functions
        ]
        images = sum(bool(a.dims) for a in p.arguments)
        prelude = [
            f"/* {p.name}: scheduled by tilesmith with method {p.method}."
            + (f"\n   {safe_comment(p.doc)}" if p.doc else ""),
            "   Kernels in OpenCL C 1.2, and what starts them. */",
            INCLUDES.rstrip(),
            f'#include "{self.header_name}"',
            "",
            f"enum {{ LINE = {p.line_bytes} }}; /* bytes of a cache line */",
            f"enum {{ CROWDED = {p.crowded_bytes} }}; /* bytes apart rows share too few sets */",
            f"enum {{ BLOCKS = {max(images, 1)} }}; /* copies of images in use at once, at most */",
            f"enum {{ TILESMITH_KERNELS = {len(self.functions)}, TILESMITH_BUFFERS = {self._buffer_count()} }};",
            f"enum {{ TILESMITH_DEVICE_TYPE = {DEVICE_TYPES[device_type]} }}; /* {device_type} */",
            f'#define TILESMITH_OPTIONS "{OPTIONS[p.strict]}"',
            f"static const char ts_device[] = {_string(self.platform.device)};",
            "static const char *const ts_names[] = {",
            *(f"    {_string(self.kernels[n].name + LOCAL * local)}," for n, local in self.functions),
            "};",
            "",
            "static const char *const ts_source[] = {",
            *(f"    {_string(line)}," for line in program_of(functions, p.strict).splitlines(keepends=True)),
            "};",
            "",
            helpers_used(words(FUNCTIONS + text)),
            FUNCTIONS,
            self.operands.declarations(words(text)),
            "",
        ]
        return "\n".join([*prelude, text])

    # what there is ------------------------------------------------------------

    def _memories(self, number: int) -> tuple[bool, ...]:
        """The functions of a kernel: one, or one for local memory as well, where its work-groups have buffers that no
        launch leaves to the next, and the device has memory for them that is not global."""
        own = len(self.signatures[number].scratches) == 1 and self.platform.work_items > 1
        own = own and self.kernels[number].keeps_nothing
        return (False, True) if own and self.platform.local_memory_dedicated else (False,)

    def _known(self) -> Known:
        p = self.program
        allocated = [s.memory.buffer for s in self._all(self.steps) if isinstance(s, Allocate)]
        params = {name: q for q in (*p.params, *p.derived) for name in (q.c_name, param_symbol(q.name))}
        outputs = {a.name for a in p.arguments if a.output}
        written = frozenset(b.pointer for b in p.buffers if b.stage in outputs)
        return Known({b.pointer: b for b in (*p.buffers, *allocated)}, params, self.symbols.names, written)

    def _all(self, steps: tuple[Host, ...]) -> Iterator[Host]:
        for s in steps:
            yield s
            match s:
                case HostLoop():
                    yield from self._all(s.body)
                case HostIf():
                    yield from self._all((*s.body, *s.otherwise))
                case _:
                    pass

    def _buffer_count(self) -> int:
        made = sum(isinstance(s, Allocate | Scratch) for s in self._all(self.steps))
        return max(1, made + len(self.program.arguments))

    # the function ------------------------------------------------------------

    def _run_lines(self) -> list[str]:
        """The call: images as buffers, the steps, and what was written back to the caller."""
        lines = [
            "",
            "    pthread_mutex_lock(&tilesmith.lock);",
            "    ts_slot *const slots = ts_kept;",
            "    ts_call own = {ts_prepare(), 0, {NULL}}, *const call = &own;",
            "    if (call->status) {",
            "        pthread_mutex_unlock(&tilesmith.lock);",
            "        return call->status;",
            "    }",
            f"    const int64_t ts_most = {GROUPS} * (int64_t)tilesmith.units; /* work-groups with memory */",
            "    (void)ts_most;",
        ]
        used = {b.pointer for s in self.signatures for b in s.buffers}
        for a in self.program.arguments:
            lines += self._image(a, f"{a.c_name}_data" in used)
        lines += ["", *_indented(self._block(self.steps)), ""]
        for a in self.program.arguments:
            if a.output:
                lines.append(f"    ts_fetch(call, {a.c_name}_data, {a.c_name}_bytes);")
        lines.append("    ts_finish(call);")
        for a in self.program.arguments:
            if a.output and a.dims:
                copied = f"!call->status && {a.c_name}_image.data != {a.c_name}->data"
                size = f"sizeof({element(a.type)})"
                lines.append(f"    if ({copied}) ts_undense(&{a.c_name}_image, {a.c_name}, {size});")
        return [
            *lines,
            "    ts_end(slots, TILESMITH_KEEP && !call->status);",
            "    pthread_mutex_unlock(&tilesmith.lock);",
            "    return call->status;",
        ]

    def _image(self, a: Argument, is_used: bool) -> list[str]:
        """An image as a buffer of the device: one that is not dense in a dense copy."""
        c, size = a.c_name, f"sizeof({element(a.type)})"
        lines = [f"    tilesmith_buffer {c}_image = *{c};"]
        if a.dims:
            order = ", ".join(str(a.dims.index(d)) for d in a.storage)
            dense = f"ts_dense(slots, &{c}_image, {c}_order, {size}, {int(not a.output)})"
            lines += [
                f"    const int {c}_order[] = {{{order}}};",
                f"    if (!call->status && !ts_is_dense({c}, {c}_order) && !{dense})",
                "        call->status = TILESMITH_E_MEMORY;",
            ]
        elements = size
        for n in range(len(a.dims)):
            lines += [
                f"    const int64_t {c}_stride{n} = {c}_image.stride[{n}];",
                f"    (void){c}_stride{n};",
            ]
            elements = f"ts_times({elements}, {c}_extent{n})"
        if is_used or a.output:
            made = f"ts_memory(call, {c}_bytes, {c}_image.data, {int(a.output)})"
            lines += [f"    const int64_t {c}_bytes = (int64_t){elements};", f"    const cl_mem {c}_data = {made};"]
        return lines

    def _release_lines(self) -> list[str]:
        return [
            "/* The device with its kernels, too: the next call finds it again. */",
            f"void {self.entry}_release(void) {{",
            "    pthread_mutex_lock(&tilesmith.lock);",
            "    ts_end(ts_kept, 0);",
            "    ts_drop_device();",
            "    pthread_mutex_unlock(&tilesmith.lock);",
            "}",
            "",
        ]

    # steps ------------------------------------------------------------

    def _block(self, steps: tuple[Host, ...]) -> list[str]:
        return [line for s in steps for line in self._step(s)]

    def _step(self, s: Host) -> list[str]:
        bare, text = self.symbols.bare, self.symbols.text
        match s:
            case Let():
                return [f"const int64_t {s.name} = {bare(s.value)};", f"(void){s.name};"]
            case MutableIndex():
                return [f"int64_t {s.name} = {bare(s.value)};"]
            case PeelVectors():
                return peeled(self.symbols, s)
            case OverflowGuard():
                tests = [f"{text(x)} < INT32_MIN" for x in s.low] + [f"{text(x)} > INT32_MAX" for x in s.high]
                tests += [f"{text(x)} == INT64_MIN" for x in s.wide]
                return [f"if ({' || '.join(tests)}) call->status = TILESMITH_E_ARGUMENT;"]
            case Scratch():
                return self._layout(s)
            case Allocate():
                return self._allocate(s.memory)
            case Free():
                return [f"ts_return(call, {s.buffer.pointer});"]
            case HostLoop():
                head = f"for (int64_t {s.loop.var} = {bare(s.loop.lo)}; {s.loop.var} <= {bare(s.loop.hi)}; "
                body = [*opened(self.symbols, s.loop), *_indented(self._block(s.body))]
                return [head + f"{advanced(self.symbols, s.loop)}) {{", *body, "}"]
            case HostIf():
                test = " && ".join(f"{text(x)} >= 0" for x in s.choice.nonnegative)
                lines = [f"if ({test}) {{", *_indented(self._block(s.body))]
                otherwise = ["} else {", *_indented(self._block(s.otherwise))] if s.otherwise else []
                return [*lines, *otherwise, "}"]
            case Kernel():
                return self._launch(s)
            case _:
                return [f"{s.name} = {bare(s.value)};"]

    def _layout(self, s: Scratch) -> list[str]:
        """The places of the buffers that every work-group has of its own, and memory for all of them."""
        lines = ["", "/* buffers of every work-group */", f"int64_t {s.name}_bytes = 0;"]
        for m in s.buffers:
            sizes, elements = strides(self.symbols, m)
            lines += [
                *sizes,
                f"const int64_t {m.buffer.pointer}_at = {s.name}_bytes;",
                f"{s.name}_bytes += ts_block({elements}, sizeof({element(m.buffer.type)}));",
            ]
        made = f"ts_memory(call, ts_times({s.name}_bytes, ts_most), NULL, 1)"
        users = [n for n, own in enumerate(self.signatures) if s in own.scratches]
        if users and all((n, True) in self.functions for n in users):
            made = f"{s.name}_bytes <= tilesmith.local_bytes ? NULL : {made}"
        return [*lines, f"const cl_mem {s.name} = {made};"]

    def _allocate(self, m: Extents) -> list[str]:
        sizes, elements = strides(self.symbols, m)
        size = f"ts_block({elements}, sizeof({element(m.buffer.type)}))"
        return ["", *sizes, f"const cl_mem {m.buffer.pointer} = ts_memory(call, {size}, NULL, 1);"]

    def _launch(self, kernel: Kernel) -> list[str]:
        number = self.kernels.index(kernel)
        own, shared_loop = self.signatures[number], kernel.shared
        groups = "1"
        if shared_loop is not None:
            count = self.symbols.bare(divide(shared_loop.hi - shared_loop.lo, shared_loop.step.const) + 1)
            groups = f"ts_groups({count}, ts_most)"
        items = self.platform.work_items if self.items[number].rows else 1
        lines = ["", *([f"/* {kernel.comment} */"] if kernel.comment else [])]
        if (number, True) not in self.functions:
            return [*lines, "{", *_indented(self._started(number, False, groups, items)), "}"]
        fits = " && ".join(f"{s.name}_bytes <= tilesmith.local_bytes" for s in own.scratches)
        inside, outside = (_indented(self._started(number, local, groups, items)) for local in (True, False))
        return [*lines, f"if ({fits}) {{", *inside, "} else {", *outside, "}"]

    def _started(self, number: int, local: bool, groups: str, items: int) -> list[str]:
        """The launch of a kernel, with buffers of work-groups in local memory or as parts of one of the device."""
        values = list(_values(self.signatures[number], local))
        declared = [f"const ts_value values[] = {{{', '.join(values)}}};"] if values else []
        given = f"{'values' if values else 'NULL'}, {len(values)}"
        return [*declared, f"ts_launch(call, {self.functions.index((number, local))}, {groups}, {items}, {given});"]


def _values(own: Signature, local: bool) -> Iterator[str]:
    """The arguments of a kernel."""
    for b in own.buffers:
        yield f"TILESMITH_VALUE(cl_mem, {b.pointer})"
    for s in own.scratches:
        yield f"{{(size_t){s.name}_bytes, NULL}}" if local else f"TILESMITH_VALUE(cl_mem, {s.name})"
    for p in own.params:
        yield f"TILESMITH_VALUE({element(p.type) if p.type.kind == 'bool' else scalar(p.type)}, {p.c_name})"
    for n in own.numbers:
        yield f"TILESMITH_VALUE(int64_t, {n})"


def _kernels(steps: tuple[Host, ...]) -> Iterator[Kernel]:
    for s in steps:
        match s:
            case Kernel():
                yield s
            case HostLoop():
                yield from _kernels(s.body)
            case HostIf():
                yield from _kernels((*s.body, *s.otherwise))
            case _:
                pass


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line if line else line for line in lines]


def _string(text: str) -> str:
    """Text as a literal of C: what JSON escapes, C does in the same way, in ASCII."""
    return json.dumps("".join(c if c.isascii() else "?" for c in text))
