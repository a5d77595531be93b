"""Memos: a fact is worked out once for each owner, and lives with it."""

import gc
import pickle
import weakref
from copy import deepcopy
from dataclasses import dataclass, field, replace

from tilesmith.scheduler.ir.memo import Memo, once, once_a_form

CALLS: list[int] = []


@dataclass(frozen=True)
class Owner:
    number: int
    memo: Memo = field(default_factory=Memo, init=False, repr=False, compare=False)


@once
def doubled(owner: Owner) -> int:
    """Twice its number."""
    CALLS.append(owner.number)
    return 2 * owner.number


@once_a_form
def tripled(owner: Owner) -> tuple[int, int]:
    """Its number, and three times that."""
    CALLS.append(owner.number)
    return owner.number, 3 * owner.number


@once
def _itself(owner: Owner) -> list[Owner]:
    return [owner]


def test_a_fact_is_found_once_for_each_owner() -> None:
    CALLS.clear()
    owners = [Owner(n) for n in range(3000)]
    assert [doubled(o) for o in owners] == [doubled(o) for o in owners] == [2 * n for n in range(3000)]
    assert len(CALLS) == 3000
    assert doubled.__doc__ == "Twice its number."


def test_owners_are_equal_whatever_is_remembered_and_copies_begin_anew() -> None:
    one = Owner(1)
    doubled(one)
    for other in (Owner(1), replace(one), deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert other == one
        assert not other.memo
    assert repr(one) == "Owner(number=1)"


def test_facts_die_with_their_owner() -> None:
    owner = Owner(1)
    assert _itself(owner) == [owner]
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


def test_a_fact_of_a_form_is_that_of_its_first_owner() -> None:
    CALLS.clear()
    first, second, other = Owner(1), Owner(2), Owner(3)
    second.memo.of_form = first.memo
    assert [tripled(o) for o in (second, first, other)] == [(2, 6), (2, 6), (3, 9)]
    assert CALLS == [2, 3]


def test_copies_are_of_no_known_form() -> None:
    first, second = Owner(1), Owner(2)
    second.memo.of_form = first.memo
    for other in (replace(second), deepcopy(second), pickle.loads(pickle.dumps(second))):
        assert other.memo.of_form is None
