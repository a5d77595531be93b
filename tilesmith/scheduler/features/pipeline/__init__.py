"""Features of the stages of a pipeline, found once for all groups: reads, boxes, and what vectors find in rows."""
