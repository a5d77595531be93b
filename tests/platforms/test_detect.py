"""The host, from trees like those that other machines and containers show."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tilesmith.platforms import PlatformError, parse, to_document
from tilesmith.platforms.core import ORDINARY
from tilesmith.platforms.cpu import isa as isas
from tilesmith.platforms.cpu.detect import (
    cpu_quota,
    describe,
    find_compiler,
    host,
    parse_cpu_list,
    parse_cpuinfo,
    parse_size,
    read_caches,
    usable_threads,
    vectors,
    with_tables,
)

ZEN = """processor\t: 0
model name\t: AMD EPYC 9R45
cpu MHz\t\t: 2596.122
flags\t\t: fpu sse sse2 fma avx avx2 avx512f avx512dq avx512bw avx512vl

processor\t: 1
model name\t: something else
"""
NEOVERSE = """processor\t: 0
BogoMIPS\t: 2000.00
Features\t: fp asimd evtstrm aes sve sve2
CPU implementer\t: 0x41
CPU part\t: 0xd4f
"""
CORTEX_A7 = "processor\t: 0\nmodel name\t: ARMv7 Processor rev 3 (v7l)\nFeatures\t: half thumb neon vfpv4\n"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def cache_files(cpu: int, *caches: tuple[int, str, str, int, str]) -> dict[str, str]:
    files = {}
    for index, (level, kind, size, ways, shared) in enumerate(caches):
        folder = f"sys/devices/system/cpu/cpu{cpu}/cache/index{index}/"
        files[folder + "level"] = f"{level}\n"
        files[folder + "type"] = kind + "\n"
        files[folder + "size"] = size + "\n"
        files[folder + "ways_of_associativity"] = f"{ways}\n"
        files[folder + "coherency_line_size"] = "64\n"
        files[folder + "shared_cpu_list"] = shared + "\n"
    return files


SERVER = cache_files(
    0,
    (1, "Data", "48K", 12, "0,4"),
    (1, "Instruction", "32K", 8, "0,4"),
    (2, "Unified", "1024K", 16, "0,4"),
    (3, "Unified", "32768K", 16, "0-7"),
)


def sizes(root: Path, affinity: set[int]) -> list[tuple[int, int, int, int]]:
    return [(c.level, c.size_bytes, c.ways, c.shared_by_threads) for c in read_caches(root, frozenset(affinity))]


def test_a_server(tmp_path: Path) -> None:
    files = {"proc/cpuinfo": ZEN, "sys/devices/system/cpu/cpu0/topology/thread_siblings_list": "0,4\n"}
    p = describe(write(tmp_path, files | SERVER), frozenset(range(8)), "x86_64", {"gcc": "/usr/bin/gcc"}.get)
    assert (p.name, p.description, p.triple) == ("host", "AMD EPYC 9R45", "x86_64-linux-gnu")
    assert (p.threads, p.threads_per_core, p.clock_ghz) == (8, 2, 2.596)
    assert (p.vector_bytes, p.vector_registers) == (64, 32)
    assert (p.l1_bytes, p.l2_bytes, p.llc_bytes) == (48 << 10, 1 << 20, 32 << 20)
    assert [c.shared_by_threads for c in p.caches] == [2, 2, 8]
    assert p.compiler.flags == ("-O3", "-march=native", "-mprefer-vector-width=512")
    assert [f for f in p.figures() if not p.source_of(f)] == []
    assert parse(to_document(p)) == p


def test_no_more_of_a_third_level_counts_than_threads_may_have(tmp_path: Path) -> None:
    """A virtual machine is told of caches that others use as well."""
    told = ((1, "Data", "48K", 12, "0"), (2, "Unified", "2048K", 16, "0"), (3, "Unified", "260M", 20, "0-1"))
    files = cache_files(0, *told)
    assert sizes(write(tmp_path, files), {0, 1})[-1] == (3, 32 << 20, 20, 2)
    assert sizes(tmp_path, {0})[-1] == (3, 16 << 20, 20, 1)


def test_a_container_that_may_use_some_of_a_server(tmp_path: Path) -> None:
    files = {"proc/cpuinfo": ZEN, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "250000 100000\n"}
    p = describe(write(tmp_path, files | SERVER), frozenset({0, 1, 2, 3}), "x86_64", {}.get)
    assert p.threads == 3
    assert p.source_of("threads") == "the operating system (CPU quota of the control group)"
    assert [c.shared_by_threads for c in p.caches] == [1, 1, 4]


def test_an_arm_server_without_cache_sizes(tmp_path: Path) -> None:
    p = describe(write(tmp_path, {"proc/cpuinfo": NEOVERSE}), frozenset(range(4)), "aarch64", {"clang": "/x"}.get)
    assert p.description == "ARM implementer 0x41 part 0xd4f"
    assert (p.triple, p.vector_bytes, p.vector_registers) == ("aarch64-linux-gnu", 16, 32)
    assert [c.level for c in p.caches] == [1, 2, 3]
    assert (p.source_of("l2.size_bytes") or "").startswith("estimate")
    assert (p.compiler.command, p.compiler.flags) == ("clang", ("-O3", "-mcpu=native"))


def test_nothing_at_all(tmp_path: Path) -> None:
    p = describe(tmp_path, frozenset(), "riscv64", {}.get)
    assert (p.threads, p.vector_bytes, p.triple, p.compiler.command) == (1, 0, "riscv64-linux-gnu", "gcc")
    assert parse(to_document(p)) == p


def test_the_host_itself() -> None:
    assert host() is host()
    assert parse(to_document(host())) == host()


@pytest.mark.parametrize(
    ("features", "machine", "expected"),
    [
        ("avx512f avx512bw avx512dq avx512vl avx2 fma", "x86_64", (64, 32)),
        ("avx512f avx2 fma", "x86_64", (32, 16)),  # Knights Landing: no byte and word operations
        ("avx2 fma", "x86_64", (32, 16)),
        ("avx sse2", "x86_64", (16, 16)),
        ("", "x86_64", (16, 16)),
        ("fp asimd sve", "aarch64", (16, 32)),
        ("neon", "armv7l", (16, 16)),
        ("thumb", "armv6l", (0, 0)),
    ],
)
def test_vectors(features: str, machine: str, expected: tuple[int, int]) -> None:
    assert vectors(frozenset(features.split()), machine) == expected


@pytest.mark.parametrize(
    ("features", "vector_bytes", "entries"),
    [({"avx512bw"}, 64, 16), ({"avx512bw", "avx512vbmi"}, 64, None), ({"avx2"}, 32, None)],
)
def test_long_tables_need_instructions_of_their_own(features: set[str], vector_bytes: int, entries: int | None) -> None:
    assert with_tables(ORDINARY, features, vector_bytes).instructions.table_entries == entries


ALL = " ".join(isas.ISAS["avx512"].features)


@pytest.mark.parametrize(("isa", "vectors"), [("avx512", (64, 32)), ("avx2", (32, 16)), ("sse4.2", (16, 16))])
def test_a_host_of_a_narrower_instruction_set(tmp_path: Path, isa: str, vectors: tuple[int, int]) -> None:
    write(tmp_path, {"proc/cpuinfo": f"model name\t: Zen\nflags\t\t: fpu {ALL}\n"})
    p = describe(tmp_path, frozenset({0}), "x86_64", {"clang": "/x"}.get, isa)
    assert (p.vector_bytes, p.vector_registers) == vectors
    assert p.compiler.command == "clang"
    assert not any("native" in flag for flag in p.compiler.flags if not flag.startswith("-mtune"))
    assert ("-mavx2" in p.compiler.flags) == (isa != "sse4.2")
    assert ("-mavx512vl" in p.compiler.flags) == (isa == "avx512")
    assert p.source_of("vector_bytes") == f"TILESMITH_HOST_ISA={isa}"
    assert parse(to_document(p)) == p


@pytest.mark.parametrize(
    ("isa", "machine", "said", "possible"),
    [
        ("avx512", "x86_64", "this processor has no avx512f, avx512cd", "avx2, sse4.2"),
        ("avx9", "x86_64", "there is no 'avx9'", "avx2, sse4.2"),
        ("avx2", "aarch64", "there is no 'avx2' on aarch64", "none"),
    ],
)
def test_an_instruction_set_that_the_processor_has_not(
    tmp_path: Path, isa: str, machine: str, said: str, possible: str
) -> None:
    flags = " ".join(isas.ISAS["avx2"].features)
    write(tmp_path, {"proc/cpuinfo": f"flags\t: {flags}\n"})
    with pytest.raises(PlatformError) as raised:
        describe(tmp_path, frozenset({0}), machine, {}.get, isa)
    (problem,) = raised.value.problems
    assert problem.message.startswith(f"TILESMITH_HOST_ISA={isa}: {said}")
    assert problem.hint is not None
    assert problem.hint.startswith(f"possible here: {possible};")


def test_the_environment_names_the_instruction_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(isas.VARIABLE, "avx9")
    with pytest.raises(PlatformError, match="TILESMITH_HOST_ISA=avx9"):
        host()
    monkeypatch.setenv(isas.VARIABLE, "")
    assert host().source_of("vector_bytes") != "TILESMITH_HOST_ISA="


def test_cpuinfo() -> None:
    assert parse_cpuinfo(ZEN).model == "AMD EPYC 9R45"
    assert parse_cpuinfo(ZEN).clock_ghz == pytest.approx(2.596122)
    assert "neon" in parse_cpuinfo(CORTEX_A7).features
    assert parse_cpuinfo("nonsense\n: :\ncpu MHz : fast").clock_ghz is None


@pytest.mark.parametrize(
    ("text", "size"),
    [("48K\n", 49152), ("1M", 1 << 20), ("512", 512), ("", None), ("-1K", None), ("K", None), ("1KB", None)],
)
def test_sizes(text: str, size: int | None) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0-3,8\n", {0, 1, 2, 3, 8}), ("5", {5}), ("", set()), ("a-b", set()), ("1-", set()), ("3-1", set())],
)
def test_cpu_lists(text: str, cpus: set[int]) -> None:
    assert parse_cpu_list(text) == cpus


def test_impossible_caches_are_left_out(tmp_path: Path) -> None:
    files = cache_files(
        3,
        (1, "Data", "32K", 0, "3"),
        (2, "Unified", "0K", 16, "3"),
        (3, "Unified", "16K", 16, "0-3"),
        (4, "Unified", "junk", 16, "0-3"),
    )
    assert sizes(write(tmp_path, files), {3}) == [(1, 32768, 8, 1)]


def test_no_first_level_is_no_answer(tmp_path: Path) -> None:
    assert sizes(write(tmp_path, cache_files(0, (2, "Unified", "1M", 16, "0"))), {0}) == []


def test_a_last_level_smaller_than_the_one_inside_is_left_out(tmp_path: Path) -> None:
    files = cache_files(0, (1, "Data", "64K", 4, "0"), (2, "Unified", "2M", 8, "0"), (3, "Unified", "1M", 16, "0-3"))
    assert [c[0] for c in sizes(write(tmp_path, files), {0, 1})] == [1, 2]


def test_caches_of_the_first_usable_cpu(tmp_path: Path) -> None:
    small, large = cache_files(0, (1, "Data", "32K", 4, "0")), cache_files(4, (1, "Data", "64K", 4, "4"))
    root = write(tmp_path, small | large)
    assert sizes(root, {4, 5})[0][1] == 65536
    assert sizes(root, {0, 4})[0][1] == 32768


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 0.5),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/cpu.max": "150000 100000",
                "sys/fs/cgroup/a/b/cpu.max": "400000 100000",
            },
            1.5,
        ),
        ({"proc/self/cgroup": "0::/not/here\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2.0),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/docker/x\n1:name=systemd:/\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "300000\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            3.0,
        ),
        (
            {
                "proc/self/cgroup": "1:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
        ({"proc/self/cgroup": "0::/../../..\n", "sys/fs/cgroup/cpu.max": "junk\n"}, None),
    ],
)
def test_quotas(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    assert cpu_quota(write(tmp_path, files)) == quota


def test_a_quota_is_rounded_up_and_never_more_than_the_affinity(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "10000 100000\n"}
    root = write(tmp_path, files)
    assert usable_threads(root, frozenset(range(4)))[0] == 1
    write(root, {"sys/fs/cgroup/cpu.max": "800000 100000\n"})
    assert usable_threads(root, frozenset(range(4)))[0] == 4


def test_gcc_comes_before_clang() -> None:
    both = {"gcc": "/usr/bin/gcc", "clang": "/usr/bin/clang"}
    assert find_compiler("x86_64", 32, both.get).command == "gcc"
    assert find_compiler("x86_64", 32, both.get).flags == ("-O3", "-march=native")


def test_pages_are_the_system_s(tmp_path: Path) -> None:
    told = describe(tmp_path, frozenset({0}), "aarch64", {}.get, page_bytes=65536)
    assert told.core.pages.page_bytes == 65536
    assert "the operating system" in (told.source_of("core.pages") or "")
    assert describe(tmp_path, frozenset({0}), "aarch64", {}.get).core == ORDINARY
    assert host().core.pages.page_bytes == os.sysconf("SC_PAGE_SIZE")
