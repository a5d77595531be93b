"""Memo: what was worked out of something frozen, kept with it, for as long as it lives."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Protocol, TypeVar


class Memo(dict[Callable[..., object], object]):
    """Results by the functions that found them. Copies and pickles of their owner begin with none. `of_form` is the
    memo of another owner that is of the same form, where there is one."""

    of_form: Memo | None = None

    def __reduce__(self) -> tuple[type[Memo], tuple[()]]:
        return Memo, ()


class Remembering(Protocol):
    """Something frozen with a memo, a field that is not compared."""

    @property
    def memo(self) -> Memo: ...


Owner = TypeVar("Owner", bound=Remembering)
Fact = TypeVar("Fact")


def once(function: Callable[[Owner], Fact]) -> Callable[[Owner], Fact]:
    """`function`, worked out once for each owner. Equal owners have memos of their own: comparing or hashing a whole
    expression tree would cost more than most facts. A function that makes an empty dict makes a cache with keys."""

    @wraps(function)
    def remembered(owner: Owner) -> Fact:
        try:
            return owner.memo[function]  # type: ignore[return-value]  # what `function` gave
        except KeyError:
            found = owner.memo[function] = function(owner)
            return found

    return remembered


def once_a_form(function: Callable[[Owner], Fact]) -> Callable[[Owner], Fact]:
    """`function`, worked out once for all owners that are known to be of one form (see `stage_form`). Of these it is
    the first one's: it must follow from the form, or say whose it is."""

    @wraps(function)
    def remembered(owner: Owner) -> Fact:
        memo = owner.memo
        shared = memo if memo.of_form is None else memo.of_form
        try:
            return shared[function]  # type: ignore[return-value]  # what `function` gave
        except KeyError:
            found = shared[function] = function(owner)
            return found

    return remembered
