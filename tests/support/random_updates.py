"""Random pipelines of updates and tuples, with samplings and gathers between them: scans forwards and backwards, sums,
histograms, scatters, changes in place, the least of something with its place; several updates of a stage, each with
free dims of its own, and what other stages make of them.

Values are integers, or floats that hold small integers: every order of evaluation gives the same, and every wrong
element shows. All is drawn from a `Random`, the simplest choice first and by the smallest draw: Hypothesis can be that
`Random`, and shrinks documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

BINS = 16
MAX_SCALE = 8  # the largest product of strides along a path
KINDS = ("repeat_edge", "constant", "mirror_image", "mirror_interior", "repeat_image")
INPUT_TYPES = ("uint8", "int32", "int16", "uint16", "int8", "float32")
TYPES = (
    "int32",
    "int32",
    "int32",
    "uint8",
    "int16",
    "uint16",
    "int8",
    "uint32",
    "int64",
    "uint64",
    "float32",
    "float64",
)
DIMS = (["x"], ["x", "y"], ["x", "y"], ["x", "y"], ["y", "x"], ["x", "y", "c"])
UPDATED_DIMS = (["x"], ["x", "y"], ["x", "y"], ["b"], ["x", "b"], ["b", "y"], ["x", "y", "b"], ["x", "y", "c"], [])


def random_updates(seed: int) -> dict:
    """A valid document of 2 to 6 stages. The same seed makes the same one."""
    return updates_document(Random(f"updates {seed}"), f"updates_{seed}")


def updates_document(random: Random, name: str) -> dict:
    """A document drawn from `random`."""
    return _Documents(random).document(name)


@dataclass(frozen=True)
class _Source:
    """What can be read; `scale` is how many points of an input lie between its neighbours."""

    name: str
    dims: Sequence[str]
    types: Sequence[str]
    is_tuple: bool = False
    scale: int = 1


@dataclass
class _Scope:
    """Where an expression stands: `places` has the expression of each dim's place, `loops` are further variables."""

    places: Mapping[str, str]
    loops: Sequence[str] = ()
    reads: list[_Source] = field(default_factory=list)
    scale: int = 1

    def variables(self) -> list[str]:
        return [*dict.fromkeys((*self.places.values(), *self.loops))]


class _Documents:
    def __init__(self, random: Random) -> None:
        self.r = random
        self.inputs: list[dict] = []
        self.stages: list[dict] = []
        self.sources: list[_Source] = []
        self.taps = False

    def chance(self, p: float) -> bool:
        """With the smallest draw: no."""
        return self.r.random() >= 1 - p

    def document(self, name: str) -> dict:
        r = self.r
        self.taps = self.chance(0.3)
        for n in range(r.choice((1, 1, 2))):
            self._input(f"in{n}")
        for n in range(r.randint(2, 6)):
            updated = self.chance(0.55) or n == 0
            self._updated(f"f{n}") if updated else self._pure(f"f{n}")
        text = [str({k: v for k, v in s.items() if k != "name"}) for s in self.stages]
        names = [s["name"] for s in self.stages]
        unread = [n for k, n in enumerate(names) if not any(f"{n}(" in t for t in (*text[:k], *text[k + 1 :]))]
        more = [n for n in names if n not in unread and self.chance(0.12)]
        outputs = [n for n in names if n in unread or n in more]
        for stage in self.stages:
            if stage["name"] in outputs:
                stage.pop("boundary", None)
        size = {"x": r.choice((19, 33, 50)), "y": r.choice((9, 17, 26)), "c": 3, "b": BINS}
        low = {"x": r.choice((0, 0, 4)), "y": r.choice((0, 0, -3)), "c": 0, "b": 0}
        stages = {s["name"]: s for s in self.stages}
        return {
            "format": 1,
            "name": name,
            **({"params": [{"name": "taps", "type": "int32", "default": 3, "min": 1, "max": 5}]} if self.taps else {}),
            "inputs": self.inputs,
            "stages": self.stages,
            "outputs": outputs,
            "estimates": {o: [[low[d], size[d]] for d in stages[o]["dims"]] for o in outputs},
        }

    def _input(self, name: str) -> None:
        type_, dims = self.r.choice(INPUT_TYPES), self.r.choice(DIMS[:5])
        item: dict = {"name": name, "type": type_, "dims": dims}
        if not self.chance(0.3):
            item["boundary"] = self._boundary()
        self._storage(item)
        self.inputs.append(item)
        self.sources.append(_Source(name, dims, [type_]))

    def _boundary(self) -> dict:
        kind = self.r.choice(KINDS)
        return {"kind": kind, **({"value": "5"} if kind == "constant" else {})}

    def _storage(self, item: dict) -> None:
        if len(item["dims"]) > 1 and self.chance(0.15):
            item["storage"] = self.r.sample(item["dims"], len(item["dims"]))

    # Stages

    def _add(self, item: dict, types: Sequence[str], scopes: Iterable[_Scope]) -> None:
        dims, many = item["dims"], len(types) > 1
        same = len(set(types)) == 1
        if dims and same and self.chance(0.1):
            domain = [[self.r.randint(-2, 1), self.r.randint(3, 14)] for _ in dims]
            item["boundary"] = {**self._boundary(), "domain": domain}
        self._storage(item)
        self.stages.append(item)
        scale = max((s.scale for s in scopes), default=1)
        self.sources.append(_Source(item["name"], dims, types, many, scale))

    def _pure(self, name: str) -> None:
        r, dims = self.r, self.r.choice(DIMS)
        scope = _Scope({d: d for d in dims})
        types = [r.choice(TYPES) for _ in range(r.choice((1, 1, 2)))]
        kind = r.choice(("stencil", "stencil", "sum", "argmin", "parity", "lookup"))
        if kind == "argmin":
            value, types = self._argmin(scope), ["int32", "int32"]
            self._add({"name": name, "dims": dims, "value": value}, types, [scope])
            return
        make = {"stencil": self._stencil, "sum": self._sum, "parity": self._parity, "lookup": self._lookup}[kind]
        values = [make(t, scope) for t in types]
        self._add({"name": name, "dims": dims, "value": values if len(types) > 1 else values[0]}, types, [scope])

    def _stencil(self, type_: str, scope: _Scope) -> str:
        source = self._source()
        value = self._read(type_, scope, source)
        for k in range(2, 2 + self.r.choice((0, 1, 2, 3))):
            other = source if not self.chance(0.3) else self._source()
            op = self.r.choice(("+", "-")) if "float" in type_ else self.r.choice(("+", "-", "^"))
            value += f" {op} {k} * {self._read(type_, scope, other)}"
        return value

    def _sum(self, type_: str, scope: _Scope) -> str:
        low, last = self.r.choice((("0", "3"), ("-1", "2"), ("0", "taps" if self.taps else "9")))
        inner = _Scope(scope.places, ["k"], scope.reads)
        value = self._read(type_, inner, self._source())
        scope.scale = max(scope.scale, inner.scale)
        op = self.r.choice(("sum", "max", "sum", "min"))
        if op != "sum" and "taps" in last:
            last = "4"
        return f"{op}({value} for k in range({low}, {last}))"

    def _argmin(self, scope: _Scope) -> str:
        inner = _Scope(scope.places, ["k"], scope.reads)
        value = self._read("int32", inner, self._source())
        scope.scale = max(scope.scale, inner.scale)
        return f"{self.r.choice(('argmin', 'argmax'))}({value} for k in range(-1, 3))"

    def _parity(self, type_: str, scope: _Scope) -> str:
        """What lies between is made of two neighbours, or of another source."""
        dim = self.r.choice(list(scope.places))
        halves = {**scope.places, dim: f"{scope.places[dim]} // 2"}
        a, b = (self._read(type_, _Scope(halves, reads=scope.reads), self._source(), near=True) for _ in range(2))
        if self.chance(0.5):
            return f"mux({dim} % 2, {a}, {b})"
        return f"select({dim} % 2 == 0, {a}, {b})"

    def _lookup(self, type_: str, scope: _Scope) -> str:
        source = self._source()
        indices = [
            self._data(scope, BINS) if d == "b" or self.chance(0.4) else self._index(d, scope, source)
            for d in source.dims
        ]
        return self._component(type_, scope, source, indices)

    # Updates

    def _updated(self, name: str) -> None:
        r, dims = self.r, self.r.choice(UPDATED_DIMS)
        types = [r.choice(TYPES) for _ in range(r.choice((1, 1, 1, 2)))]
        scope = _Scope({d: d for d in dims})
        values = [self._stencil(t, scope) if self.chance(0.7) else f"{t}({k})" for k, t in enumerate(types)]
        me = _Source(name, dims, types, len(types) > 1)
        kept = [d for d in dims if self.chance(0.5)]
        scopes = [scope]
        updates = []
        for _ in range(r.choice((1, 1, 2, 3))):
            update, inner = self._update(me, kept)
            updates.append(update)
            scopes.append(inner)
        value = values if me.is_tuple else values[0]
        self._add({"name": name, "dims": dims, "value": value, "updates": updates}, types, scopes)

    def _update(self, me: _Source, kept: Sequence[str]) -> tuple[dict, _Scope]:
        """An update in which the dims `kept` are free, and the others may be anything."""
        r = self.r
        roles = {
            d: r.choice(("free", "loop", "back", "strided", "data", "fixed", "free", "loop", "loop")) for d in me.dims
        }
        roles.update(dict.fromkeys(kept, "free"))
        if "b" in roles and roles["b"] != "free" and not self.chance(0.4):
            roles["b"] = "data"
        loops = [d for d, role in roles.items() if role in ("loop", "back", "strided")]
        summed = [d for d in ("x", "y") if d not in loops and roles.get(d) != "free" and self.chance(0.5)]
        if not loops and not summed and roles and "data" not in roles.values() and self.chance(0.5):
            summed = [r.choice(["s", "x" if "x" not in me.dims else "s"])]
        along = r.sample([*loops, *summed], len(loops) + len(summed))
        domain = {f"r{d}": self._range(len(along)) for d in along}
        places = {
            d: f"r{d}" if d in along else d
            for d in dict.fromkeys((*me.dims, *along))
            if d in along or roles.get(d) == "free"
        }
        scope = _Scope(places, [f"r{d}" for d in summed])
        at = [self._at(d, roles[d], scope) for d in me.dims]
        update: dict = {"domain": domain, "at": at, "value": self._new_values(me, roles, at, scope)}
        if self.chance(0.25):
            update["where"] = self._condition(me, at, scope)
        return update, scope

    def _range(self, loops: int) -> list[int | str]:
        r = self.r
        if self.chance(0.12) and (images := [i for i in self.inputs if "boundary" in i]):
            image = r.choice(images)
            dim = r.choice(image["dims"])
            return [f"{image['name']}.min.{dim}", f"{image['name']}.extent.{dim}"]
        if self.taps and self.chance(0.15):
            return [r.randint(-1, 1), "taps"]
        return [r.choice((0, 1, 2, -1)), r.choice((2, 3, 5, 8) if loops > 1 else (3, 7, 16, 24))]

    def _at(self, dim: str, role: str, scope: _Scope) -> str:
        r, v = self.r, f"r{dim}"
        match role:
            case "free":
                return dim
            case "loop":
                return v if not self.chance(0.25) else f"{v} + {r.randint(1, 3)}"
            case "back":
                return f"{r.choice((9, 4))} - {v}"
            case "strided":
                others = [w for w in scope.loops if w != v]
                return f"2 * {v} + {r.choice(others) if others and self.chance(0.3) else r.randint(0, 1)}"
            case "fixed":
                return str(r.randint(0, 5))
        return self._data(scope, BINS if dim == "b" else r.choice((4, 11)))

    def _new_values(self, me: _Source, roles: Mapping[str, str], at: list[str], scope: _Scope) -> str | list[str]:
        here = f"{me.name}({', '.join(at)})"
        if me.is_tuple and self.chance(0.4):
            found = self._read(me.types[0], scope, self._source())
            best = f"{found} {self.r.choice(('<', '<=', '>'))} {here}[0]"
            place = self._cast(me.types[1], "int32", self.r.choice(scope.variables() or ["7"]))
            return [f"select({best}, {found}, {here}[0])", f"select({best}, {place}, {here}[1])"]
        values = [self._new_value(me, k, roles, at, scope) for k in range(len(me.types))]
        return values if me.is_tuple else values[0]

    def _new_value(self, me: _Source, k: int, roles: Mapping[str, str], at: list[str], scope: _Scope) -> str:
        type_ = me.types[k]
        component = f"[{k}]" if me.is_tuple else ""
        h = f"{me.name}({', '.join(at)}){component}"
        indices = [self._own(role, a, scope) for role, a in zip(roles.values(), at, strict=True)]
        s = f"{me.name}({', '.join(indices)}){component}"
        a = self._read(type_, scope, self._source())
        forms = [
            "{h} + {a}",
            "max({h}, {a})",
            "{s} + {a}",
            "min({a}, {h})",
            "{a}",
            "select({a} > {s}, {a}, {h})",
            "max({s}, {a})",
        ]
        if "float" not in type_:
            forms += ["{h} * {a}", "{h} * 3 + {s} - {a}", "{h} ^ {a}", "{h} | {a}", "{s} * 2 + {h}", "{h} & ({a} | 85)"]
        else:
            forms += ["{s} * 0.75 + {a}", "{a} - {s}", "{s} + 0.5 * ({a} - {s})"]
        return self.r.choice(forms).format(h=h, s=s, a=a)

    def _own(self, role: str, at: str, scope: _Scope) -> str:
        """An index of a read of the stage itself."""
        if role == "free" or not self.chance(0.6):
            return at
        if role in ("loop", "back", "strided"):
            return self.r.choice(
                (f"{at} - 1", f"{at} - 1", f"{at} + 1", f"{at} - 2", f"6 - ({at})", self._data(scope, 5))
            )
        return self.r.choice(("3", self._data(scope, 7)))

    def _condition(self, me: _Source, at: list[str], scope: _Scope) -> str:
        component = "[0]" if me.is_tuple else ""
        forms = [f"{self._read('int32', scope, self._source())} > 3"]
        forms += [f"{v} % 2 == 0" for v in scope.variables()]
        forms += [f"int32({me.name}({', '.join(at)}){component}) < 50"]
        if self.taps:
            forms.append("taps > 2")
        if len(scope.variables()) > 1:
            forms.append(" < ".join(scope.variables()[:2]))
        return self.r.choice(forms)

    # Reads

    def _source(self) -> _Source:
        """The latest, mostly."""
        return self.sources[-1] if not self.chance(0.4) else self.r.choice(self.sources)

    def _read(self, type_: str, scope: _Scope, source: _Source, near: bool = False) -> str:
        """A read of one component, as `type_`; floats as small integers."""
        return self._component(type_, scope, source, [self._index(d, scope, source, near) for d in source.dims])

    def _component(self, type_: str, scope: _Scope, source: _Source, indices: Sequence[str]) -> str:
        k = self.r.randrange(len(source.types))
        text = f"{source.name}({', '.join(indices)})" + (f"[{k}]" if source.is_tuple else "")
        scope.scale = max(scope.scale, source.scale)
        return self._cast(type_, source.types[k], text)

    def _cast(self, type_: str, from_: str, text: str) -> str:
        if "float" in type_:
            return f"{type_}({text if 'float' not in from_ else f'int32({text})'} & 63)"
        return text if type_ == from_ else f"{'sat_' if self.chance(0.1) else ''}{type_}({text})"

    def _index(self, dim: str, scope: _Scope, source: _Source, near: bool = False) -> str:
        r = self.r
        v = scope.places.get(dim)
        if dim == "b" and v is None:
            return self._data(scope, BINS)
        if v is None:
            free = scope.variables()
            v = r.choice(free) if free and self.chance(0.3) else None
            if v is None:
                return str(r.randint(0, 3))
        o = r.choice((0, 0, 1, -1, 2, -2, 3))
        near_by = f"{v} + {o}" if o > 0 else f"{v} - {-o}" if o else v
        if near or dim in ("c", "b") or not self.chance(0.45):
            return near_by
        loop = r.choice(scope.loops) if scope.loops else None
        if loop and self.chance(0.6):
            rate = r.choice((1, 1, 2, -1)) if source.scale <= MAX_SCALE // 2 else 1
            scope.scale = max(scope.scale, source.scale * abs(rate))
            return f"{v} - {loop}" if rate < 0 else f"{v} + {loop}" if rate == 1 else f"{rate} * {v} + {loop}"
        rates = [k for k in (2, 3, 4) if source.scale * k <= MAX_SCALE]
        forms = [f"({near_by}) // 2", f"{o} - {v}", f"({near_by}) // 3", f"clamp({near_by}, 0, 9)", f"({near_by}) % 4"]
        forms += [f"{v} + {self._data(scope, 3)} - 1"]
        if rates and self.chance(0.5):
            k = r.choice(rates)
            scope.scale = max(scope.scale, source.scale * k)
            return f"{k} * ({v}) + {r.randint(0, k - 1)}" if self.chance(0.7) else f"{k} * ({v}) - 1"
        return r.choice(forms)

    def _data(self, scope: _Scope, size: int) -> str:
        """A place in 0..size-1 that data says."""
        source = self.sources[0] if not self.chance(0.5) else self.r.choice(self.sources)
        indices = []
        for d in source.dims:
            v = scope.places.get(d) or (self.r.choice(scope.loops) if scope.loops else "1")
            indices.append(v if not self.chance(0.3) else f"{v} + 1")
        k = self.r.randrange(len(source.types))
        text = f"int32({source.name}({', '.join(indices)})" + (f"[{k}]" if source.is_tuple else "") + ")"
        scope.scale = max(scope.scale, source.scale)
        return self.r.choice((f"clamp({text}, 0, {size - 1})", f"{text} % {size}"))
