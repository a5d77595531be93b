"""Features of groups of stages, which cost models read: operations, footprints, cache traffic, SIMD work.

Each package stands on those before it: `operations` of a point, `pipeline` (features of its stages, found once),
`groups` (members, loop nests, points and bytes), `traffic` through the caches, `work` of vectors.
`schedule_features` makes of a complete schedule what models see."""
