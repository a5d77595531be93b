"""Features of groups of stages, which cost models read: operations, footprints, cache traffic, SIMD work.

`pipeline_features` has the facts of a whole pipeline; `group_counts` and `simd_work` make what models see."""
