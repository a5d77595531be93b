"""A primitive is one file: what another one brings is in documents, differences, loop nests, legality and `--fix`."""

import sys
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path

import pytest
from support.machines import machine
from support.small_pipelines import blur

from tilesmith.scheduler.codegen.loopnest import to_text
from tilesmith.scheduler.compiler import Options, compile_pipeline, generate
from tilesmith.scheduler.errors import DocumentError, IllegalSchedule
from tilesmith.scheduler.frontends.python.files import module_of
from tilesmith.scheduler.ir.schedule.difference import differences
from tilesmith.scheduler.ir.schedule.document import from_document, to_document
from tilesmith.scheduler.ir.schedule.primitives.primitive import Primitive
from tilesmith.scheduler.ir.schedule.primitives.registry import primitives, register, unregister
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import SearchOptions, autoschedule
from tilesmith.scheduler.search.constraints.document import load
from tilesmith.scheduler.search.constraints.document import to_document as fixed_document

GROUP = Group(
    "blur_y",
    ("x.inner", "y.inner", "x.outer", "y.outer"),
    (Tile("x", 256), Tile("y", None)),
    "y.outer",
    Vector("x", 16),
    (),
    (Placement("blur_x", "y.inner", "x.outer", True, "memory", ("x", "y"), Vector("x", 16)),),
)
PLAIN = Schedule("blur", "hand", (GROUP,))


Note = Primitive[str]


@pytest.fixture
def note() -> Iterator[Note]:
    """The primitive of the example, which its file registers."""
    before = set(sys.modules)
    module_of(str(Path(__file__).parents[4] / "examples" / "extending" / "note.py"))
    (primitive,) = (p for p in primitives() if p.key == "note")
    yield primitive
    unregister(primitive.key)
    for name in set(sys.modules) - before:
        if name.startswith("/"):
            del sys.modules[name]


def _noted(note: Note, text: str) -> Schedule:
    placement = note.put(GROUP.placements[0], text)
    return replace(PLAIN, groups=(note.put(replace(GROUP, placements=(placement,)), text),))


def test_its_document_comes_back(note: Note) -> None:
    schedule = _noted(note, "by hand")
    document = to_document(schedule)
    assert document["groups"][0]["note"] == document["groups"][0]["placements"][0]["note"] == "by hand"
    assert from_document(document) == schedule
    assert "note" not in to_document(_noted(note, ""))["groups"][0]
    assert _noted(note, "") == PLAIN


def test_without_it_its_key_is_unknown() -> None:
    with pytest.raises(DocumentError, match="no such key"):
        from_document({**to_document(PLAIN), "groups": [{"output": "blur_y", "note": "by hand"}]})


def test_its_difference_is_told(note: Note) -> None:
    assert differences(_noted(note, "by hand"), PLAIN) == ("blur_y noted 'by hand'", "blur_x noted 'by hand'")


def test_it_is_in_the_loop_nest(note: Note) -> None:
    text = to_text(rewrite(blur(), _noted(note, "by hand")))
    assert "blur_y(x, y) = ...  # by hand\n" in text
    assert "allocate blur_x, folded to its window  # by hand\n" in text


def test_its_rule_is_held(note: Note) -> None:
    check(rewrite(blur(), _noted(note, "by hand")))
    with pytest.raises(IllegalSchedule, match="stage 'blur_y' in the group of 'blur_y': its note has several lines"):
        check(rewrite(blur(), _noted(note, "by\nhand")))


def test_it_can_be_fixed(note: Note) -> None:
    document = {"blur_y": {"note": "mine"}, "blur_x": {"note": "too", "compute": "y.inner"}}
    fixed = load(document, blur())
    assert fixed_document(fixed) == document
    assert fixed.admits(PLAIN) == "'blur_y' has note , not mine"
    found = autoschedule(blur(), machine(), SearchOptions("default", fixed=fixed)).schedule
    assert fixed.admits(found) is None
    assert note.of(found.groups[0]) == "mine"
    made = compile_pipeline(blur(), machine(), Options(fixed=fixed))
    assert "; mine\n" in made.loopnest


def test_lowering_lets_it_pass(note: Note) -> None:
    plain, noted = (generate(blur(), s, machine()) for s in (PLAIN, _noted(note, "by hand")))
    assert noted == plain


def test_keys_are_taken_once(note: Note) -> None:
    for taken in ("note", "tiles", "output"):
        other = copy(note)
        other.key = taken
        with pytest.raises(ValueError, match=f"'{taken}' already"):
            register(other)
