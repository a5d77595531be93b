"""Halide's schedules, measured earlier on another machine: what each pipeline took with the best that anyone has.

Milliseconds, the best of three rounds in one run: two threads of an x86-64 server (Zen 4 class, AVX-512, 32 KiB of
first level, 1 MiB of second, 32 MiB of third), Halide 21, at the sizes of the shipped pipelines' estimates. `TACO 2019`
is the paper's own released scheduler, which is not in Halide's wheel: the better of its runs at parallelism 2 and 8.

Times do not carry from one machine to another. Quotients do, roughly: a peer that takes part here and was measured
there carries the ratio over to those that do not take part here (`carried`).
"""

from __future__ import annotations

THREADS = 2
SCHEDULERS = ("expert", "TACO 2019", "Mullapudi2016", "Adams2019")
MILLISECONDS: dict[str, tuple[float | None, float | None, float | None, float | None]] = {
    "blur": (0.187, 0.267, 0.84, 0.30),
    "unsharp": (4.33, 4.34, 16.0, 10.3),
    "harris": (2.89, 2.66, 13.2, 4.11),
    "bilateral_grid": (20.0, 20.2, 23.6, 23.6),
    "camera_pipe": (5.07, 9.97, 16.8, 9.56),
    "interpolate": (10.0, 10.5, 19.8, 38.4),
    "local_laplacian": (85.5, 70.8, 83.7, 233.0),
    "nl_means": (276.0, 182.0, 425.0, 180.0),
    "max_filter": (78.4, None, 89.8, 273.0),
    "lens_blur": (11.7, 23.9, 19.1, None),
}
"""Milliseconds by pipeline, in the order of SCHEDULERS; None where it failed, or had no schedule in 400 s."""


def carried(pipeline: str, peer: str, ratio: float | None, threads: int) -> float | None:
    """Our time over the best of that table, from `ratio`, ours over that of `peer` in this run: multiplied by the
    peer's time over the best one's there. None where the table has nothing for it, or not for so many threads."""
    times = dict(zip(SCHEDULERS, MILLISECONDS.get(pipeline, ()), strict=False))
    its = times.get(peer)
    if ratio is None or its is None or threads != THREADS:
        return None
    return ratio * its / min(t for t in times.values() if t is not None)
