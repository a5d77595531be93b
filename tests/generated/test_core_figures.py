"""Programs for cores that are unlike any: figures decide how code is made, and never what it computes."""

from __future__ import annotations

import pytest
from support.builds import HOST_BYTES
from support.calls import call
from support.machines import here
from support.native import build
from support.shipped import assert_right, problem
from support.threads import threads

from tilesmith.platforms.core import Balance, Core, Instructions, Latencies, Pages, Prefetch, Registers
from tilesmith.scheduler.compiler import compile_pipeline

SMALL = Core(
    registers=Registers(working=1, held=1, terms=1, sums=1, extremes=1, per_value=1),
    instructions=Instructions(
        table_lookup_bytes=0, pairwise_products=False, narrowest_bytes=8, permuted_bytes=8, gathered_bytes=8
    ),
    latency_cycles=Latencies(load=100.0, float_sum=50.0),
    prefetch=Prefetch(rows=1, first_level_rows=1, near_bytes=64, again_bytes=1, furthest_bytes=128, request_loads=0.0),
    pages=Pages(page_bytes=512, tlb=()),
    balance=Balance(load_operations=0.0, store_operations=100.0, memory_operations_per_byte=0.0, fork_operations=0.0),
)
LARGE = Core(
    registers=Registers(held=64, terms=4096, sums=16, extremes=16),
    instructions=Instructions(
        table_lookup_bytes=64 if HOST_BYTES >= 64 else 32,
        pairwise_products=True,
        streamed_bytes=64,
        permuted_bytes=1,
        gathered_bytes=1,
    ),
    latency_cycles=Latencies(gather=1.0, quotient=1.0),
    prefetch=Prefetch(rows=4096, first_level_rows=4096, near_bytes=1 << 20, furthest_bytes=1 << 20),
    balance=Balance(load_operations=50.0, store_operations=0.0, memory_operations_per_byte=1e3, fork_operations=1e9),
)


@pytest.mark.slow
@pytest.mark.parametrize("core", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("name", ["camera_pipe", "harris", "max_filter", "nl_means", "unsharp"])
def test_what_is_computed_is_the_same_on_any_core(name: str, core: Core) -> None:
    p = problem(name, "shifted")
    source = compile_pipeline(p.pipeline, here().model_copy(update={"core": core})).source
    with threads(2):
        status, got = call(build(source), source, p.pipeline, p.inputs, {}, p.regions)
    assert status == 0
    assert_right(got, p.expected, p.within)
