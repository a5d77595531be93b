"""Schedules: groups of stages and their loops, as documents and compared; `primitives` has each decision as a file."""
