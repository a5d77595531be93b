"""Params of the search: every number that bounds its effort or sets what counts as more, with its reason.

Shares and ratios are of predicted cost where nothing else is said. Operations are those of `cost_models.taco2019`.
Figures of a machine are not here but in its platform.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Params:
    """The record of them; `PARAMS` are those that the methods search by."""

    # Variants and partitions of the method `default`

    variant_close: float = 1.3
    """A variant that costs more than this, relative to the cheapest, with the first tile sizes, is not looked into:
    moves gain more in one than in another."""
    paper_gain: float = 0.97
    """The paper's schedule is left where what is found costs no more than this, relative to it: of what is predicted to
    gain 3 to 10 % measured time gains as much in the mean, of what gains less nothing."""
    from_root_most: float = 4.0
    """Times what is found: from every stage at root, where that costs more, the search does not begin anew."""
    from_root_gain: float = 0.95
    """A partition found from there, or by several joins at once, is taken where it costs no more than this, relative
    to what is found otherwise: what many groups cost at the edges of rows and of tiles the model knows least of."""
    nearly_as_large: float = 1.04
    """Groups that are the same but for names and for extents that differ by no more than this ratio have the same
    plans, and costs in proportion to their points."""
    planned_stages_per_stage: int = 12
    """Stages planned for each stage of the pipeline, at most, beyond those of the first partitions."""
    joins_one_by_one: int = 8
    """Joins along a chain of stages that pay one after the other, before several are tried at once."""
    inlined_least_memory_share: float = 0.02
    """A share of the memory of all groups: stages that take less are not tried there."""

    # The best k schedules

    listed_candidates: int = 16
    """Candidates that are searched for where any but the best is asked for, so that ranks are the same however many of
    them are shown; an answer of the service has so many, at most."""
    kept_candidates: int = 8
    """Candidates of a segment that are kept for the best k schedules."""
    combinations_per_schedule: int = 8
    """Combinations of plans that are looked at for each schedule that is wanted: different plans may be the same
    groups."""
    other_partitions: int = 3
    """Other partitions of each variant whose groups are worked out with all sizes of tiles, too, at most."""
    other_partitions_near: float = 1.1
    """They are where they cost no more than this, relative to the cheapest, before all sizes are tried."""
    apart_share: float = 0.01
    """Share of a pipeline's cost by which schedules must differ that decide numbers alone otherwise, such as tile
    sizes: the model calls them equal, and who lists or times the best ones wants others."""
    matters_share: float = 0.05
    """Share of a pipeline's cost up to which a group that is made otherwise does not matter: such schedules must differ
    as those that decide numbers alone."""
    parallelism_least_work_share: float = 0.02
    """Share of the pipeline's work from which on a group counts for the parallelism of a schedule."""

    # Candidates of a group, and moves from the best

    tile_sizes_per_shape: int = 256
    """Combinations of tile sizes that are costed for one shape."""
    short_strip_rows: int = 64
    """Strips of so many rows are among the tile sizes."""
    strips_per_thread: int = 4
    """Strips a thread, with which shapes are compared: threads that are late find another one."""
    narrowest_tile_elements: int = 256
    """Elements along memory that a tile has at least, as in the released code of TACO 2019: the cost of short rows,
    whose vectors and halos are cut off at both ends on every level of a pyramid, is none that its model knows."""
    negligible_group_share: float = 0.005
    """A group that takes less of the time of all is not looked into further."""
    fused_close: float = 1.25
    """The cost of shapes with fused rows over that of the best up to which they are worked out, too."""
    same_time: float = 0.01
    """Relative difference of predicted times up to which the largest tile size is taken."""
    pays: float = 0.995
    """A change is made that leaves at most so much of the cost: less is below what a model can tell."""
    single_changes: int = 100
    """Changes of single stages that are tried in a group, over its stages: each costs more time in a large group."""
    fewest_single_changes: int = 4
    """Changes of single stages that are tried in any group, at most, where there are so many."""
    inline_doubt: float = 2.0
    """A stage that costs so many times as much inline as kept, or kept as inline, is not tried the other way."""
    rows_side_by_side: tuple[int, ...] = (8, 4)
    """Rows that are computed side by side, where that is tried."""
    rows_pay: float = 0.97
    """They are taken where they cost no more than this, relative to what is found otherwise: they are several times the
    code, and of what was predicted to gain less nothing was gained."""
    rows_far: float = 2.0
    """The cost of the first of these over that of other shapes from which on fewer rows are not tried; nor are they
    where it costs less."""
    side_by_side_row_vectors: int = 16
    """Vectors of a row that is tried with others side by side, at least: the first and the last take far longer."""
    register_tile_points: int = 16
    """Points of a register tile along a dim, at most: a load serves enough of them by then, and each has rows of its
    own, whose addresses take registers, too."""
    packed_operand_reads: int = 16
    """Times that an operand is read again, at least, where a copy of it is tried."""
    wide_sums_again: float = 0.04
    """The share of a short row that is computed twice, at most, where vectors of sums are wider than a register."""
    register_tile_sizes: int = 3
    """Numbers of points of a register tile that divide a dim and are tried for each number of vectors, the largest
    first."""
    same_tiles: float = 0.03
    """Relative difference of predicted times up to which register tiles are compared as beside other programs."""
    left_of_shared_cache: float = 0.25
    """The part of a cache that several cores share which a program surely has, whatever the others do: plans that take
    equally long otherwise are compared as if they had no more."""
    stays_share_of_last_level: float = 0.5
    """The share of the last level that data may take, with all else that circulates, to stay there from call to
    call."""
    found_share_of_shared_cache: float = 0.375
    """That share for rows that are read in order, where requests come in the way of hardware: 12 MB of 32 take 0.92
    to 1.0 of the time without them, 15 MB up to 1.1."""
    asked_rows: int = 5
    """Rows that a loop walks along at once, those of its output among them, up to which it asks for them where requests
    come in the way of hardware: one takes 0.86 of the time by them, four and a stored one as long, eight 1.2 to 1.4."""
    prefetched_rows_parts_of_l2: int = 4
    """Bytes that all rows of a loop ask for ahead are at most one part in so many of the L2 cache, where hardware does
    not follow them: they stay there until they are read."""

    # The method `taco2019`, whose schedules are candidates of `default`, too

    paper_tile_sizes: int = 20_000
    """Combinations of tile sizes that are costed for one order of loops."""
    paper_same_cost: float = 1e-9
    """Relative and absolute difference up to which costs of the paper are equal: that of sums in another order."""
    loop_orders: int = 36
    """Orders of loops of a group that are tried: all of three dims."""
    unrolled_iterations: int = 16
    """Iterations of all unrolled loops together, at most."""
    segmentations: int = 16
    """Alg. 5 cuts at multiples of max_split; it is chosen so that a group has about this many places to cut."""
    much_again_share: float = 0.25
    """One group that fits is held against several if it computes so much of the work of its stages once more. The paper
    takes the one group in any case; but across all levels of a pyramid halos can be most of the work."""
    inlined_at_root_as_often: float = 1.05
    """A stage is computed where a stage without tiles reads it, if that computes it no more often than this times
    once."""
    inlined_most_loads: int = 32
    """A stage is not trivial where a point of its consumer would load more than so many elements for it: long
    reductions, and reductions of reductions, are computed once."""
    inlined_most_places: int = 100
    """Places of one point at which a stage is computed, at most: they grow fourfold along a chain of 2 x 2 means."""
    inlined_longest_chain: int = 40
    """Stages that are inline in one another, at most."""
    trivial_shared_loads: int = 4
    """Loads of a point up to which a stage that several groups read may be trivial."""
    trivial_producers_bytes_ratio: int = 2
    """A stage is not trivial where the producers that are inline in it have more than so many times its bytes."""

    # Rewrites

    rfactor_least_operations: int = 64
    """Operations of a point below which no reduction is looked at."""
    rfactor_terms_per_lane: int = 8
    """Terms that each lane of an interleaved reduction has at least: what is joined at the end is little beside
    them."""
    rfactor_rounds: int = 2
    """Terms that it has at least of each row: more are in vectors than are left of a row."""
    rfactor_work_share: int = 4
    """The work of a reduction is at least so many times that of setting up and joining its parts."""
    scatter_most_tables: int = 4
    """Tables of a scatter, at most: compilers unroll a loop of as many iterations, and more hide no more."""
    scatter_terms_per_element: int = 16
    """Iterations that a scatter has at least for each element of its tables, which are set, joined and set back."""
    separation_kept_operations: int = 1
    """Operations that it counts for to keep an element of the first step of a separated window for the second."""

    exchanged_most_terms: int = 5000
    """Terms that two steps of a window may have put together to be looked at in the other order: 70 of a step in 70 of
    the other. Looking at them takes their product, a second where each step has a hundred."""

    scattered_operations: int = 2
    """Operations that it counts for to take an element of a pixel from memory, and to put it into a vector, where the
    pixels of a vector are too far apart to be loaded whole: two instructions."""

    # Vectors, threads and loops of updates

    update_terms_inside_vectors: int = 64
    """A domain of at most so many iterations is run inside the vectors: what it adds up stays in registers."""
    inside_vectors_least_operations: int = 10
    """Operations that are worth an order of loops in which they are done once: as many as an elementary function
    costs."""
    vectors_of_recurrence: int = 4
    """Vectors along a recurrence that rows have, at least: those that begin and end rows are narrower, and take as many
    steps. Shorter rows are scanned side by side."""
    short_rows: int = 256
    """Rows of part of a register, at least, that have vectors as short: those of tables are not worth the code."""
    wide_row_vectors: int = 8
    """Rows of fewer vectors have shorter ones, as wide as a register."""

    # Fixed decisions

    fixed_other_tile_sizes: tuple[int, ...] = (16, 32, 64, 128, 256)
    """Tile sizes that are tried of a dim that is open where another one is fixed, beside that of the search, the whole
    extent and a thread's share."""


PARAMS = Params()
