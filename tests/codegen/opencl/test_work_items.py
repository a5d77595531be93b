"""Rows that work-items share: which loops of a kernel they are, and what keeps a kernel to one work-item."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.codegen.opencl.outline import Kernel, outlined
from tilesmith.scheduler.codegen.opencl.work_items import Shared, shared
from tilesmith.scheduler.ir.loop.parser import parse_program

HEAD = """\
program "p" {
  doc ""
  method "default"
  machine "x86_64" line_bytes 64 register_bytes 0 carried_vectors 12 permuted_bytes 4 crowded_bytes 2048
  argument "g" as g_0 : f32 dims(x, y) storage(x, y) output made_by "g"
  buffer g_0_data "g" component 0 : f32 dims(x, y) unit 0 argument origin(0, 0) stride(1, 64) ring(none, none) extent(64, 9)
  buffer h_0 "h" component 0 : f32 dims(x, y) unit 0 call origin(0, 0) stride(1, 64) ring(none, none) extent(64, 9)
  derivation {
  }
  bounds {
  }
  body {
    for y = 0 to 8 step 1 parallel {
"""  # noqa: E501
ROWS = """
      row g_1 = @g_0_data + mul(y, 64)
      row h_1 = @h_0 + mul(y, 64)
      row h_2 = @h_0 + mul(y, 64) + 64
"""


def of(body: str) -> Shared:
    (kernel,) = outlined(parse_program(HEAD + ROWS + body + "    }\n  }\n}\n").body)
    assert isinstance(kernel, Kernel)
    return shared(kernel)


POINTWISE = """
      for x = 0 to 63 step 1 {
        %a = load h_1[x + 1] : f32
        store %a to @g_0_data at g_1[x]
      }
"""
STAGED = """
      for x = 0 to 63 step 1 {
        store 1.0:f32 to @h_0 at h_1[x]
      }
"""


def test_a_row_whose_points_are_independent_is_shared_without_a_barrier() -> None:
    found = of(POINTWISE)
    assert [loop.var for loop in found.rows] == ["x"]
    assert not found.barriers


def test_work_items_wait_for_what_others_store() -> None:
    found = of(STAGED + POINTWISE)
    assert len(found.rows) == 2
    assert found.barriers


def test_work_items_wait_where_another_comes_to_an_element_next() -> None:
    found = of("""
      for x = 0 to 31 step 1 {
        for r = 0 to 3 step 1 {
          store 1.0:f32 to @g_0_data at g_1[x + r]
        }
      }
""")
    assert [loop.var for loop in found.rows] == ["r"]
    assert found.barriers


def test_a_sum_of_each_point_is_its_own() -> None:
    found = of("""
      for x = 0 to 63 step 1 {
        %s = accumulator 0.0:f32 : f32
        for r = 0 to 2 step 1 {
          %a = load h_1[x + r] : f32
          %b = %s + %a : f32
          assign %s = %b
        }
        store %s to @g_0_data at g_1[x]
      }
""")
    assert [loop.var for loop in found.rows] == ["x"]


def test_an_element_that_is_updated_in_place_is_its_own() -> None:
    assert of("""
      for x = 0 to 63 step 1 {
        %a = load h_1[x] : f32
        %b = %a * 2.0:f32 : f32
        store %b to @h_0 at h_1[x]
      }
""").rows


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (  # a scan
            """
      for x = 1 to 63 step 1 {
        %a = load h_1[x - 1] : f32
        store %a to @h_0 at h_1[x]
      }
""",
            "what is stored to 'h'",
        ),
        (  # a window that rotates in registers
            """
      %before = accumulator 0.0:f32 : f32
      for x = 0 to 63 step 1 {
        %a = load h_1[x] : f32
        %b = %a + %before : f32
        store %b to @g_0_data at g_1[x]
        assign %before = %a
      }
""",
            "what is stored to 'g'",
        ),
        (  # a place that two iterations share
            """
      for x = 0 to 31 step 1 {
        store 1.0:f32 to @g_0_data at g_1[x]
        store 2.0:f32 to @g_0_data at g_1[x + 1]
      }
""",
            "what is stored to 'g'",
        ),
        (  # points that are not neighbours
            """
      for x = 0 to 31 step 1 {
        store 1.0:f32 to @g_0_data at g_1[mul(x, 2)]
      }
""",
            "what is stored to 'g'",
        ),
        (  # a histogram
            """
      for x = 0 to 31 step 1 {
        %a = load h_1[x] : f32
        %n = cast %a : i32
        %at = to_index %n : i32
        store 1.0:f32 to @g_0_data at g_1[at]
      }
""",
            "what is stored to 'g'",
        ),
        ("      store 1.0:f32 to @g_0_data at g_1[0]\n", "what is stored to 'g'"),
        (STAGED + "      %a = load h_1[3] : f32\n" + POINTWISE.replace("%a", "%b"), "'h_0' is read between"),
    ],
    ids=["scan", "rotating", "same place", "stride", "histogram", "scalar", "read between"],
)
def test_what_depends_on_other_points_is_of_one_work_item(body: str, why: str) -> None:
    found = of(body)
    assert not found.rows
    assert why in found.alone
