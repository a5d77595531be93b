"""Random small pipelines that use the whole language, and random data for them; deterministic in the seed.

`random_pipeline(seed)` is a document. What it guarantees, so that generated code can be held to the interpreter:

- It is valid, and cheap to interpret at its estimates.
- Floats stay tame: every expression carries a bound of its magnitude and of the error that rounding, contraction
  and reassociation may cause, and is scaled down by a power of two before either grows. Every component of every
  stage has an error below MAX_ERROR, so values agree within 1e-5 of max(1, the largest magnitude); see `disagreement`.
- What jumps (comparisons, conversions to integers, floor, argmin) is applied to integers and to floats that no order
  of evaluation can change: `exact` ones.
- Inputs without boundary are read by affine indices only, so that the region that is provably required is the region
  that is read. Data-dependent, clamped-by-constant and modulo indices go to sources all of whose inputs have one.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, replace

import numpy as np

from tilesmith.scheduler.interpreter.interpreter import required_regions
from tilesmith.scheduler.ir.pipeline.arguments import Image, Region
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

MAX_MAGNITUDE = 64.0
MAX_ERROR = 2e-6
MAX_SCALE = 4  # the largest product of strides along a path
ULP = {"float32": 2.0**-23, "float64": 2.0**-51}  # the most that two roundings of a value of size 1 differ
INTEGERS = ("uint8", "uint8", "int16", "int32", "int32", "uint16", "int8", "uint32", "int64", "uint64")
FLOATS = ("float32", "float32", "float32", "float64")
KINDS = ("repeat_edge", "repeat_edge", "repeat_image", "mirror_image", "mirror_interior", "constant")
FAR = 1 << 12
TABLE = 16


@dataclass(frozen=True)
class Term:
    """An expression, in brackets. `size` and `error` bound a float's magnitude and its error."""

    text: str
    type: str
    size: float = 0.0
    error: float = 0.0
    exact: bool = True

    @property
    def is_float(self) -> bool:
        return self.type.startswith("float")


@dataclass
class Source:
    """Something that stages can read: an input or an earlier stage, as the terms its components stand for."""

    name: str
    dims: tuple[str, ...]
    components: tuple[Term, ...]
    tuple_valued: bool
    safe: bool  # may be read anywhere: nothing behind it can be left
    scale: int = 1
    uses: int = 0
    table: bool = False  # each of its dims has sensible values in range(TABLE)


@dataclass
class Reads:
    """Reads of the expressions of a stage: the largest scale of it, and whether all of it is safe."""

    scale: int = 1
    safe: bool = True


@dataclass(frozen=True)
class Scope:
    """The variables that an expression may use; `loops` are those of the reduction that it is in."""

    variables: tuple[str, ...]
    reads: Reads
    loops: tuple[str, ...] = ()
    reducing: bool = False

    def inside(self, loops: tuple[str, ...]) -> Scope:
        return Scope((*self.variables, *loops), self.reads, loops, True)


def random_pipeline(seed: int) -> dict:
    """A valid document of 1 to 8 stages. The same seed makes the same document, whatever the process."""
    return _Builder(random.Random(seed)).document(f"random_{seed}")


def random_params(pipeline: Pipeline, seed: int) -> dict[str, int | float | bool]:
    """A value for every param, between its min and max."""
    rng = random.Random(seed)
    values: dict[str, int | float | bool] = {}
    for p in pipeline.params:
        low, high = p.min or 0, p.max or 0
        values[p.name] = float(np.float32(rng.uniform(low, high))) if p.type.is_float else rng.randint(low, high)
    return values


def random_regions(pipeline: Pipeline, seed: int) -> dict[str, Region]:
    """A region for every output: the estimates, single points, odd sizes, other places."""
    rng = random.Random(seed)
    how = rng.choice(("estimates", "point", "odd", "odd"))
    regions: dict[str, Region] = {}
    for name in pipeline.outputs:
        region = []
        for low, extent in pipeline.estimate(name) or ():
            if how == "point":
                low, extent = rng.randint(low, low + extent - 1), 1
            elif how == "odd":
                low, extent = rng.randint(low - 4, low + 4), rng.randint(1, extent + 9)
            region.append((low, extent))
        regions[name] = tuple(region)
    return regions


def random_inputs(
    pipeline: Pipeline,
    seed: int,
    regions: dict[str, Region] | None = None,
    params: dict[str, int | float | bool] | None = None,
    sizes: dict[str, Region] | None = None,
) -> dict[str, Image]:
    """Images for `regions` of the outputs (the estimates where None).

    Inputs with a boundary have any small size and place; the others have exactly what is required, unless
    `sizes` names the region of an input.
    """
    regions = regions or {name: pipeline.estimate(name) or () for name in pipeline.outputs}
    rng, data = random.Random(seed), np.random.default_rng(seed)
    wanted: dict[str, Region] = dict(sizes or {})
    far: dict[str, Image] = {}
    for i in pipeline.inputs:
        if i.boundary is not None:
            place = tuple((rng.randint(-3, 3), rng.choice((1, 5, 9, 13, 16, 17, 24, 31))) for _ in i.dims)
            wanted.setdefault(i.name, place)
        region = wanted.get(i.name) or ((-FAR, 2 * FAR),) * len(i.dims)
        nothing = np.broadcast_to(np.zeros((), i.type.numpy), tuple(e for _, e in reversed(region)))
        far[i.name] = Image(nothing, tuple(m for m, _ in region))
    told = len(wanted) == len(pipeline.inputs)
    required = {} if told else required_regions(pipeline, far, params or {}, regions)
    images = {}
    for i in pipeline.inputs:
        region = wanted.get(i.name) or required.get(i.name) or ((0, 1),) * len(i.dims)
        shape = tuple(e for _, e in reversed(region))
        images[i.name] = Image(_data(i.type.name, shape, data), tuple(m for m, _ in region))
    return images


def disagreement(actual: np.ndarray, expected: np.ndarray, relative: float = 1e-5) -> str | None:
    """The first difference of `actual`: integers have to be equal, floats within `relative` of max(1, largest
    magnitude)."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"{actual.dtype}{actual.shape} instead of {expected.dtype}{expected.shape}"
    if expected.dtype.kind != "f":
        wrong = actual != expected
    else:
        allowed = relative * max(1.0, float(np.max(np.abs(expected), initial=0.0)))
        wrong = ~(np.abs(actual.astype(np.float64) - expected.astype(np.float64)) <= allowed)
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} wrong, at {at}: {actual[at]} instead of {expected[at]}"


def _data(type_: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if type_ == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if type_.startswith("float"):
        coarse = rng.random() < 0.3  # with ties
        return (rng.integers(-512, 513, shape) / 256 if coarse else rng.uniform(-2, 2, shape)).astype(type_)
    info = np.iinfo(type_)
    values = rng.integers(info.min, info.max, shape, dtype=type_, endpoint=True)
    ends = rng.choice(np.array([info.min, info.max, 0, 1], type_), shape)
    return np.where(rng.random(shape) < 0.1, ends, values)


class _Builder:
    """Builds one document front to back: params, inputs, then stages that read what is there."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.sources: list[Source] = []
        self.stages: list[dict] = []
        self.inputs: dict[str, dict] = {}
        self.params: list[dict] = []
        self.loops = 0

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def document(self, name: str) -> dict:
        rng = self.rng
        if self.chance(0.4):
            self.params.append({"name": "taps", "type": "int32", "default": 3, "min": 1, "max": 4})
        if self.chance(0.4):
            self.params.append({"name": "gain", "type": "float32", "default": 0.75, "min": 0, "max": 2})
        for n in range(rng.choice((1, 1, 2, 2, 3))):
            self._input(f"in{n}")
        for n in range(rng.randint(1, 8)):
            self._stage(f"s{n}")
        return self._finish(name)

    def _finish(self, name: str) -> dict:
        stages = [s for s in self.sources if s.name not in self.inputs]
        texts = {s["name"]: json.dumps({k: v for k, v in s.items() if k != "name"}) for s in self.stages}
        read = {
            s.name
            for s in self.sources
            if any(re.search(rf"\b{s.name}[(.]", text) for reader, text in texts.items() if reader != s.name)
        }
        outputs = [s for s in stages if s.name not in read]
        if len(stages) > len(outputs) and self.chance(0.3):
            outputs.append(self.rng.choice([s for s in stages if s.name in read]))
        by_name = {s["name"]: s for s in self.stages}
        for output in outputs:
            by_name[output.name].pop("boundary", None)
        return {
            "format": 1,
            "name": name,
            **({"params": self.params} if self.params else {}),
            "inputs": [i for n, i in self.inputs.items() if n in read or n == "in0"],
            "stages": self.rng.sample(self.stages, len(self.stages)),
            "outputs": [s.name for s in outputs],
            "estimates": {s.name: [self._estimate(s, d) for d in s.dims] for s in outputs},
        }

    def _estimate(self, source: Source, dim: str) -> list[int]:
        if source.table:
            return [0, TABLE]
        low = self.rng.choice((0, 0, -3, 2, 5))
        return [low, {"x": self.rng.randint(5, 21), "y": self.rng.randint(4, 14), "c": self.rng.randint(1, 4)}[dim]]

    def _dims(self) -> tuple[str, ...]:
        return self.rng.choice((("x",), ("x", "y"), ("x", "y"), ("x", "y"), ("x", "y", "c"), ("y", "x")))

    def _storage(self, item: dict) -> None:
        if len(item["dims"]) > 1 and self.chance(0.15):
            item["storage"] = self.rng.sample(item["dims"], len(item["dims"]))

    def _input(self, name: str) -> None:
        type_ = self.rng.choice(("bool", *INTEGERS[:7], *INTEGERS, *FLOATS, *FLOATS))
        item: dict = {"name": name, "type": type_, "dims": list(self._dims())}
        bounded = self.chance(0.7)
        if bounded:
            item["boundary"] = self._boundary(type_)
        self._storage(item)
        self.inputs[name] = item
        term = Term("", type_, size=2.0, exact=True)
        self.sources.append(Source(name, tuple(item["dims"]), (term,), False, bounded))

    def _boundary(self, type_: str) -> dict:
        kind = self.rng.choice(KINDS)
        if kind != "constant":
            return {"kind": kind}
        value = {"b": "True", "f": "0.5"}.get(type_[0], "7")
        return {"kind": kind, "value": value}

    # Stages

    def _stage(self, name: str) -> None:
        kinds = ("pure", "tuple", "argmin", "scalar", "table", "scan", "gather")
        kind = self.rng.choices(kinds, (55, 10, 4, 4, 10, 10, 8))[0]
        if kind == "table":
            self._table(name)
        elif kind in ("scan", "gather"):
            self._updated(name, kind)
        elif kind == "argmin":
            self._argmin(name)
        else:
            dims = () if kind == "scalar" else self._dims()
            self._pure(name, dims, self.rng.randint(2, 3) if kind == "tuple" else 1)

    def _pure(self, name: str, dims: tuple[str, ...], components: int) -> None:
        scope = Scope(dims, Reads())
        terms = tuple(self._settled(self._term(self._type(), self.rng.randint(1, 4), scope)) for _ in range(components))
        value = terms[0].text if components == 1 else [t.text for t in terms]
        item = {"name": name, "dims": list(dims), "value": value}
        if components == 1 and self.chance(0.2):
            item["type"] = terms[0].type
        self._add(item, terms, scope, components > 1)

    def _argmin(self, name: str) -> None:
        """A stage whose value is the whole tuple of an argmin or argmax."""
        dims = self._dims()
        scope = Scope(dims, Reads())
        loops, inner = self._loops(scope)
        body = self._leaf_float(inner, "float32")
        ranges = " ".join(f"for {loop} in {range_}" for loop, range_, _ in loops)
        if self.chance(0.5):
            body = self._term(self.rng.choice(INTEGERS), 1, inner)
            ranges = self._comprehension(loops, inner)
        value = f"{self.rng.choice(('argmin', 'argmax'))}({body.text} {ranges})"
        terms = (*(Term("", "int32") for _ in loops), body)
        self._add({"name": name, "dims": list(dims), "value": value}, terms, scope, True)

    def _add(self, item: dict, terms: tuple[Term, ...], scope: Scope, tuple_valued: bool, table: bool = False) -> None:
        dims = tuple(item["dims"])
        if dims and scope.reads.safe and not tuple_valued and not table and self.chance(0.15):
            domain = [self._extent(self.rng.randint(-2, 1), self.rng.randint(2, 9)) for _ in dims]
            item["boundary"] = {**self._boundary(terms[0].type), "domain": domain}
        self._storage(item)
        self.stages.append(item)
        reads = scope.reads
        self.sources.append(Source(item["name"], dims, terms, tuple_valued, reads.safe, reads.scale, table=table))

    def _extent(self, low: int, extent: int) -> list[int | str]:
        """[low, extent], or the place of an input that may have any."""
        bound = self._input_dim() if self.chance(0.2) else None
        return [low, extent] if bound is None else [f"{bound[0]}.min.{bound[1]}", f"{bound[0]}.extent.{bound[1]}"]

    def _input_dim(self) -> tuple[str, str] | None:
        """An input with a boundary, and one of its dims."""
        bounded = [i for i in self.inputs.values() if "boundary" in i]
        if not bounded:
            return None
        item = self.rng.choice(bounded)
        return item["name"], self.rng.choice(item["dims"])

    def _table(self, name: str) -> None:
        """A histogram or another reduction to a table that data says the place in."""
        dims = self.rng.choice((["i"], ["i"], ["i", "j"]))
        wide = ("x", "y")[: self.rng.randint(1, 2)]
        scope = Scope(wide, Reads(), reducing=True)
        keys = [self._place(self._leaf_integer(scope), TABLE) for _ in dims]
        type_ = self.rng.choice(("uint32", "int32", "uint8", "int64"))
        amount = self._term(type_, 1, scope) if self.chance(0.6) else Term("1", type_)
        op = self.rng.choice(("+", "+", "^", "max"))
        here = f"{name}({', '.join(keys)})"
        value = f"max({here}, {amount.text})" if op == "max" else f"({here} {op} {amount.text})"
        domain = {v: self._extent(self.rng.randint(-2, 2), self.rng.randint(1, 9)) for v in wide}
        updates = [{"domain": domain, "at": keys, "value": value}]
        if self.chance(0.3):
            updates[0]["where"] = self._condition(1, scope)
        if self.chance(0.4):
            rest = "".join(f", {d}" for d in dims[1:])  # free: whole rows at once
            value = f"{name}(k{rest}) + {name}(k - 1{rest})"
            updates.append({"domain": {"k": [1, TABLE - 1]}, "at": ["k", *dims[1:]], "value": value})
        item = {"name": name, "dims": dims, "value": f"{type_}(0)", "updates": updates}
        self._add(item, (Term("", type_),), scope, False, table=True)

    def _updated(self, name: str, kind: str) -> None:
        """A stage whose updates scan along a dim, or gather into whole rows or single points."""
        dims = self._dims()
        scope = Scope(dims, Reads())
        count = self.rng.choice((1, 1, 1, 2))
        starts = [self._below(self._settled(self._term(self._type(), 2, scope)), 2.0) for _ in range(count)]
        along = self.rng.choice(dims)
        looped = [d for d in dims if d == along or self.chance(0.4)]  # the others stay free
        names = {d: f"r{d}" if d in looped else d for d in dims}
        here = f"{name}({', '.join(names[d] for d in dims)})"
        back = f"{name}({', '.join(names[d] + (' - 1' if d == along else '') for d in dims)})"
        values = [t.text for t in starts]
        updates = []
        for _ in range(self.rng.choice((1, 1, 2))):
            inner = Scope(tuple(names.values()), scope.reads, reducing=True)
            order = self.rng.sample(looped, len(looped))
            domain = {names[d]: self._extent(self.rng.randint(-1, 3), self.rng.randint(1, 7)) for d in order}
            update: dict = {"domain": domain, "at": [names[d] for d in dims], "value": []}
            for k, start in enumerate(starts):
                component = "" if count == 1 else f"[{k}]"
                source = back if kind == "scan" else here
                value, starts[k] = self._combined(here + component, source + component, start, inner)
                update["value"].append(value)
            if count == 1:
                update["value"] = update["value"][0]
            if self.chance(0.3):
                update["where"] = self._condition(1, inner)
            updates.append(update)
        item = {"name": name, "dims": list(dims), "value": values if count > 1 else values[0], "updates": updates}
        self._add(item, tuple(starts), scope, count > 1)

    def _combined(self, here: str, source: str, start: Term, scope: Scope) -> tuple[str, Term]:
        """An update's value, and the stage as it is after it."""
        type_ = start.type
        if type_ == "bool":
            return f"{source} != {self._condition(1, scope)}", start
        amount = self._settled(self._term(type_, 1, scope))
        if not start.is_float:
            ops = ("{s} + {a}", "{h} + {s}", "min({s}, {a})", "{s} * 3 + {h} ^ {a}", "select({a} > {s}, {a}, {s})")
            if scope.reads.safe and self.chance(0.1):  # a place that the stage itself says
                place = f"clamp(int32({here}), 0, 7)"
                source = re.sub(r"\br[xyc]\b", place, here)
            return self.rng.choice(ops).format(h=here, s=source, a=amount.text), start
        amount = self._below(amount, 2.0)
        size = max(start.size, amount.size)
        error = max(start.error, amount.error)
        if self.chance(0.4):
            text = self.rng.choice(("min({s}, {a})", "max({a}, {s})")).format(s=source, a=amount.text)
            return text, replace(start, size=size, error=error, exact=start.exact and amount.exact)
        # An average of small values: magnitudes do not grow, and errors only by the rounding of a few steps.
        after = replace(start, size=size, error=error + 2 * size * ULP[type_], exact=False)
        return f"{source} * 0.5 + {amount.text} * 0.5", after

    # Expressions

    def _type(self) -> str:
        return self.rng.choice((*INTEGERS, *FLOATS, *FLOATS, "bool"))

    def _term(self, type_: str, depth: int, scope: Scope) -> Term:
        if type_ == "bool":
            return Term(f"({self._condition(depth, scope)})", "bool")
        if type_.startswith("float"):
            return self._tame(self._float(type_, depth, scope))
        return Term(self._integer(type_, depth, scope), type_)

    def _tame(self, term: Term) -> Term:
        """Scale down, by a power of two, what is too large or too inexact."""
        down = 0
        while term.size > MAX_MAGNITUDE * 2**down:
            down += 1
        while term.error > 16 * MAX_ERROR * 2**down:
            down += 1
        return self._scaled(term, down)

    def _settled(self, term: Term) -> Term:
        down = 0
        while term.error > MAX_ERROR * 2**down:
            down += 1
        return self._scaled(term, down)

    def _below(self, term: Term, size: float) -> Term:
        down = 0
        while term.size > size * 2**down:
            down += 1
        return self._scaled(term, down)

    def _scaled(self, term: Term, down: int) -> Term:
        if down == 0:
            return term
        by = 2.0**-down
        return replace(term, text=f"({term.text} * {by})", size=term.size * by, error=term.error * by)

    # Reading

    def _read(self, scope: Scope, accept: tuple[str, ...], plain: bool = False) -> Term | None:
        """A read of a source of which a component's type begins with one of `accept`."""
        candidates = [
            (s, n) for s in self.sources for n, c in enumerate(s.components) if c.type.startswith(accept)
        ]  # fmt: skip
        if not candidates:
            return None
        weights = [4 if s.uses == 0 else 1 for s, _ in candidates]
        source, n = self.rng.choices(candidates, weights)[0]
        indices = ", ".join(self._index(source, d, scope, plain) for d in source.dims)
        source.uses += 1
        scope.reads.safe = scope.reads.safe and source.safe
        scope.reads.scale = max(scope.reads.scale, source.scale)
        text = f"{source.name}({indices})" + (f"[{n}]" if source.tuple_valued else "")
        return replace(source.components[n], text=text)

    def _index(self, source: Source, dim: str, scope: Scope, plain: bool) -> str:
        rng = self.rng
        if source.table:  # a table: look up by data where its index is not at hand
            if scope.variables and self.chance(0.5):
                return f"clamp({rng.choice(scope.variables)}, 0, {TABLE - 1})"
            return str(rng.randrange(TABLE)) if plain else self._place(self._leaf_integer(scope), TABLE)
        variable = self._variable(dim, scope)
        if variable is None:
            return str(rng.randint(0, 2))
        offset = rng.choice((0, 0, 0, 1, -1, 2, -2))
        moved = variable if offset == 0 else f"{variable} {'+' if offset > 0 else '-'} {abs(offset)}"
        choice = rng.random()
        if choice < 0.62 or plain:
            return moved
        if choice < 0.72 and source.scale < MAX_SCALE:
            scope.reads.scale = max(scope.reads.scale, 2 * source.scale)
            return rng.choice((f"2 * {variable}", f"2 * {variable} - 1", f"2 * {variable} + 1"))
        if choice < 0.84 or not source.safe:
            return rng.choice((f"{variable} // 2", f"({variable} + 1) // 2", f"({moved}) // 3", moved))
        if choice < 0.9:
            return rng.choice((f"clamp({moved}, 0, 6)", f"max({moved}, -1)", f"min({variable}, 4)", f"{variable} % 4"))
        data = self._leaf_integer(scope)
        if self.chance(0.5):
            return self._place(data, rng.choice((3, 8, 11)))
        return f"{variable} + {self._place(data, 3)} - 1"

    def _variable(self, dim: str, scope: Scope) -> str | None:
        own = [v for v in scope.variables if v.endswith(dim)]
        loop = self.rng.choice(scope.loops) if scope.loops and self.chance(0.8) else None
        if own and not self.chance(0.06):
            return own[0] if loop is None else self.rng.choice((f"({own[0]} + {loop})", f"({own[0]} + {loop})", loop))
        if loop is not None:
            return loop
        return self.rng.choice(scope.variables) if scope.variables and self.chance(0.4) else None

    def _place(self, data: Term, size: int) -> str:
        """An index in 0..size-1 made of data."""
        forms = (f"clamp(int32({data.text}), 0, {size - 1})", f"int32({data.text}) % {size}")
        if data.type.startswith("uint"):
            forms += (f"int32({data.text} & {2 ** (size.bit_length() - 1) - 1})",)
        return self.rng.choice(forms)

    def _leaf_integer(self, scope: Scope) -> Term:
        """Some integer that is read, or that a variable is."""
        read = self._read(scope, ("int", "uint"), plain=True) if self.chance(0.9) else None
        if read is not None:
            return read
        return Term(self.rng.choice(scope.variables or ("5",)), "int32")

    def _leaf_float(self, scope: Scope, type_: str) -> Term:
        """A float that no order of evaluation changes."""
        read = self._read(scope, ("float",))
        if read is not None and read.exact:
            return read if read.type == type_ else replace(read, text=f"{type_}({read.text})", type=type_)
        return self._small(scope, type_)

    def _small(self, scope: Scope, type_: str) -> Term:
        """A float made of an integer: exact, at most 4."""
        read = self._leaf_integer(scope)
        narrow = {"uint8": 2**-6, "int8": 2**-5, "int16": 2**-13, "uint16": 2**-14}.get(read.type)
        if narrow is not None:
            return Term(f"({type_}({read.text}) * {narrow})", type_, 4.0)
        return Term(f"({type_}({read.text} & 127) * {2**-5})", type_, 4.0)

    # Integers

    def _literal(self, type_: str) -> str:
        return str(self.rng.choice((1, 2, 3, 5, 7, 16, 100)))

    def _integer(self, type_: str, depth: int, scope: Scope) -> str:
        if depth <= 0 or self.chance(0.12):
            return self._integer_leaf(type_, scope)
        if not scope.reducing and self.chance(0.15):
            return self._integer_reduction(type_, depth, scope)
        rng = self.rng
        bits = int(type_.lstrip("uint"))

        def operand() -> str:
            return self._integer(type_, depth - 1, scope)

        def count(below: int) -> int:
            return rng.randrange(below) if self.chance(0.2) else rng.randrange(4)

        def other() -> str:
            return self._integer(rng.choice(INTEGERS), depth - 1, scope)

        forms = (
            lambda: f"({operand()} {rng.choice(('+', '-', '*', '&', '|', '^', '//', '%'))} {operand()})",
            lambda: f"({operand()} + {operand()})",
            lambda: f"({operand()} {rng.choice(('+', '-', '*', '//', '%'))} {self._literal(type_)})",
            lambda: f"({operand()} {rng.choice(('<<', '>>'))} {count(bits)})",
            lambda: f"({operand()} {rng.choice(('<<', '>>'))} {self._leaf_integer(scope).text})",
            lambda: (
                f"{rng.choice(('min', 'max', 'absd', 'halving_add', 'rounding_halving_add'))}({operand()}, {operand()})"
            ),
            lambda: f"{rng.choice(('sat_add', 'sat_sub'))}({operand()}, {operand()})",
            lambda: f"rounding_shift_right({operand()}, {count(bits)})",
            lambda: f"mul_shift_right({operand()}, {operand()}, {rng.choice((0, 1, bits // 2, bits - 1, bits))})",
            lambda: f"lerp({operand()}, {operand()}, {self._integer(rng.choice(('uint8', 'uint16')), 0, scope)})",
            lambda: f"lerp({operand()}, {operand()}, {self._leaf_float(scope, 'float32').text})",
            lambda: f"clamp({operand()}, {self._literal(type_)}, {operand()})",
            lambda: f"select({self._condition(depth - 1, scope)}, {operand()}, {operand()})",
            lambda: f"({operand()} if {self._condition(depth - 1, scope)} else {operand()})",
            lambda: f"mux({other()}, {operand()}, {operand()}, {operand()})",
            lambda: f"({rng.choice('-~')}{operand()})",
            lambda: f"abs({operand()})",
            lambda: f"({operand()} ** {rng.choice((0, 2, 3))})",
            lambda: f"{rng.choice(('', 'sat_'))}{type_}({other()})",
            lambda: f"{type_}({other()} * {other()})",
            lambda: f"{rng.choice(('', 'sat_'))}{type_}({self._leaf_float(scope, 'float32').text} * 64.0)",
        )
        return rng.choice(forms)()

    def _integer_leaf(self, type_: str, scope: Scope) -> str:
        rng = self.rng
        choice = rng.random()
        if choice < 0.08 and scope.variables:
            return f"{type_}({rng.choice(scope.variables)})"
        if choice < 0.13:
            return f"{type_}({self._literal(type_)})"
        if choice < 0.17 and any(p["name"] == "taps" for p in self.params):
            return f"{type_}(taps)"
        if choice < 0.2 and (bound := self._input_dim()) is not None:
            return f"{type_}({bound[0]}.{rng.choice(('min', 'extent'))}.{bound[1]})"
        if choice < 0.24 and scope.variables:
            return f"{type_}(random({', '.join(scope.variables)}, {rng.randint(0, 9)}) * 128.0)"
        read = self._read(scope, ("int", "uint")) or self._read(scope, ("bool",))
        if read is None:
            return f"{type_}({self._leaf_float(scope, 'float32').text} * 8.0)"
        return read.text if read.type == type_ else f"{rng.choice(('', '', 'sat_'))}{type_}({read.text})"

    def _integer_reduction(self, type_: str, depth: int, scope: Scope) -> str:
        op = self.rng.choice(("sum", "sum", "sum", "product", "min", "max", "argmin", "argmax"))
        if not op.startswith("arg"):
            loops, inner = self._loops(scope)
            body = self._integer(type_, min(depth - 1, 1), inner)
            return f"{op}({body} {self._comprehension(loops, inner)})"
        loops, inner = self._loops(scope)
        body = self._integer(self.rng.choice(INTEGERS), 1, inner)
        if self.chance(0.3):
            body = self._leaf_float(inner, "float32").text
        which = self.rng.randrange(len(loops))
        text = f"{op}({body} {self._comprehension(loops, inner)})[{which}]"
        return text if type_ == "int32" else f"{type_}({text})"

    def _loops(self, scope: Scope) -> tuple[list[tuple[str, str, int]], Scope]:
        """Loops of a reduction, (variable, range, most points), and the scope inside."""
        loops = []
        for _ in range(self.rng.choice((1, 1, 2))):
            name = f"k{self.loops}"
            self.loops += 1
            low, extent = self.rng.randint(-2, 1), self.rng.randint(1, 4)
            text = f"range({low}, {low + extent})"
            if any(p["name"] == "taps" for p in self.params) and self.chance(0.3):
                text, extent = "range(taps)", 4
            elif (bound := self._input_dim()) is not None and self.chance(0.1):
                low_, extent_ = f"{bound[0]}.min.{bound[1]}", f"{bound[0]}.extent.{bound[1]}"
                text, extent = f"range({low_}, {low_} + {extent_})", 31
            loops.append((name, text, extent))
        names = tuple(name for name, _, _ in loops)
        return loops, scope.inside(names)

    def _comprehension(self, loops: list[tuple[str, str, int]], scope: Scope) -> str:
        text = " ".join(f"for {name} in {range_}" for name, range_, _ in loops)
        return f"{text} if {self._condition(0, scope)}" if self.chance(0.25) else text

    # Conditions

    def _condition(self, depth: int, scope: Scope) -> str:
        rng = self.rng
        choice = rng.random()
        if choice < 0.2 and depth > 0:
            a, b = self._condition(depth - 1, scope), self._condition(depth - 1, scope)
            return rng.choice((f"({a} and {b})", f"({a} or {b})", f"(not {a})"))
        if choice < 0.3 and (read := self._read(scope, ("bool",))) is not None:
            return read.text
        if choice < 0.4 and depth > 0 and not scope.reducing:
            loops, inner = self._loops(scope)
            body = self._condition(0, inner)
            return f"{rng.choice(('any', 'all'))}({body} {self._comprehension(loops, inner)})"
        op = rng.choice(("<", "<=", "==", "!=", ">=", ">"))
        if choice < 0.6:
            a, b = self._leaf_float(scope, "float32"), self._leaf_float(scope, "float32")
            return f"({a.text} {op} {b.text})"
        if choice < 0.8 and scope.variables:
            return f"({rng.choice(scope.variables)} % {rng.randint(2, 4)} {op} 1)"
        type_ = rng.choice(INTEGERS)
        return f"({self._integer(type_, depth - 1, scope)} {op} {self._integer(type_, 0, scope)})"

    # Floats

    def _float(self, type_: str, depth: int, scope: Scope) -> Term:
        if depth <= 0 or self.chance(0.1):
            return self._float_leaf(type_, scope)
        if not scope.reducing and self.chance(0.15):
            return self._float_reduction(type_, scope)
        a = self._term(type_, depth - 1, scope)
        b = self._term(type_, depth - 1, scope)
        u = ULP[type_]
        rng = self.rng

        def made(text: str, size: float, error: float, exact: bool = False) -> Term:
            return Term(text, type_, size, error, exact)

        def product() -> Term:
            error = a.error * b.size + b.error * a.size + a.error * b.error + u * a.size * b.size
            return made(f"({a.text} * {b.text})", a.size * b.size, error)

        def sum_() -> Term:
            size = a.size + b.size
            return made(f"({a.text} {rng.choice('+-')} {b.text})", size, a.error + b.error + u * size)

        def quotient() -> Term:
            size = a.size / 1.5
            return made(
                f"({a.text} / (1.5 + abs({b.text})))", size, a.error / 1.5 + size * b.error / 1.5 + 3 * u * size
            )

        def choice() -> Term:
            name = rng.choice(("min", "max"))
            text = f"{name}({a.text}, {b.text})"
            if self.chance(0.5):
                text = f"select({self._condition(depth - 1, scope)}, {a.text}, {b.text})"
            return made(text, max(a.size, b.size), max(a.error, b.error), a.exact and b.exact)

        def mix() -> Term:
            t = self._leaf_float(scope, type_)
            size = 2 * (a.size + b.size)
            return made(f"lerp({a.text}, {b.text}, clamp({t.text}, 0.0, 1.0))", size, a.error + b.error + 4 * u * size)

        def function() -> Term:
            return self._function(a, b, type_)

        def sign() -> Term:
            return replace(a, text=f"{rng.choice(('abs', '-'))}({a.text})")

        forms = (product, sum_, sum_, quotient, choice, mix, function, function, sign)
        return rng.choice(forms)()

    def _function(self, a: Term, b: Term, type_: str) -> Term:
        """A smooth function of `a`, with the largest slope that it can have there."""
        root = (a.size + 0.5) ** 0.5
        angle = a.text if a.size <= 16 else f"clamp({a.text}, -16.0, 16.0)"
        text, size, slope = self.rng.choice(
            (
                (f"sqrt(abs({a.text}) + 0.25)", root, 1.0),
                (f"exp(min({a.text}, 2.0))", 7.5, 7.5),
                (f"exp(-abs({a.text}))", 1.0, 1.0),
                (f"log(abs({a.text}) + 1.0)", a.size, 1.0),
                (f"sin({angle})", 1.0, 1.0),
                (f"cos({angle})", 1.0, 1.0),
                (f"tanh({a.text})", 1.0, 1.0),
                (f"tan(clamp({a.text}, -1.0, 1.0))", 1.6, 3.5),
                (f"asin(clamp({a.text}, -0.9, 0.9))", 1.6, 2.5),
                (f"acos(clamp({a.text}, -0.9, 0.9))", 3.2, 2.5),
                (f"atan({a.text})", 1.6, 1.0),
                (f"pow(abs({a.text}) + 0.5, 1.5)", root**3, 1.5 * root),
                (f"({a.text}) ** 2", a.size**2, 2 * a.size),
                (f"({a.text}) ** 3", a.size**3, 3 * a.size**2),
                (f"(abs({a.text}) + 1.0) ** -2", 1.0, 2.0),
            )
        )
        if self.chance(0.1):
            error = 2 * a.error + 2 * b.error + 16 * ULP[type_]
            return Term(f"atan2({a.text}, abs({b.text}) + 0.5)", type_, 1.6, error + 2 * ULP[type_] * a.size, False)
        inside = a.size + 16  # the argument itself is rounded, too
        error = slope * (a.error + ULP[type_] * inside) + 8 * ULP[type_] * (size + 1)
        return Term(f"({text})", type_, size + 0.1, error, False)

    def _float_leaf(self, type_: str, scope: Scope) -> Term:
        rng = self.rng
        choice = rng.random()
        if choice < 0.08:
            value = rng.choice((0.5, 1.25, 0.3, 2.0, 0.1, 1.7))
            return Term(f"{type_}({value})", type_, 2.0, 2 * ULP["float32"])
        if choice < 0.14 and scope.variables:
            return Term(f"random({', '.join(scope.variables)})", "float32", 1.0) if type_ == "float32" else Term(
                f"{type_}(random({', '.join(scope.variables)}))", type_, 1.0
            )  # fmt: skip
        if choice < 0.2 and any(p["name"] == "gain" for p in self.params):
            return Term("gain" if type_ == "float32" else f"{type_}(gain)", type_, 2.0)
        if choice < 0.3:
            leaf = self._leaf_float(scope, type_)
            name = rng.choice(("floor", "ceil", "round", "trunc"))
            return replace(leaf, text=f"{name}({leaf.text} * 2.0)", size=2 * leaf.size + 1)
        if choice < 0.36:
            leaf = self._leaf_float(scope, type_)
            forms = ((f"({leaf.text} // 0.5)", 2 * leaf.size + 1), (f"({leaf.text} % 0.5)", 0.5))
            text, size = rng.choice(forms)
            return Term(text, type_, size, 0.0, exact=text.find("//") >= 0)
        read = self._read(scope, ("float",))
        if read is None or self.chance(0.2):
            return self._small(scope, type_)
        if read.type == type_:
            return read
        error = read.error + ULP["float32"] * read.size
        return replace(read, text=f"{type_}({read.text})", type=type_, error=error)

    def _float_reduction(self, type_: str, scope: Scope) -> Term:
        op = self.rng.choice(("sum", "sum", "sum", "min", "max", "argmin"))
        loops, inner = self._loops(scope)
        points = 1
        for _, _, extent in loops:
            points *= extent
        if op == "sum":
            body = self._term(type_, 1, inner)
            size = points * body.size
            text = f"sum({body.text} {self._comprehension(loops, inner)})"
            return Term(text, type_, size, points * body.error + points * size * ULP[type_], False)
        body = self._leaf_float(inner, type_)
        ranges = " ".join(f"for {name} in {range_}" for name, range_, _ in loops)  # never empty: no infinite result
        component = f"[{len(loops)}]" if op == "argmin" else ""
        return replace(body, text=f"{op}({body.text} {ranges}){component}")
