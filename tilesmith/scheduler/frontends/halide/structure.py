"""Roles of the Funcs of a Halide pipeline in a document: stages, boundaries, inline reductions, or nothing at all.

Halide has Funcs of its own making: copies of images, boundary conditions, the sums that were written inside of
an expression. They go back to where they came from; every other Func is a stage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tilesmith.scheduler.frontends.halide import templates
from tilesmith.scheduler.frontends.halide.serialized import HalideFunc, HalideProgram, Node, walk
from tilesmith.scheduler.frontends.halide.templates import Domain, InlineReduction, Wrapped


class Structure:
    """Roles of the Funcs that the outputs need.

    `transparent` are copies of what their node calls; `merged` are boundary conditions that belong to their source,
    `boundaries` the same by source; `copies` are those that become stages; `inline` the inline reductions. `hidden`
    is only there to keep the reads of others inside.
    """

    def __init__(self, program: HalideProgram) -> None:
        self.program = program
        self.funcs = self._reachable()
        self.transparent = {
            f.name: copy for f in self.funcs.values() if f.name not in program.outputs and (copy := templates.copied(f))
        }
        self._wrappers()
        self._inline_reductions()
        gone = (self.transparent, self.merged, self.inline, self.hidden)
        self.stages = [name for name in self.funcs if not any(name in g for g in gone)]

    def _reachable(self) -> dict[str, HalideFunc]:
        """The Funcs that the outputs need, in the order in which they can be computed."""
        found: dict[str, HalideFunc] = {}
        waiting: list[tuple[str, bool]] = [(name, False) for name in reversed(self.program.outputs)]
        started: set[str] = set()
        while waiting:
            name, done = waiting.pop()
            func = self.program.funcs[name]
            if done:
                found.setdefault(name, func)
            elif name not in started:
                started.add(name)
                waiting.append((name, True))
                calls = dict.fromkeys(n.name for n in nodes_of(func) if n.kind == "halide")
                waiting += [(c, False) for c in reversed(calls) if c not in started]
        return found

    def _target(self, node: Node) -> str:
        """The target of a call, through Halide's own copies."""
        name = node.name
        while name in self.transparent:
            name = self.transparent[name].name
        return name

    def source(self, name: str) -> str:
        """The source that a copy or a merged boundary condition reads."""
        return self.transparent[name].name if name in self.transparent else self.merged[name][1].source.name

    def _wrappers(self) -> None:
        """Boundary conditions: those that every reader of their source uses belong to the source; others are stages."""
        conditions: dict[str, Wrapped] = {}
        for f in self.funcs.values():
            if f.name not in self.program.outputs and (w := templates.wrapped(self.program, f)) is not None:
                conditions[f.name] = w
        inner = {n.name for name, w in conditions.items() if w.kind == "constant" for n in _calls(self.funcs[name])}
        read_elsewhere = Counter(
            n.name for f in self.funcs.values() if f.name not in conditions for n in _calls(f) if n.name != f.name
        )
        conditions = {k: w for k, w in conditions.items() if k not in inner or read_elsewhere[k]}
        self.hidden = {k for k in inner if not read_elsewhere[k]}
        self.merged: dict[str, tuple[str, Wrapped]] = {}
        self.copies: dict[str, Wrapped] = {}
        skipped = {*conditions, *self.hidden, *self.transparent}
        direct = {self._target(n) for f in self.funcs.values() if f.name not in skipped
                  for n in _calls(f) if n.name != f.name}  # fmt: skip
        by_source: dict[str, list[str]] = {}
        for k, w in conditions.items():
            by_source.setdefault(self._target(w.source), []).append(k)
        for source, names in by_source.items():
            first = conditions[names[0]]
            alike = all(_alike(first, conditions[k]) for k in names) and self._whole(source, first.domain)
            if alike and source not in direct and source not in self.program.outputs:
                self.merged |= dict.fromkeys(names, (source, first))
                continue
            for k in names:
                if all(d is not None for d in conditions[k].domain):
                    self.copies[k] = conditions[k]
        # What is neither is a stage as it is written, and so is the Func that keeps its reads inside.
        plain = [k for k in conditions if k not in self.merged and k not in self.copies]
        self.hidden -= {n.name for k in plain for n in _calls(self.funcs[k])}
        for k in (*self.merged, *self.copies):
            self.hidden |= {n.name for n in _calls(self.funcs[k]) if n.name in inner and not read_elsewhere[n.name]}
        self.boundaries = dict(self.merged.values())

    def _whole(self, source: str, domain: Domain) -> bool:
        """True if a condition on `domain` may belong to its source: to an image where it is that of the image.

        What begins at 0 and is as long as the image is the image, as far as anything outside of it could not be read.
        """
        if source in self.funcs:
            return all(d is not None for d in domain)
        for k, pair in enumerate(domain):
            if pair is not None and not (
                _is_bound(pair[1], source, "extent", k) and (_is_bound(pair[0], source, "min", k) or pair[0].value == 0)
            ):
                return False
        return True

    def _inline_reductions(self) -> None:
        """Inline reductions that hl.sum and its like made for one place stand in that place again."""
        readers: dict[str, list[HalideFunc]] = {}
        for f in self.funcs.values():
            for n in _calls(f):
                if n.name != f.name:
                    readers.setdefault(n.name, []).append(f)
        self.inline: dict[str, InlineReduction] = {}
        for f in self.funcs.values():
            if len(read := readers.get(f.name, [])) == 1 and f.name not in self.program.outputs:
                found = templates.inline_reduction(f, read[0])
                if found is not None:
                    self.inline[f.name] = found


def nodes_of(func: HalideFunc) -> Iterator[Node]:
    """Every expression of a Func, each object once a definition."""
    for d in func.definitions:
        roots = [*d.args, *d.values, *(() if d.predicate is None else (d.predicate,))]
        for loop in d.domain:
            roots += [loop.lo, loop.extent]
        for root in roots:
            yield from walk(root)


def _calls(func: HalideFunc) -> Iterator[Node]:
    return (n for n in nodes_of(func) if n.op == "call" and n.kind in ("halide", "image"))


def _alike(a: Wrapped, b: Wrapped) -> bool:
    if a.kind != b.kind or (a.value is None) != (b.value is None) or len(a.domain) != len(b.domain):
        return False
    pairs = [(a.value, b.value)] if a.value is not None else []
    for p, q in zip(a.domain, b.domain, strict=True):
        if (p is None) != (q is None):
            return False
        pairs += zip(p or (), q or (), strict=True)
    return all(x is not None and y is not None and templates.same(x, y) for x, y in pairs)


def _is_bound(node: Node, image: str, which: str, dim: int) -> bool:
    return node.op == "variable" and node.name == f"{image}.{which}.{dim}"
