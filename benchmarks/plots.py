"""Plots of a run: ratios per pipeline, share of the bound, how long scheduling takes. SVG and PNG.

Needs matplotlib, of the extra `bench`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import halide_peers
from benchmarks.summary import AT_ROOT, OURS, PAPER, build_name, is_ours

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {
    OURS: "#1b6ca8", PAPER: "#6fb1dd", AT_ROOT: "#bcd9ee", "Mullapudi2016": "#e08e45", "Adams2019": "#b5462f",
    "Li2018": "#f0c27b", halide_peers.EXPERT: "#3f8f5f", "opencv": "#8a6fb0", "numpy": "#9a9a9a",
}  # fmt: skip
OTHER = "#c9a0b8"
INCHES_A_BAR, INCHES_A_PIPELINE, WIDTH = 0.13, 0.22, 9.0


def draw(data: dict[str, Any], folder: Path) -> list[Path]:
    """Writes the plots of a whole run (`runs` of `figures.json`) into `folder`; the files. Their names say the threads,
    and the build where there are several."""
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    several = len({(run.get("isa"), run.get("compiler")) for run in data["runs"]}) > 1
    for run in data["runs"]:
        name = "-".join(str(run[key]) for key in (("isa", "compiler") if several else ()) + ("threads",))
        for kind, plot in (("ratios", _ratios), ("bound", _shares), ("scheduled", _scheduled)):
            made += plot(run["contests"], build_name(run), folder / f"{kind}-{name}")
    return made


def _ratios(contests: Sequence[dict[str, Any]], build: str, path: Path) -> list[Path]:
    """Plots of the times of each contender over ours."""

    def value(c: dict[str, Any]) -> float | None:
        return 1 / c["ratio"] if c["ratio"] and c["name"] != OURS else None

    def finish(axes: Axes) -> None:
        axes.axvline(1, color=COLOURS[OURS], linewidth=1.5)
        axes.set_xlabel("its time over ours: right of the line we are faster")

    return _bars(contests, value, f"Time of every contender over ours, {build}", path, finish, start=1)


def _shares(contests: Sequence[dict[str, Any]], build: str, path: Path) -> list[Path]:
    """The bound over each contender's time."""

    def finish(axes: Axes) -> None:
        axes.axvline(1, color="black", linewidth=1)
        axes.set_xlabel("time of the bound (bytes that must move, or operations) over its time: 1 is the bound")

    def value(c: dict[str, Any]) -> float | None:
        return c["share_of_bound"] if is_ours(c["name"]) or c["name"] == halide_peers.EXPERT else None

    return _bars(contests, value, f"Share of the bound, {build}", path, finish, log=False)


def _scheduled(contests: Sequence[dict[str, Any]], build: str, path: Path) -> list[Path]:
    def finish(axes: Axes) -> None:
        axes.set_xlabel("milliseconds until there is a schedule")

    def value(c: dict[str, Any]) -> float | None:
        return c.get("schedule_ms") if c["name"] not in halide_peers.HAND_WRITTEN else None

    return _bars(contests, value, f"Scheduling time, {build}", path, finish)


def _bars(
    contests: Sequence[dict[str, Any]],
    value: Callable[[dict[str, Any]], float | None],
    title: str,
    path: Path,
    finish: Callable[[Axes], None],
    log: bool = True,
    start: float = 0,
) -> list[Path]:
    """Bars from `start` per contender in groups per pipeline, as SVG and PNG; contenders without a value have none."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    groups = [(c["pipeline"], [(k["name"], v) for k in c["contenders"] if (v := value(k))]) for c in contests]
    bars = sum(len(group) for _, group in groups)
    figure = Figure(figsize=(WIDTH, 1.6 + INCHES_A_BAR * bars + INCHES_A_PIPELINE * len(groups)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    ticks, at = [], 0.0
    for name, group in groups:
        ticks.append((at + max(len(group) - 1, 0) / 2, name))
        for contender, v in group:
            axes.barh(at, v - start, left=start, height=0.9, color=COLOURS.get(contender, OTHER))
            axes.annotate(f"{v:.3g}", (v, at), (3, 0), textcoords="offset points", va="center", fontsize=6)
            at += 1
        at += INCHES_A_PIPELINE / INCHES_A_BAR
    axes.set_yticks([t for t, _ in ticks], [n for _, n in ticks])
    axes.invert_yaxis()
    if log and bars:
        axes.set_xscale("log")
    axes.margins(x=0.12, y=0.01)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    axes.set_title(title)
    finish(axes)
    present = dict.fromkeys(contender for _, group in groups for contender, _ in group)
    handles = [Patch(color=COLOURS.get(n, OTHER), label=n) for n in present]
    if handles:
        figure.legend(handles=handles, loc="outside upper center", ncols=5, fontsize=8)
    made = [path.with_name(path.name + suffix) for suffix in (".svg", ".png")]
    for file in made:
        figure.savefig(file, dpi=130)
    return made
