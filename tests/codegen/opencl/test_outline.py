"""Kernel outlining: the steps of the host, and the kernels that it starts."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.codegen.opencl.outline import HostLoop, Kernel, outlined
from tilesmith.scheduler.errors import InternalError
from tilesmith.scheduler.ir.loop.parser import parse_program
from tilesmith.scheduler.ir.loop.printer import print_body

HEAD = """\
program "p" {
  doc ""
  method "default"
  machine "x86_64" line_bytes 64 register_bytes 32 carried_vectors 12 permuted_bytes 4 crowded_bytes 2048
  argument "g" as g_0 : f32 dims(x) storage(x) output made_by "g"
  buffer g_0_data "g" component 0 : f32 dims(x) unit 0 argument origin(g_0.origin.x) stride(1) ring(none) extent(9)
  derivation {
  }
  bounds {
  }
  body {
"""


def steps(body: str):
    return outlined(parse_program(HEAD + body + "  }\n}\n").body)


def text(kernel: Kernel) -> list[str]:
    return print_body(tuple(kernel.body)).splitlines()


STORE = "store %v to @g_0_data at g_0_data[%s]"


def test_a_parallel_loop_is_a_kernel() -> None:
    _, kernel = steps("""
    let n = g.min.x + g.extent.x - 1
    for x = g.min.x to n step 1 parallel {
      store 1:f32 to @g_0_data at g_0_data[x]
    }
""")
    assert isinstance(kernel, Kernel)
    assert kernel.shared is kernel.body[-1]
    assert kernel.name == "g_0"


def test_values_are_computed_in_each_kernel_that_needs_them() -> None:
    first, second = steps("""
    %a = broadcast 2:f32 : f32x4
    %b = %a * %a : f32x4
    for x = g.min.x to g.min.x + 7 step 4 parallel {
      store %b to @g_0_data at g_0_data[x]
    }
    for y = g.min.x to g.min.x + 7 step 4 parallel {
      store %a to @g_0_data at g_0_data[y]
    }
""")
    assert text(first)[:2] == ["%a = broadcast 2:f32 : f32x4", "%b = %a * %a : f32x4"]
    assert text(second)[:2] == ["%a = broadcast 2:f32 : f32x4", "for y = g.min.x to g.min.x + 7 step 4 parallel {"]


def test_what_was_accumulated_goes_through_memory() -> None:
    _, first, second, _ = steps("""
    %sum = accumulator 0:f32 : f32
    for i = 0 to 9 step 1 {
      %t = load g_0_data[i] : f32
      %s = %sum + %t : f32
      assign %sum = %s
    }
    for x = g.min.x to g.min.x + 7 step 1 parallel {
      store %sum to @g_0_data at g_0_data[x]
    }
""")
    assert first.shared is None
    assert text(first)[-1] == "store %sum to @sum_kept at sum_kept[0]"
    assert text(second)[0] == "%sum = load sum_kept[0] : f32"


def test_the_host_runs_loops_around_parallel_ones() -> None:
    (loop,) = steps("""
    for t = 0 to 3 step 1 {
      for x = g.min.x to g.min.x + 7 step 1 parallel {
        store 1:f32 to @g_0_data at g_0_data[x]
      }
    }
""")
    assert isinstance(loop, HostLoop)
    (kernel,) = loop.body
    assert kernel.shared is not None


def test_one_work_group_runs_what_data_decides_on() -> None:
    (kernel,) = steps("""
    %c = load g_0_data[0] : f32
    %m = %c > 1:f32 : b8
    if () and %m {
      for x = g.min.x to g.min.x + 7 step 1 parallel {
        store 1:f32 to @g_0_data at g_0_data[x]
      }
    }
""")
    assert kernel.shared is None


def test_an_index_that_changes_stays_in_one_kernel() -> None:
    with pytest.raises(InternalError, match="'n' changes in one kernel"):
        steps("""
    mutable n = 0
    for i = 0 to 9 step 1 {
      set n = n + 1
      store 1:f32 to @g_0_data at g_0_data[n]
    }
    for x = g.min.x to g.min.x + 7 step 1 parallel {
      store 1:f32 to @g_0_data at g_0_data[n + x]
    }
""")
