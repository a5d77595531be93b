"""Schedules in Halide's words: as C++ and Python (`source`), and on live Funcs (`apply`)."""

from tilesmith.scheduler.codegen.halide.apply import Applied, apply

__all__ = ["Applied", "apply"]
