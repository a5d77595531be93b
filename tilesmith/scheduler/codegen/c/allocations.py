"""Memory of a call as lines of C: blocks that it takes, those of its threads, and what of them is copied out."""

from __future__ import annotations

from tilesmith.scheduler.codegen.c.control import strides
from tilesmith.scheduler.codegen.c.types import Symbols, element
from tilesmith.scheduler.ir.loop.program import Allocate, Bind, CopyOut, Extents, Free, Function, Scratch
from tilesmith.scheduler.ir.loop.values import Buffer


class Allocations:
    """Prints what takes and gives back memory. `blocks` counts the blocks that the function has in use, at most."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.blocks = 0
        self._scratch: dict[str, str] = {}

    def lines(self, s: Scratch | Bind | Allocate | Free | CopyOut) -> list[str]:
        """The lines of a statement about memory."""
        match s:
            case Scratch():
                return self._layout(s)
            case Bind():
                return self._bind(s)
            case Allocate():
                return self._allocate(s.memory) if s.place is None else self._placed(s.memory, s.place)
            case Free():
                return [f"ts_give(slots, {s.buffer.pointer});"]
            case CopyOut():
                return self._copy_out(s)

    def layout_names(self, s: Scratch) -> dict[str, str]:
        """The names that say where the buffers of a layout are, with their types."""
        scratch = self._scratch[s.name]
        places = [f"{m.buffer.pointer}_at" for m in s.buffers]
        return {scratch: "char *", **dict.fromkeys([f"{scratch}_bytes", *places], "int64_t")}

    def name_layouts(self, f: Function) -> None:
        """The layouts that a function is given have names of its own."""
        self._scratch |= {layout.name: layout.name for layout in f.scratch}

    def _layout(self, s: Scratch) -> list[str]:
        scratch = self._scratch[s.name] = f"scratch{self.blocks}"
        bytes_ = f"{scratch}_bytes"
        lines = ["", "/* buffers of every thread */", f"int64_t {bytes_} = 0;"]
        for memory in s.buffers:
            sizes, elements = strides(self.symbols, memory)
            b = memory.buffer
            at = f"ts_reserve(&{bytes_}, {elements}, sizeof({element(b.type)}))"
            lines += [*sizes, f"const int64_t {b.pointer}_at = {at};"]
        return lines + self._taken("char *const", scratch, f"ts_times({bytes_}, THREADS)")

    def _taken(self, c_type: str, name: str, size: str) -> list[str]:
        """A block of memory, as a pointer of that type and name."""
        self.blocks += 1
        return [f"{c_type} {name} = ts_take(slots, {size});", f"if (UNLIKELY(!{name})) goto finish;"]

    def _bind(self, s: Bind) -> list[str]:
        scratch = self._scratch[s.scratch.name]
        mine = f"mine_{scratch}"
        lines = [f"char *const {mine} = {scratch} + {scratch}_bytes * THREAD;"]
        for memory in s.scratch.buffers:
            b = memory.buffer
            t = element(b.type)
            lines.append(f"{t} *restrict const {b.pointer} = ({t} *)({mine} + {b.pointer}_at);")
        return lines

    def _allocate(self, memory: Extents) -> list[str]:
        b = memory.buffer
        t = element(b.type)
        sizes, elements = strides(self.symbols, memory)
        return [
            "",
            *sizes,
            *self._taken(f"{t} *restrict const", b.pointer, f"ts_block({elements}, sizeof({t}))"),
        ]

    def _placed(self, memory: Extents, place: Buffer) -> list[str]:
        """A buffer in the memory of an image, where this has the same points."""
        b, bare, text = memory.buffer, self.symbols.bare, self.symbols.text
        t, n = element(b.type), len(memory.order)
        sizes = [memory.extents[memory.order.index(d)] for d in range(n)]
        pairs = [*zip(b.origin, place.origin, strict=True), *zip(sizes, place.extent, strict=True)]
        same = [f"{bare(x)} == {bare(y)}" for x, y in pairs if x != y]
        placed = f"{b.pointer}_placed"
        lines = ["", f"const int {placed} = {' && '.join(same) or '1'};"]
        own, elements = strides(self.symbols, memory)
        for line, d in zip(own, memory.order[1:], strict=True):
            name, value = line.split(" = ", 1)
            lines.append(f"{name} = {placed} ? {text(place.stride[d])} : {value}")
        self.blocks += 1
        block = f"ts_take(slots, ts_block({elements}, sizeof({t})))"
        lines.append(f"{t} *restrict const {b.pointer} = {placed} ? {place.pointer} : {block};")
        return [*lines, f"if (UNLIKELY(!{b.pointer})) goto finish;"]

    def _copy_out(self, s: CopyOut) -> list[str]:
        """The output's region from a buffer that may be larger, unless it is in its place."""
        text, bare = self.symbols.text, self.symbols.bare
        out, source = s.output, s.source
        n = len(out.dims)
        size = f"sizeof({element(out.type)})"
        if n == 0:
            return [f"{out.pointer}[0] = {source.pointer}[0];"]
        pieces = []
        for d in range(n):
            pieces.append(f"({text(out.origin[d])} - {text(source.origin[d])}) * {text(source.stride[d])}")
        c = out.pointer.removesuffix("_data")
        return [
            f"if ({source.pointer} != {out.pointer}) {{",
            f"    const int64_t to[] = {{{', '.join(bare(x) for x in out.stride)}}};",
            f"    const int64_t from[] = {{{', '.join(bare(x) for x in source.stride)}}};",
            f"    const int64_t extent[] = {{{', '.join(f'{c}->extent[{d}]' for d in range(n))}}};",
            f"    ts_copy((char *){out.pointer}, to, (const char *)({source.pointer} + {' + '.join(pieces)}),",
            f"                   from, extent, {n}, {size});",
            "}",
        ]
