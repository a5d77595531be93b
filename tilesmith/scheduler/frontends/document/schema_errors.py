"""A document's shape: pydantic's findings as our problems, and what is left of a document that is partly wrong.

A document that is right costs one validation. In one that is wrong, every item (a stage, an input, ...) is judged
alone, so that a slip in one does not hide what is wrong with the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from tilesmith.scheduler.errors import DocumentError, Problem
from tilesmith.scheduler.frontends.document import foreign_words
from tilesmith.scheduler.frontends.document.diagnostics import Report, pointer
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.document.names import close_to
from tilesmith.scheduler.frontends.document.schema import (
    BoundaryDocument,
    InputDocument,
    ParamDocument,
    PipelineDocument,
    Span,
    StageDocument,
    UpdateDocument,
)
from tilesmith.scheduler.ir.pipeline.types import TYPES

_Model = TypeVar("_Model", bound=BaseModel)
_KINDS = ("repeat_edge", "repeat_image", "mirror_image", "mirror_interior", "constant")
_ONE_KIND = f"the kinds are {', '.join(_KINDS)}"
_SIZE = (1920, 1080)
_CHANNELS = 3


@dataclass(slots=True)
class Shape:
    """The parts of a document that have the right shape, each with its pointer.

    `broken`: names whose declarations are not among them. `guessed`: outputs or estimates are not all there,
    so that their absence is no second error.
    """

    name: str = ""
    doc: str = ""
    params: list[tuple[str, ParamDocument]] = field(default_factory=list)
    inputs: list[tuple[str, InputDocument]] = field(default_factory=list)
    stages: list[tuple[str, StageDocument]] = field(default_factory=list)
    outputs: list[tuple[str, str]] = field(default_factory=list)
    estimates: list[tuple[str, str, list[Span]]] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    guessed: bool = False


def shape(document: object, limits: Limits, report: Report) -> Shape:
    """The well-shaped parts of `document`; what is wrong with the rest goes into `report`.

    Raises DocumentError where there is nothing to go on with.
    """
    if not isinstance(document, Mapping):
        raise DocumentError((Problem("bad_type", "", f"A pipeline is an object, not {_json_type(document)}."),))
    _refuse_huge(document, limits)
    try:
        model = PipelineDocument.model_validate(document)
    except ValidationError as error:
        found = _problems(error, document, limits.problems)
        for problem in found:
            report.append(problem)
        return _salvage(document, found)
    return Shape(
        model.name,
        model.doc,
        [(f"/params/{i}", p) for i, p in enumerate(model.params)],
        [(f"/inputs/{i}", p) for i, p in enumerate(model.inputs)],
        [(f"/stages/{i}", s) for i, s in enumerate(model.stages)],
        [(f"/outputs/{i}", name) for i, name in enumerate(model.outputs)],
        [(f"/estimates/{name}", name, spans) for name, spans in model.estimates.items()],
    )


def _refuse_huge(document: Mapping[Any, Any], limits: Limits) -> None:
    """Stop before anything is done with each of a million stages."""
    found = []
    for key in ("params", "inputs", "stages", "outputs"):
        items, most = document.get(key), int(getattr(limits, key))
        if isinstance(items, list) and len(items) > most:
            message = f"There are {len(items)} {key}, {most} are allowed."
            found.append(Problem("limit_exceeded", f"/{key}", message))
    if found:
        raise DocumentError(tuple(found))


def _salvage(document: Mapping[Any, Any], found: Sequence[Problem]) -> Shape:
    result = Shape(guessed=True)
    bad = {p.pointer: p.code for p in found}
    for key, model in (("params", ParamDocument), ("inputs", InputDocument), ("stages", StageDocument)):
        items = document.get(key)
        for i, item in enumerate(items if isinstance(items, list) else ()):
            # Names stay known, so that who reads the broken item is not blamed.
            where = f"/{key}/{i}"
            kept = _without_unknown_keys(item, where, bad)
            try:
                good = model.model_validate(kept)
            except ValidationError:
                if isinstance(item, Mapping) and isinstance(item.get("name"), str):
                    result.broken.add(item["name"])
                continue
            getattr(result, key).append((where, good))
    outputs = document.get("outputs")
    for i, name in enumerate(outputs if isinstance(outputs, list) else ()):
        if isinstance(name, str) and f"/outputs/{i}" not in bad:
            result.outputs.append((f"/outputs/{i}", name))
    estimates = document.get("estimates")
    for name, spans in estimates.items() if isinstance(estimates, Mapping) else ():
        where = pointer("estimates", str(name))
        if not any(p == where or p.startswith(where + "/") for p in bad):
            result.estimates.append((where, name, spans))
    result.guessed = any(p in ("", "/outputs", "/estimates") or p.startswith(("/outputs/", "/estimates/")) for p in bad)
    return result


def _without_unknown_keys(item: object, where: str, bad: Mapping[str, str]) -> object:
    """`item` less the keys that have been reported, down to its boundary and updates; nothing shared is changed."""
    if isinstance(item, list):
        return [_without_unknown_keys(part, f"{where}/{i}", bad) for i, part in enumerate(item)]
    if not isinstance(item, Mapping):
        return item
    kept = {k: v for k, v in item.items() if bad.get(where + pointer(str(k))) != "unknown_key"}
    for key in ("boundary", "updates"):
        if key in kept:
            kept[key] = _without_unknown_keys(kept[key], f"{where}/{key}", bad)
    return kept


# pydantic's errors as problems


def _problems(error: ValidationError, document: Mapping[Any, Any], most: int) -> list[Problem]:
    """One problem a place: of the branches of a union, the one that came furthest."""
    best: dict[str, Problem] = {}
    for details in error.errors(include_url=False, include_context=False, include_input=False):
        if len(best) > most:
            break
        problem = _problem(details["type"], details["loc"], document)
        known = best.get(problem.pointer)
        if known is None or known.code == "bad_type" or problem.code == "missing_key":
            key = problem.pointer if problem.code != "missing_key" else f"{problem.pointer} {problem.message}"
            best[key] = problem
    inner = {p for place in best for p in _parents(place)}
    return [p for place, p in best.items() if not (p.code in ("bad_type", "unknown_type") and place in inner)]


def _parents(place: str) -> list[str]:
    steps = place.split("/")
    return ["/".join(steps[:n]) for n in range(1, len(steps))]


def _problem(kind: str, loc: Sequence[str | int], document: Mapping[Any, Any]) -> Problem:
    steps, value = _locate(loc, document)
    place = pointer(*steps)
    last = str(loc[-1]) if loc else ""
    key = next((s for s in reversed(steps) if isinstance(s, str)), "")
    match kind:
        case "missing":
            hint = _addition(last, document) if not steps else None
            return Problem("missing_key", place, f"The key {last!r} is missing.", hint)
        case "extra_forbidden":
            keys = _keys_of(loc)
            hint = close_to(last, keys) or f"the keys here are {', '.join(keys)}"
            return Problem("unknown_key", place, f"There is no key {_show(last)} here.", hint)
        case "string_pattern_mismatch":
            shown = _show(last if last != "[key]" and not isinstance(value, str) else value)
            if last == "[key]":
                shown = _show(loc[-2])
            hint = "letters, digits and _, not beginning with a digit, at most 64"
            return Problem("bad_identifier", place, f"{shown} is not an identifier.", hint)
        case "literal_error" if key == "format":
            return Problem("unsupported_format", place, f"The format is 1, not {_show(value)}.", 'write "format": 1')
        case "literal_error" if key == "kind":
            hint = foreign_words.boundary(str(value)[:64]) or close_to(str(value)[:64], _KINDS)
            return Problem("unknown_kind", place, f"There is no boundary kind {_show(value)}.", hint or _ONE_KIND)
        case "literal_error":
            hint = _type_hint(value[:64]) if isinstance(value, str) else f"one of {', '.join(TYPES)}"
            return Problem("unknown_type", place, f"There is no type {_show(value)}.", hint)
        case "finite_number" | "int_parsing_size":
            return Problem("bad_number", place, "The number is too large, or not a number.")
        case "too_short" | "too_long":
            return Problem("bad_value", place, f"This is a pair [min, extent], not a list of {_length(value)}.")
        case _:
            hint = _boundary_object(value) if key == "boundary" and isinstance(value, str) else _wanted(kind)
            return Problem("bad_type", place, f"This cannot be {_json_type(value)}.", hint)


def estimate_of(name: str, dims: Sequence[str]) -> str:
    """An entry of `estimates` that a hint proposes: a photograph's size, of few channels."""
    spans = ", ".join(f"[0, {extent}]" for extent in (*_SIZE, *(_CHANNELS for _ in dims))[: len(dims)])
    return f'"{name}": [{spans}]'


def _addition(key: str, document: Mapping[Any, Any]) -> str | None:
    """The line that adds a key that a document lacks."""
    match key:
        case "format":
            return 'add "format": 1'
        case "name":
            return 'add "name": "my_pipeline"'
        case "inputs":
            return 'add "inputs": [{"name": "image", "type": "uint8", "dims": ["x", "y"]}]'
        case "stages":
            return 'add "stages": [{"name": "f", "dims": ["x", "y"], "value": "image(x, y)"}]'
        case "outputs":
            stages = _declared(document)
            return f'add "outputs": ["{list(stages)[-1]}"]' if stages else 'add "outputs": [NAME], names of stages'
        case "estimates":
            stages, outputs = _declared(document), document.get("outputs")
            named = [n for n in outputs if isinstance(n, str) and n in stages] if isinstance(outputs, list) else []
            entries = ", ".join(estimate_of(n, stages[n]) for n in named[:8])
            return f'add "estimates": {{{entries or "NAME: [[min, extent], ...]"}}}, the size that you expect'
    return None


def _declared(document: Mapping[Any, Any]) -> dict[str, list[str]]:
    """Stages that have a name and dims, whatever else is wrong with them."""
    stages = document.get("stages")
    items = [s for s in stages if isinstance(s, Mapping)] if isinstance(stages, list) else []
    return {s["name"]: s["dims"] for s in items if isinstance(s.get("name"), str) and isinstance(s.get("dims"), list)}


def _type_hint(name: str) -> str | None:
    return foreign_words.type_name(name) or close_to(name, TYPES)


def _boundary_object(kind: str) -> str:
    """The hint for a boundary that is a word."""
    if kind in _KINDS:
        return f'write {{"kind": "{kind}"}}'
    return f'a boundary is an object, {{"kind": ...}}; {foreign_words.boundary(kind[:64]) or _ONE_KIND}'


def _locate(loc: Sequence[str | int], document: object) -> tuple[list[str | int], object]:
    """The steps of `loc` that are places in the document (pydantic adds names of union branches), and what is there."""
    steps: list[str | int] = []
    here = document
    for step in loc:
        inside_object = isinstance(here, Mapping) and step in here
        inside_list = isinstance(here, list) and isinstance(step, int) and step < len(here)
        if inside_object or inside_list:
            here = here[step]  # type: ignore[index]
            steps.append(step)
    return steps, here


def _keys_of(loc: Sequence[str | int]) -> list[str]:
    """The keys of the object that the unknown key at `loc` is in."""
    models: dict[str, type[BaseModel]] = {
        "params": ParamDocument, "inputs": InputDocument, "stages": StageDocument,
        "boundary": BoundaryDocument, "updates": UpdateDocument,
    }  # fmt: skip
    owner = next((models[s] for s in reversed(loc[:-1]) if isinstance(s, str) and s in models), PipelineDocument)
    return list(owner.model_fields)


def _show(value: object) -> str:
    text = ascii(value) if isinstance(value, str) else _json_type(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63:
        text = str(value)
    return text if len(text) <= 48 else text[:44] + "...'"


def _length(value: object) -> int:
    return len(value) if isinstance(value, list) else 0


def _json_type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "an object"
        case _:
            return f"a Python {type(value).__name__}"


def _wanted(kind: str) -> str | None:
    words = {
        "string_type": "a string is needed", "int_type": "an integer is needed", "list_type": "a list is needed",
        "dict_type": "an object is needed", "model_type": "an object is needed", "bool_type": "true or false is needed",
        "float_type": "a number is needed", "int_from_float": "an integer is needed",
        "string_unicode": "the string is not valid Unicode",
    }  # fmt: skip
    return words.get(kind)
