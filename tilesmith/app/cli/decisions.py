"""--fix: decisions of a schedule that the caller takes, from files and from STAGE.KEY=VALUE."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilesmith.app.cli.report import BadDocument, UsageError
from tilesmith.app.cli.sources import load_document
from tilesmith.scheduler.errors import DocumentError

if TYPE_CHECKING:
    from tilesmith.platforms import Platform
    from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
    from tilesmith.scheduler.search.constraints.constraints import Fixed

LISTS = ("order", "loops", "unroll")
WORDS: dict[str, bool | None] = {"whole": None, "null": None, "true": True, "false": False}


def fixed(texts: Sequence[str], pipeline: Pipeline, strict: bool, platform: Platform) -> Fixed:
    """The decisions that all of --fix fix together, later ones over earlier ones.

    Raises UsageError where one is neither a file nor STAGE.KEY=VALUE, BadDocument for what is wrong with them, and
    FixedContradiction for decisions that no schedule has together.
    """
    from tilesmith.scheduler.search.constraints.document import load

    document: dict[str, Any] = {}
    for text in texts:
        if "=" in text and not Path(text).exists():
            _put(document, text)
        else:
            _merge(document, load_document(text), text)
    try:
        return load(document, pipeline, strict, platform)
    except DocumentError as error:
        raise BadDocument(error.problems, "what --fix says") from None


def _put(document: dict[str, Any], text: str) -> None:
    """STAGE.KEY=VALUE or STAGE.tiles.DIM=VALUE into the document."""
    place, _, value = text.partition("=")
    steps = place.split(".")
    if len(steps) == 3 and steps[1] != "tiles":
        raise UsageError(
            (f"--fix {text}: only tiles are fixed by dim", f"did you mean {steps[0]}.tiles.{steps[2]}=...?")
        )
    if steps[1:] == ["tiles"]:
        raise UsageError((f"--fix {text}: tiles are fixed by dim", f"write {place}.DIM={value}"))
    if len(steps) != (3 if steps[1:2] == ["tiles"] else 2) or not all(steps):
        shape = "STAGE.KEY=VALUE, such as blur_x.compute=y.inner or blur_y.tiles.x=256"
        raise UsageError((f"--fix {text}: expected a file, or {shape}", None))
    parsed = _value(value, steps[1] in LISTS)
    stage = document.setdefault(steps[0], {})
    if len(steps) == 3:
        stage.setdefault("tiles", {})[steps[2]] = parsed
    else:
        stage[steps[1]] = parsed


def _value(text: str, is_list: bool) -> Any:
    if is_list:
        return [name.strip() for name in text.split(",")] if text else []
    if text in WORDS:
        return WORDS[text]
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else text


def _merge(document: dict[str, Any], more: object, name: str) -> None:
    if not isinstance(more, dict) or not all(isinstance(stage, dict) for stage in more.values()):
        raise UsageError((f"--fix {name}: the file is no object of stages by name", None))
    for name, stage in more.items():
        here = document.setdefault(name, {})
        tiles = {**here.get("tiles", {}), **(stage.get("tiles") or {})} if isinstance(stage.get("tiles"), dict) else {}
        here |= stage
        if tiles:
            here["tiles"] = tiles
