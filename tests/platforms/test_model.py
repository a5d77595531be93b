"""Descriptions of machines: what is accepted, what is refused and with which words."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilesmith.platforms import CpuPlatform, PlatformError, catalog_names, get, load, load_text, parse, to_document
from tilesmith.platforms.core import ORDINARY, Core, Pages, Registers
from tilesmith.platforms.toolchain import FLAGS


@pytest.fixture
def document() -> dict[str, Any]:
    return copy.deepcopy(to_document(get("i7-6700")))


def problems(thing: object) -> list[tuple[str, str]]:
    with pytest.raises(PlatformError) as caught:
        load(thing)
    return [(p.code, p.pointer) for p in caught.value.problems]


def test_a_document_round_trips(document: dict[str, Any]) -> None:
    platform = parse(document)
    assert parse(json.loads(json.dumps(to_document(platform)))) == platform
    assert hash(parse(document)) == hash(platform)
    assert load(platform) is platform


def test_a_platform_is_frozen(document: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="frozen"):
        parse(document).threads = 3  # type: ignore[misc]


@pytest.mark.parametrize("name", ["i7-6700", "i7-5930K", "cortex-a15"])
def test_the_figures_of_table_2(name: str) -> None:
    expected = {"i7-6700": (8, 256, 8), "i7-5930K": (12, 256, 12), "cortex-a15": (2, 512, 4)}[name]
    p = get(name)
    assert (p.llc_bytes / 2**20, p.l2_bytes / 2**10, p.threads) == expected


def test_derived_figures() -> None:
    p = get("epyc-9655")
    assert (p.l1_bytes, p.l2_bytes, p.llc_bytes, p.line_bytes, p.cores) == (48 << 10, 1 << 20, 32 << 20, 64, 96)


def test_a_platform_with_one_cache(document: dict[str, Any]) -> None:
    document["caches"] = document["caches"][:1]
    document["sources"] = {}
    p = parse(document)
    assert p.l1_bytes == p.l2_bytes == p.llc_bytes == 32768


def test_figures_of_a_core_that_are_not_given_are_those_of_an_ordinary_one(document: dict[str, Any]) -> None:
    document["core"] = {"registers": {"held": 20}, "pages": {"page_bytes": 16384, "tlb": []}}
    document["sources"] = {"core": "estimate", "core.pages": "a manual"}
    p = parse(document)
    assert p.core == Core(registers=Registers(held=20), pages=Pages(page_bytes=16384, tlb=()))
    assert p.core.latency_cycles == ORDINARY.latency_cycles
    assert (p.source_of("core.pages"), p.source_of("core.registers")) == ("a manual", "estimate")
    assert parse(to_document(p)) == p


def test_vectors_follow_from_registers_and_instructions(document: dict[str, Any]) -> None:
    def found(changes: dict[str, Any]) -> tuple[int, int, int, bool]:
        unit = parse(document | changes).vector_unit
        return unit.widest_bytes, unit.carried_vectors, unit.table_lookup_bytes, unit.pairwise_products

    wide = {"vector_bytes": 64, "vector_registers": 32}
    given = {"registers": {"working": 20, "per_value": 2}, "instructions": {"table_lookup_bytes": 0}}
    assert found({}) == (128, 4, 32, True)
    assert found(wide) == (256, 12, 64, True)
    assert found(wide | {"core": given}) == (128, 6, 0, True)
    assert found({"vector_bytes": 16, "core": {"instructions": {"pairwise_products": True}}}) == (64, 4, 0, True)
    assert found({"vector_bytes": 16}) == (64, 4, 0, True)
    assert found({"vector_bytes": 16, "triple": "aarch64-linux-gnu"}) == (64, 4, 0, False)
    assert found({"vector_bytes": 0, "vector_registers": 0}) == (64, 0, 0, False)


def test_every_problem_is_reported_at_once(document: dict[str, Any]) -> None:
    document.update(threads=0, vector_byte=32, load_weight=float("inf"), prefetcher="yes")
    document["caches"][1]["line_bytes"] = 65
    del document["triple"]
    assert sorted(problems(document)) == [
        ("bad_value", "/load_weight"),
        ("bad_value", "/prefetcher"),
        ("bad_value", "/threads"),
        ("missing_key", "/triple"),
        ("not_a_power_of_two", "/caches/1/line_bytes"),
        ("unknown_key", "/vector_byte"),
    ]


def test_an_unknown_key_has_a_hint(document: dict[str, Any]) -> None:
    document["caches"][0]["size_byte"] = 3
    with pytest.raises(PlatformError) as caught:
        parse(document)
    assert [(p.pointer, p.hint) for p in caught.value.problems] == [
        ("/caches/0/size_byte", "did you mean 'size_bytes'?")
    ]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"threads": 4097}, ("bad_value", "/threads")),
        ({"threads": "8"}, ("bad_value", "/threads")),
        ({"threads": True}, ("bad_value", "/threads")),
        ({"threads": 8.5}, ("bad_value", "/threads")),
        ({"vector_bytes": 4}, ("not_a_power_of_two", "/vector_bytes")),
        ({"vector_bytes": 48}, ("not_a_power_of_two", "/vector_bytes")),
        ({"vector_bytes": 512}, ("bad_value", "/vector_bytes")),
        ({"clock_ghz": float("nan")}, ("bad_value", "/clock_ghz")),
        ({"clock_ghz": 0}, ("bad_value", "/clock_ghz")),
        ({"name": "a/../b"}, ("bad_value", "/name")),
        ({"name": "a\n"}, ("bad_value", "/name")),
        ({"triple": "x86_64; rm -rf"}, ("bad_value", "/triple")),
        ({"caches": []}, ("bad_value", "/caches")),
        ({"core": {"registers": {"held": 0}}}, ("bad_value", "/core/registers/held")),
        ({"core": {"registers": {"extremes": 3}}}, ("bad_value", "/core/registers/extremes")),
        ({"core": {"latency_cycles": {"load": float("inf")}}}, ("bad_value", "/core/latency_cycles/load")),
        ({"core": {"pages": {"page_bytes": 5000}}}, ("not_a_power_of_two", "/core/pages/page_bytes")),
        ({"core": {"balances": {}}}, ("unknown_key", "/core/balances")),
        ({"sources": {"core.page": "x"}}, ("unknown_figure", "/sources/core.page")),
        ({"kind": "gpu"}, ("unknown_kind", "/kind")),
        ({"kind": None}, ("missing_key", "/kind")),
        ({"kind": ["cpu"]}, ("unknown_kind", "/kind")),
        ({"sources": {"thread": "x"}}, ("unknown_figure", "/sources/thread")),
        ({"sources": {"a/b~c": "x"}}, ("unknown_figure", "/sources/a~1b~0c")),
    ],
)
def test_refused_values(document: dict[str, Any], change: dict[str, Any], problem: tuple[str, str]) -> None:
    assert problems(document | change) == [problem]


def test_caches_must_be_ordered_and_grow(document: dict[str, Any]) -> None:
    l1, l2, l3 = document["caches"]
    document["sources"] = {}
    assert problems(document | {"caches": [l2, l1, l3]}) == [("caches_out_of_order", "/caches/1")]
    assert problems(document | {"caches": [l1, l2 | {"size_bytes": 32768}]}) == [("caches_not_growing", "/caches/1")]
    assert problems(document | {"caches": [l1, l2, l3 | {"shared_by_threads": 1}]}) == [
        ("caches_not_growing", "/caches/2")
    ]
    assert problems(document | {"caches": [l1 | {"ways": 1024}]}) == [("cache_smaller_than_a_set", "/caches/0")]


@pytest.mark.parametrize(
    "flag",
    [
        "-fplugin=/tmp/x.so", "-o/etc/passwd", "@/etc/passwd", "-include/etc/shadow", "-Wl,-rpath,/x", "-B/tmp",
        "-specs=/tmp/x", "-ffast-math", "-Ofast", "-march=native -o x", "-march=native\n", "-march=../x", "-mllvm", "",
        "-I/", "-DX=1", "-fdump-tree-all", "--sysroot=/", "-save-temps", "-fsanitize=address", "-O3\x00",
        "-wrapper", "-x",
    ],
)  # fmt: skip
def test_flags_that_could_do_harm_are_refused(document: dict[str, Any], flag: str) -> None:
    document["compiler"]["flags"] = ["-O3", flag]
    assert problems(document) == [("flag_not_allowed", "/compiler/flags/1")]


@pytest.mark.parametrize(
    "command",
    ["/usr/bin/gcc", "./gcc", "gcc -v", "rm", "sh", "gcc;ls", "gcc\n", "python3", "gcc-", "aarch64-linux-gnu-ld"],
)
def test_commands_that_are_no_compilers_are_refused(document: dict[str, Any], command: str) -> None:
    document["compiler"]["command"] = command
    assert problems(document) == [("compiler_not_allowed", "/compiler/command")]


@pytest.mark.parametrize(
    "prefix",
    [
        ["sh", "-c", "ls"],
        ["qemu-aarch64", "-L", "/etc"],
        ["qemu-aarch64", "-L"],
        ["qemu-aarch64", "-g", "1234"],
        ["env"],
    ],
)
def test_run_prefixes_that_are_no_emulators_are_refused(document: dict[str, Any], prefix: list[str]) -> None:
    document["compiler"]["run_prefix"] = prefix
    assert problems(document) == [("prefix_not_allowed", "/compiler/run_prefix")]


@given(st.text(max_size=40))
def test_no_allowed_flag_has_a_path_or_a_space(text: str) -> None:
    if FLAGS.fullmatch("-m" + text) or FLAGS.fullmatch("-f" + text):
        assert re.fullmatch(r"[a-z0-9.+=_-]+", text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "bad_syntax"),
        ("a: &a [1]\nb: *a", "bad_syntax"),
        ("!!python/object/apply:os.system [ls]", "bad_syntax"),
        (b"\xff\xfe\x00", "bad_syntax"),
        ("[" * 20000 + "]" * 20000, "limit_exceeded"),
        ("[" * 20000, "limit_exceeded"),
        ("- " * 20000, "limit_exceeded"),
        ("[" * 60, "bad_syntax"),
        ("x" * 70000, "limit_exceeded"),
        ("[1, 2]", "bad_type"),
        ("", "bad_type"),
        ("2001-99-99", "bad_syntax"),
    ],
)
def test_text_that_is_no_description(text: str | bytes, code: str) -> None:
    with pytest.raises(PlatformError) as caught:
        load_text(text)
    assert [p.code for p in caught.value.problems] == [code]


def test_json_and_yaml_text(document: dict[str, Any]) -> None:
    assert load_text(json.dumps(document)) == get("i7-6700")


def test_an_unknown_name_has_a_hint() -> None:
    with pytest.raises(PlatformError) as caught:
        load("i7-670")
    assert caught.value.problems[0].code == "unknown_platform"
    assert caught.value.problems[0].hint == "did you mean 'i7-6700'?"


@pytest.mark.parametrize("name", ["../catalog/i7-6700", "i7-6700.yaml", "", "x" * 1000])
def test_names_are_no_paths(name: str) -> None:
    assert problems(name) == [("unknown_platform", "")]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from(sorted(CpuPlatform.model_fields)), json_values))
def test_any_document_is_a_platform_or_a_platform_error(changes: dict[str, Any]) -> None:
    try:
        platform = parse(to_document(get("i7-6700")) | changes)
    except PlatformError:
        return
    assert parse(to_document(platform)) == platform


def test_descriptions_do_not_depend_on_the_hash_seed() -> None:
    script = (
        "import json, tilesmith.platforms as p; print(json.dumps([p.to_document(p.get(n)) for n in p.catalog_names()]))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1
    assert len(json.loads(outputs.pop())) == len(catalog_names())
