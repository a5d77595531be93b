"""Intermediate representations, all frozen data: pipelines, schedules, the plan of both, and loop programs."""
