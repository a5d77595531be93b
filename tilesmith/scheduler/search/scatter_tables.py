"""Tables of a scatter: partial results of an update that writes where data says, a table each, so that neighbours which
go to the same place do not wait for each other."""

from __future__ import annotations

from math import prod

from tilesmith.cost_models.ecm.steps import scalar_operations
from tilesmith.platforms import Platform
from tilesmith.scheduler.features.groups.group_counts import SMALL_EXTENT
from tilesmith.scheduler.features.operations.dependence_chains import through_memory
from tilesmith.scheduler.features.pipeline.pipeline_features import StageFacts
from tilesmith.scheduler.features.pipeline.update_facts import UpdateFacts
from tilesmith.scheduler.ir.pipeline.expressions import Binary, Var, has_accesses, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, Update
from tilesmith.scheduler.search.params import PARAMS


def tables_of(stage: Stage, update: Update, facts: StageFacts, found: UpdateFacts, platform: Platform) -> int:
    """The tables that neighbouring iterations of `update` take in turn, a power of two: as many as go on while the
    first of them waits for what it stored in the same place to come back, and as fit half of the first level of caches
    together, beside what streams through it. `facts` are those of the stage, `found` those of the update. 0 where one
    is enough, where the update has few iterations for each element of them, where other work-items of a device
    compute while one waits, and where threads would share out the tables.
    """
    if not found.looked_up or platform.threads > 1 or platform.work_items > 1:
        return 0
    free = {d for d, e in zip(stage.dims, update.at, strict=True) if e == Var(d)}
    points = prod(facts.extent(d) for d in stage.dims if d not in free)
    # loops over few places may be inside of the others: their tables are in use together
    used = points * prod(facts.extent(d) for d in free if facts.extent(d) <= SMALL_EXTENT) * facts.bytes_per_point
    terms = prod(found.trips(r.name) for r in update.domain)
    waits = through_memory(update, platform.core.latency_cycles)
    places = [n for e in update.at for n in walk(e) if isinstance(n, Binary) and has_accesses(n)]
    addresses = 2 * (len(stage.dims) - 1)  # each further dim is multiplied and added
    instructions = scalar_operations(found.operations) + len(places) + addresses + found.reads + 1
    each = instructions * platform.ecm_parameters.scalar_cycles
    parts = 1
    while (
        parts < PARAMS.scatter_most_tables
        and parts * each < waits
        and 4 * parts * used <= platform.caches[0].size_bytes
    ):
        parts *= 2
    return parts if parts > 1 and terms >= PARAMS.scatter_terms_per_element * parts * points else 0
