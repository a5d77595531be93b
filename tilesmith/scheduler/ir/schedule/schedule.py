"""The schedule of a pipeline: frozen and serialisable. What its fields decide is said in `primitives`, a file each.

Loops of a group are named after the dims of its output stage: `x.inner` is the intra-tile loop of
dim x, `x.outer` the inter-tile loop. A dim without a tile has its `.inner` loop only.
"""

from __future__ import annotations

from typing import Literal

from tilesmith.records import record

INLINE = "inline"
ROOT = "root"

Attributes = tuple[tuple[str, object], ...]
"""Values, which are hashable, of the primitives that have no field of their own, by their keys; sorted."""


def inner(dim: str) -> str:
    """The name of the intra-tile loop of `dim`."""
    return f"{dim}.inner"


def outer(dim: str) -> str:
    """The name of the inter-tile loop of `dim`."""
    return f"{dim}.outer"


def dim_of(loop: str) -> str:
    """The dim that a loop belongs to."""
    return loop.rpartition(".")[0]


@record(frozen=True, slots=True)
class Tile:
    """The tile size of one dim of a group's output; `size` None is the whole extent, whatever it is at run time."""

    dim: str
    size: int | None


@record(frozen=True, slots=True)
class Vector:
    """Vectorise over `dim` of the stage, `lanes` (a power of two) values at a time."""

    dim: str
    lanes: int


@record(frozen=True, slots=True)
class UpdateLoops:
    """The loops of one update of a stage, innermost first: the dims that it uses and the variables of its domain, each
    once. `vector` and `parallel` name loops whose iterations are proved to be independent (see `analysis.dependence`).
    Only a group's output may have a `parallel` update, and only outside the group's own parallel loop; it is the
    outermost loop of the update.
    """

    loops: tuple[str, ...]
    vector: Vector | None = None
    parallel: str | None = None


@record(frozen=True, slots=True)
class Factor:
    """A reduction cut into partial results (Halide's rfactor), which a stage `partial` of its own holds.

    `reduction` numbers the stage's reductions: first the inline ones of its values, then its updates.
    `variable` is one of its domain. It is cut into `parts` strips of neighbours, or, `interleaved`, into those with
    the same remainder by `parts`; with `neighbours` each takes so many iterations in a row in its turn. The new dim of
    `partial`, over the parts, is named `variable` too: the slowest in memory of strips, the fastest of interleaved
    parts, but slower than dims in which an update scatters: each of its parts is a table of its own.
    """

    stage: str
    reduction: int
    variable: str
    parts: int
    partial: str
    interleaved: bool = False
    neighbours: int = 1


@record(frozen=True, slots=True)
class Separation:
    """A window of a stage computed in two steps: along `dim` first, which a stage `partial` of its own holds, and then
    along the others.

    `window` numbers the stage's windows that are products (see `analysis.separability`): sums whose weights are one
    factor along `dim` times one along the others, minima and maxima over boxes. `through` is a stage whose value is
    put in first where the stage reads it: two windows, one after the other, become one of two dims, which can be
    computed the other way around.
    """

    stage: str
    window: int
    dim: str
    partial: str
    through: str | None = None


@record(frozen=True, slots=True)
class Joining:
    """Outputs that one group computes together: `stages`, each an output of the pipeline, become the values of one
    stage `joint`, in their order. They have the same dims and are asked for on one region."""

    stages: tuple[str, ...]
    joint: str


@record(frozen=True, slots=True)
class Packing:
    """An operand of a stage that is copied to where it lies as the stage reads it (Halide's `in`): a stage `packed` of
    its own has the elements of `operand`, an input or a stage, and `stage` reads those that move with its dim `dim`
    from there. In the copy neighbours along `dim` are neighbours in memory; computed at a loop over tiles, it is the
    panel that the tiles inside read again."""

    stage: str
    operand: str
    dim: str
    packed: str


@record(frozen=True, slots=True)
class Placement:
    """Compute level and store level of one stage of a group.

    `compute` and `store` name loops of the group: computed once an iteration of `compute`, in a buffer
    that lives for one iteration of `store` (the same loop, or one further out; then what an earlier
    iteration of the loops between has left in the buffer is not computed again: a sliding window).
    Both are INLINE for a stage that is computed where it is read.
    `fold` asks for a ring of the size of the window instead of the whole region, where that is provable.
    `storage` "registers" keeps the window along the group's vectorised dim in registers (compute level: the
    vectorised loop). `order` are the stage's own loops, innermost first. `updates` say
    how each update of the stage runs; without them each runs as it is defined, by one thread.
    """

    stage: str
    compute: str
    store: str
    fold: bool = True
    storage: Literal["memory", "registers"] = "memory"
    order: tuple[str, ...] = ()
    vector: Vector | None = None
    updates: tuple[UpdateLoops, ...] = ()
    attributes: Attributes = ()


@record(frozen=True, slots=True)
class Group:
    """One loop nest: the output stage with its tiled loops, and the stages computed inside it.

    `loops` is D_m of TACO 2019, innermost first: all intra-tile loops before all inter-tile loops.
    `parallel` names the loop run by threads: the outermost one, or None. `placements` are in
    topological order, without the output. A tile is filled by the output's values and then by its updates, which
    `updates` schedule: only dims that every update keeps in place can be tiled or have anything computed inside.
    With `stream` whole vectors of the output are written past the caches, where the machine can. Loops over vectors
    ask for what they read of inputs and of other groups `prefetch` bytes ahead along the row; 0 leaves that to the
    machine.
    """

    output: str
    loops: tuple[str, ...]
    tiles: tuple[Tile, ...]
    parallel: str | None
    vector: Vector | None
    unroll: tuple[str, ...]
    placements: tuple[Placement, ...]
    updates: tuple[UpdateLoops, ...] = ()
    stream: bool = False
    prefetch: int = 0
    attributes: Attributes = ()

    @property
    def rows_side_by_side(self) -> bool:
        """True if a loop over a tile of several rows is unrolled, so that these are computed side by side."""
        return any(t.dim in self.unroll and t.size is not None for t in self.tiles)

    def tile(self, dim: str) -> Tile | None:
        """The tile of `dim`, where it has one."""
        return next((t for t in self.tiles if t.dim == dim), None)

    def placement(self, stage: str) -> Placement | None:
        """The placement of `stage`, where it is a member of this group other than the output."""
        return next((p for p in self.placements if p.stage == stage), None)


@record(frozen=True, slots=True)
class Schedule:
    """Groups in the order they run. `factors` come first, then `separations`, `joinings` and `packings`: the groups
    schedule the pipeline that has its reductions factored, its windows separated, its outputs joined and its operands
    packed. `degraded` says why the method had to fall back, if it did."""

    pipeline: str
    method: str
    groups: tuple[Group, ...]
    strict: bool = False
    degraded: str | None = None
    factors: tuple[Factor, ...] = ()
    separations: tuple[Separation, ...] = ()
    joinings: tuple[Joining, ...] = ()
    packings: tuple[Packing, ...] = ()
    attributes: Attributes = ()
