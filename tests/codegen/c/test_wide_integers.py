"""Integers of 128 bits, on architectures whose compilers have none: what needs them is refused by name."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.codegen.c.wide_integers import check_exact, for_architecture
from tilesmith.scheduler.errors import NoBackend
from tilesmith.scheduler.ir.pipeline.types import ScalarType

I64, U64, F64 = (ScalarType(kind, 64) for kind in ("int", "uint", "float"))
I32, U32 = (ScalarType(kind, 32) for kind in ("int", "uint"))


@pytest.mark.parametrize(
    ("function", "types"),
    [("sat_add", (I64, I64)), ("mul_shift_right", (U32, U32, U32)), ("saturate", (U64,)), ("halving_add", (U64, U64))],
)
def test_what_needs_128_bits_is_refused_where_there_are_none(function: str, types: tuple[ScalarType, ...]) -> None:
    with pytest.raises(NoBackend, match=rf"{function} of u?int\d\d.*integers of 128 bits"):
        check_exact("arm", function, types)
    check_exact("x86_64", function, types)
    check_exact("aarch64", function, types)


@pytest.mark.parametrize(
    ("function", "types"), [("sat_add", (I32, I32)), ("mul_shift_right", (I32, I32, I32)), ("sat_add", (F64, F64))]
)
def test_what_fits_64_bits_is_not(function: str, types: tuple[ScalarType, ...]) -> None:
    check_exact("arm", function, types)


def test_code_has_the_integers_of_the_architecture() -> None:
    assert for_architecture("(__int128)a + b", "x86_64") == "(__int128)a + b"
    assert "__int128" not in for_architecture("(__int128)a + b", "arm")
