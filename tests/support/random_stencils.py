"""Random graphs of stencils: pure stages of integers that read neighbours, twice as many points or half of them, and
through clamps and boundaries. Whole groups of them may slide, fold and rotate, which is what schedules of them are
drawn for; integers show every wrong element."""

from __future__ import annotations

from random import Random

from support.random_schedules import random_schedule

from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Schedule

KINDS = ("repeat_edge", "repeat_image", "mirror_image", "mirror_interior", "constant")


def random_stencils(seed: int) -> dict:
    """A valid document of 2 to 5 stages with one output, or now and then two. The same seed makes the same one."""
    return _Stencils(Random(f"stencils {seed}"), Random(f"windows {seed}"), Random(f"tuples {seed}")).document(
        f"stencils_{seed}"
    )


class _Stencils:
    def __init__(self, r: Random, windows: Random, tuples: Random) -> None:
        self.r, self.windows, self.tuples = r, windows, tuples
        self.pairs: set[str] = set()
        """The stages that have two values."""
        self.dims = r.choice((["x", "y"], ["x", "y"], ["x", "y"], ["x", "y", "c"], ["x"]))
        self.image: dict = {"name": "input", "type": r.choice(("int32", "uint8", "int16")), "dims": self.dims}
        if r.random() < 0.5:
            self.image["boundary"] = self._boundary()
        self.scale = {"input": 1}
        """How many points of the input lie between neighbours, by what is read; in order."""

    def document(self, name: str) -> dict:
        r = self.r
        stages = [self._stage(f"f{n}") for n in range(r.randint(2, 5))]
        names = [s["name"] for s in stages]
        outputs = [names[-1]] + ([r.choice(names[:-1])] if len(names) > 2 and r.random() < 0.1 else [])
        read = "".join(v for s in stages for v in s["value"])
        outputs += [n for n in names if f"{n}(" not in read and n not in outputs]
        for stage in stages:
            if stage["name"] in outputs:
                stage.pop("boundary", None)
        size = {"x": r.choice((19, 33, 50)), "y": r.choice((9, 17, 26)), "c": 3}
        estimates = {o: [[0, size[d]] for d in self.dims] for o in outputs}
        return {
            "format": 1, "name": name, "inputs": [self.image], "stages": stages, "outputs": outputs,
            "estimates": estimates,
        }  # fmt: skip

    def _boundary(self) -> dict:
        kind = self.r.choice(KINDS)
        return {"kind": kind, **({"value": "5"} if kind == "constant" else {})}

    def _stage(self, name: str) -> dict:
        r, known = self.r, list(self.scale)
        self.scale[name] = 1
        sources = dict.fromkeys([known[-1], *(r.choice(known) for _ in range(r.choice((0, 0, 1, 2))))])
        value, *terms = [term for source in sources for term in self._reads(name, source)]
        for k, term in enumerate(terms, start=2):
            value += f" {r.choice(('+', '-', '^'))} {k} * {term}"
        if r.random() < 0.2:
            value += f" + {r.choice(self.dims)}"
        stage: dict = {"name": name, "dims": self.dims, "value": value}
        if self.tuples.random() < 0.15:
            stage["value"] = [value, self.tuples.choice((f"({value}) * 3", f"{value} + {self.dims[0]}", *terms[-1:]))]
            self.pairs.add(name)
        elif r.random() < 0.12:
            domain = [[r.randint(-2, 1), r.randint(3, 14)] for _ in self.dims]
            stage["boundary"] = {**self._boundary(), "domain": domain}
        if len(self.dims) > 1 and r.random() < 0.1:
            stage["storage"] = r.sample(self.dims, len(self.dims))
        return stage

    def _reads(self, name: str, source: str) -> list[str]:
        """One to four reads of `source`: in every dim along one line, mostly, and through one clamp or none."""
        r = self.r
        rates = [r.choice((1, 1, 1, 1, 1, 1, 2, 2, 0.5, 0.5, -1)) if d != "c" else 1 for d in self.dims]
        if self.scale[source] * max(rates) > 8:
            rates = [1 for _ in self.dims]
        self.scale[name] = max(self.scale[name], self.scale[source] * (2 if 2 in rates else 1))
        lines = list(zip(self.dims, rates, map(self._clamp, self.dims), strict=True))
        if len(lines) > 1 and self.windows.random() < 0.15:
            return [self._window(source, lines)]
        reads = [self._read(source, [self._index(*line) for line in lines]) for _ in range(r.randint(1, 4))]
        return [f"int32({read})" if source == "input" else read for read in reads]

    def _read(self, source: str, indices: list[str]) -> str:
        component = f"[{self.tuples.randint(0, 1)}]" if source in self.pairs else ""
        return f"{source}({', '.join(indices)}){component}"

    def _window(self, source: str, lines: list) -> str:
        """A window of weights that are products, written out."""
        r = self.windows
        first, second, *others = [(*line, r.randint(2, 3)) for line in lines]
        sides = [[(self._index(*line, offset), r.choice((1, 2, 3))) for offset in range(n)]
                 for *line, n in (first, second)]  # fmt: skip
        rest = [self._index(*line) for *line, _ in others]
        terms = [f"{u * v} * int32({self._read(source, [i, j, *rest])})" for j, u in sides[1] for i, v in sides[0]]
        return f"({' + '.join(terms)})"

    def _clamp(self, dim: str) -> tuple[object, object] | None:
        if dim == "c" or self.r.random() < 0.7:
            return None
        # the place of an input that has to have what is read of it is no bound of what is read of it
        anywhere = "boundary" in self.image
        return self.r.choice(((-1, 7), (f"input.min.{dim}", "input.extent.x + 3") if anywhere else (2, 9)))

    def _index(self, dim: str, rate: float, bounds: tuple[object, object] | None, offset: int | None = None) -> str:
        r = self.r
        if dim == "c":
            return dim
        if offset is None:
            offset = r.choice((0, 0, 1, -1, 2, -2, 3))
        text = {
            1: f"{dim} + {offset}",
            2: f"2 * {dim} + {offset}",
            0.5: f"({dim} + {offset}) // 2",
            -1: f"{offset} - {dim}",
        }[rate]
        if bounds is None:
            return text
        return f"clamp({text}, {bounds[0]}, {bounds[1]})" + (f" + {r.randint(-1, 1)}" if r.random() < 0.1 else "")


def sliding_schedule(pipeline: Pipeline, seed: int, strict: bool = False) -> Schedule:
    """A random schedule with stages that are stored further out than computed, where one is drawn in 20 attempts."""
    for attempt in range(20):
        schedule = random_schedule(pipeline, seed * 20 + attempt, registers=attempt % 3 == 1, strict=strict)
        if any(p.compute != p.store for g in schedule.groups for p in g.placements):
            return schedule
    return schedule
