"""The loop nest of a schedule as text, where there are updates and factors in it."""

from tilesmith.scheduler.codegen.loopnest import to_text
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.schedule.schedule import Factor, Group, Schedule, Tile, UpdateLoops, Vector
from tilesmith.scheduler.rewrites.passes import rewrite

PIPELINE = load(
    {
        "format": 1,
        "name": "columns",
        "inputs": [{"name": "input", "type": "int32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
        "stages": [
            {
                "name": "f",
                "dims": ["x", "y"],
                "value": "input(x, y)",
                "updates": [{"domain": {"r": [1, 99]}, "at": ["x", "r"], "value": "f(x, r - 1) + f(x, r)"}],
            },
            {"name": "total", "dims": [], "value": "sum(f(k, 9) for k in range(0, 64))"},
        ],
        "outputs": ["total"],
        "estimates": {"total": [], "input": [[0, 64], [0, 100]]},
    }
)

TEXT = """\
# columns, method hand

group f
  allocate and produce f:
    parallel for x.outer in tiles of 16:
      for y.inner:
        for x.inner in 16:
          f(x, y) = ...
      update f:
        for r:
          vectorised by 8 for x:
            f(...) = ...

group parts
  allocate and produce parts:
    for k.inner:
      parts(k) = ...

group total
  produce total:
    total() = ...
"""


def test_updates_and_factors() -> None:
    groups = (
        Group("f", ("x.inner", "y.inner", "x.outer"), (Tile("x", 16),), "x.outer", None, (), (),
              (UpdateLoops(("x", "r"), Vector("x", 8)),)),
        Group("parts", ("k.inner",), (), None, None, (), ()),
        Group("total", (), (), None, None, (), ()),
    )  # fmt: skip
    factors = (Factor("total", 0, "k", 8, "parts"),)
    assert to_text(rewrite(PIPELINE, Schedule("columns", "hand", groups, factors=factors))) == TEXT


def test_what_runs_block_by_block() -> None:
    """A sum along rows, another one back, then one from row to row."""
    along = {"domain": {"r": [1, 63]}, "at": ["r", "y"], "value": "f(r - 1, y) + f(r, y)"}
    back = {"domain": {"r": [1, 63]}, "at": ["63 - r", "y"], "value": "f(64 - r, y) + f(63 - r, y)"}
    down = {"domain": {"r": [1, 99]}, "at": ["x", "r"], "value": "f(x, r - 1) + f(x, r)"}
    of = load(
        {
            "format": 1,
            "name": "sums",
            "inputs": [{"name": "input", "type": "int32", "dims": ["x", "y"]}],
            "stages": [{"name": "f", "dims": ["x", "y"], "value": "input(x, y)", "updates": [along, back, down]}],
            "outputs": ["f"],
            "estimates": {"f": [[0, 64], [0, 100]], "input": [[0, 64], [0, 100]]},
        }
    )
    rows, columns = UpdateLoops(("r", "y"), Vector("y", 8)), UpdateLoops(("x", "r"), Vector("x", 8))
    updates = (rows, rows, columns)
    group = Group("f", ("x.inner", "y.inner"), (), None, Vector("x", 8), (), (), updates)
    text = to_text(rewrite(of, Schedule("sums", "hand", (group,))))
    blocks = "by 16 of y, as all from the values to update 2"
    assert [line.partition("update f:")[2] for line in text.splitlines() if "update f" in line] == [
        f"  # {blocks}",
        f"  # each block of rows after update 0; {blocks}",
        f"  # {blocks}",
    ]
