"""Options of an import from Halide: values of params and of a generator's params, sizes of outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from tilesmith.scheduler.frontends.halide.text import plain
from tilesmith.scheduler.frontends.importer import ImportFailed

if TYPE_CHECKING:
    from tilesmith.scheduler.frontends.halide.facts import ParamFacts

_RANGE = re.compile(r"(?P<least>[^:]+):(?P<most>[^:]+)")
Facts = TypeVar("Facts")


@dataclass(frozen=True, slots=True)
class HalideOptions:
    """Options of an import. `params` are texts by name, a value or MIN:MAX; `sizes` are extents by the name of an
    output, fastest dim first, under "" those of every output that has no estimates."""

    params: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def spans(self, outputs: Mapping[str, tuple[int, bool]]) -> dict[str, list[tuple[int, int]]]:
        """Estimates, (min, extent) per dim, of outputs by name: each with its number of dims, and whether it has
        estimates. Raises ImportFailed for sizes of other outputs, or of other numbers of dims."""
        found: dict[str, list[tuple[int, int]]] = {}
        for name, extents in self.sizes.items():
            meant = [n for n, (_, estimated) in outputs.items() if plain(n) == name or not (name or estimated)]
            if name and not meant:
                hint = f"the outputs are {', '.join(map(plain, outputs))}"
                raise ImportFailed((f"a size is given of {name!r}, which is no output", hint))
            for output in meant:
                dims = outputs[output][0]
                if len(extents) != dims:
                    message = f"the output {plain(output)!r} has {dims} dims, its size has {len(extents)}"
                    raise ImportFailed((message, None))
                found[output] = [(0, n) for n in extents]
        return found

    def applied(self, params: Mapping[str, ParamFacts]) -> dict[str, ParamFacts]:
        """The params, with the values and ranges that are given. Raises ImportFailed for those of others."""
        found = dict(params)
        names = {plain(name): name for name in found}
        for asked, text in self.params.items():
            if asked not in names:
                known = f"the params are {', '.join(names)}" if names else "it has none"
                raise ImportFailed((f"there is no param {asked!r}", known))
            name = names[asked]
            facts, match = found[name], _RANGE.fullmatch(text)
            try:
                if match:
                    least, most = _number(match["least"], facts), _number(match["most"], facts)
                    kept = facts.default if facts.default is not None and least <= facts.default <= most else None
                    found[name] = replace(facts, least=least, most=most, default=kept)
                else:
                    found[name] = replace(facts, default=_number(text, facts))
            except ValueError:
                message = f"the param {asked!r} is a {facts.type}, {text!r} is none, nor a range MIN:MAX"
                raise ImportFailed((message, None)) from None
        return found


def _number(text: str, facts: ParamFacts) -> int | float | bool:
    if str(facts.type) == "bool":
        return {"true": True, "1": True, "false": False, "0": False}[text.lower()] if _is_truth(text) else _fail(text)
    return float(text) if facts.type.code == "float" else int(text, 0)


def _is_truth(text: str) -> bool:
    return text.lower() in ("true", "1", "false", "0")


def _fail(text: str) -> bool:
    raise ValueError(text)
