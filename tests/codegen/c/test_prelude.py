"""The helpers of a C file: those that it uses, what these call before them, and no others."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from support.tools import require_tool

from tilesmith.scheduler.codegen.c.prelude import ABI, HELPERS, INCLUDES, KINDS_OF_FUNCTIONS, entry_name, helpers_used

SIZES = "enum { LINE = 64, CROWDED = 2048, BLOCKS = 4 };"
"""What a file says of itself ahead of them."""


def helpers_in(text: str) -> set[str]:
    return set(re.findall(r"\bts_\w+", text)) & set(HELPERS)


@pytest.mark.parametrize("name", HELPERS)
def test_a_helper_comes_after_all_that_it_calls(name: str) -> None:
    text = helpers_used({name})
    assert HELPERS[name] in text
    for called in helpers_in(HELPERS[name]) - {name}:
        if HELPERS[called] != HELPERS[name]:
            assert text.index(HELPERS[called]) < text.index(HELPERS[name])


@pytest.mark.parametrize("name", HELPERS)
def test_no_other_helper_comes_with_it(name: str) -> None:
    text = helpers_used({name})
    needed, waiting = set[str](), [name]
    while waiting:
        one = waiting.pop()
        if one not in needed:
            needed.add(one)
            waiting += helpers_in(HELPERS[one])
    assert text == "\n".join(dict.fromkeys(t for n, t in HELPERS.items() if t in {HELPERS[x] for x in needed}))


def test_code_that_calls_nothing_has_no_helpers() -> None:
    assert helpers_used({"main", "x", "int64_t"}) == ""


def test_each_part_of_all_helpers_is_there_once() -> None:
    text = helpers_used(set(HELPERS))
    assert all(text.count(part) == 1 for part in set(HELPERS.values()))


def test_all_of_them_compile_without_a_warning(tmp_path: Path) -> None:
    source = tmp_path / "all.c"
    source.write_text("\n".join((INCLUDES, ABI, SIZES, helpers_used(set(HELPERS)))))
    flags = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable", "-fsyntax-only")
    found = subprocess.run([require_tool("gcc"), *flags, source], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_functions_have_options_of_their_own_where_code_is_optimized(level: str, tmp_path: Path) -> None:
    """GCC optimizes each that has, whatever the level of the rest."""
    source = tmp_path / "kinds.c"
    source.write_text(
        "\n".join((KINDS_OF_FUNCTIONS, *(f"{kind} void f(void)" for kind in ("SELDOM", "ONCE", "SMALL"))))
    )
    flags = ("-E", "-P", level)
    made = subprocess.run([require_tool("gcc"), *flags, source], capture_output=True, text=True, check=True).stdout
    assert made.count("optimize(") == (0 if level == "-O0" else 3)


def test_entries_are_no_type() -> None:
    assert entry_name("harris") == "tilesmith_harris"
    assert entry_name("buffer") == "tilesmith_buffer_"
