"""Backends (`base`, `registry`): loop programs as C and OpenCL; schedules as Halide's code and as loop nests."""
