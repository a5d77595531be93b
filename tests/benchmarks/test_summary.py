"""The summary of contests: the best of each kind, means, what is carried over, and the plots."""

import math

import pytest
from support.calibration import TRY

from benchmarks import compare, earlier, halide_peers, summary
from benchmarks.bound import Bound, bound
from benchmarks.builds import NATIVE, instruction_sets, machine_of, platform_of
from benchmarks.problem import at_estimates, at_regions
from tilesmith.app.profiler.calibrate import measure
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.errors import ScheduleError


def contender(name, ratio, best_ms=2.0):
    return {
        "name": name,
        "ratio": ratio,
        "error": None if best_ms else "died",
        "best_ms": best_ms,
        "median_ms": best_ms,
        "share_of_bound": 0.5 if best_ms else None,
        "schedule_ms": 12.5,
        "disturbed_rounds": 0,
    }


CONTESTS = [
    {
        "pipeline": "harris",
        "bound_by": "bytes",
        "contenders": [
            contender("tilesmith", 1.0),
            contender("tilesmith taco2019", 0.9),
            contender("Mullapudi2016", 0.1),
            contender("Adams2019", 0.5),
            contender("Li2018", None, None),
            contender("expert", 0.8),
        ],
    },
    {
        "pipeline": "gaussian3x3",
        "bound_by": "operations",
        "contenders": [contender("tilesmith", 1.0), contender("Mullapudi2016", 0.4), contender("opencv", 0.2)],
    },
]


def test_the_best_of_each_kind():
    harris, gaussian = (summary.row(c, 2) for c in CONTESTS)
    assert harris["best_autoscheduler"] == ("Adams2019", 0.5)
    assert harris["best_of_all"] == ("expert", 0.8)
    assert gaussian["best_autoscheduler"] == gaussian["best_of_all"] == ("Mullapudi2016", 0.4)


def test_means_are_geometric():
    means = summary.summary(CONTESTS, 2)["means"]
    assert means["each"]["Mullapudi2016"] == pytest.approx(math.sqrt(0.1 * 0.4))
    assert means["each"]["expert"] == pytest.approx(0.8)
    assert means["best_autoscheduler"] == pytest.approx(math.sqrt(0.5 * 0.4))
    assert summary.mean([]) is None


def test_a_ratio_is_carried_by_those_that_were_measured_earlier():
    assert earlier.carried("harris", "Mullapudi2016", 0.1, 2) == pytest.approx(0.1 * 13.2 / 2.66)
    assert earlier.carried("lens_blur", "Adams2019", 0.1, 2) is None
    assert earlier.carried("harris", "Adams2019", 0.1, 1) is None
    assert earlier.carried("harris", "Adams2019", None, 2) is None
    assert earlier.carried("sobel", "Adams2019", 0.1, 2) is None
    found = summary.summary(CONTESTS, 2)
    assert found["rows"][0]["carried"] == {
        "Mullapudi2016": pytest.approx(0.1 * 13.2 / 2.66),
        "Adams2019": pytest.approx(0.5 * 4.11 / 2.66),
    }
    assert found["means"]["carried"]["Adams2019"] == pytest.approx(0.5 * 4.11 / 2.66)


def test_the_earlier_table_is_of_shipped_pipelines():
    assert set(earlier.MILLISECONDS) <= set(pipelines.names())
    assert all(len(times) == len(earlier.SCHEDULERS) for times in earlier.MILLISECONDS.values())


def test_the_table_has_a_line_for_every_pipeline_and_the_means():
    text = summary.table(summary.summary(CONTESTS, 2))
    lines = text.split("\n\n")[0].splitlines()
    assert len(lines) == 2 + len(CONTESTS) + 1
    assert "expert 0.800" in lines[2]
    assert lines[-1].startswith("| geometric mean")


def test_every_build_has_a_line_with_its_worst_pipeline():
    runs = [
        {"isa": "sse4.2", "compiler": "clang", "threads": 2, "contests": CONTESTS},
        {"isa": "avx2", "compiler": "gcc", "threads": 1, "contests": [{"pipeline": "x", "contenders": []}]},
    ]
    _, _, first, second = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in summary.against_schedulers(runs).splitlines()
    )
    assert first == ["sse4.2, clang, threads: 2", "2 of 2", "0.566", "harris 0.800 (expert)"]
    assert second == ["avx2, gcc, threads: 1", "0 of 1", "", ""]


def test_a_described_machine_is_that_of_builds_with_its_vectors():
    given = host().model_copy(update={"name": "given"})
    assert machine_of(NATIVE, "clang", 1, given).name == "given"
    for isa in instruction_sets():
        same = platform_of(isa, "gcc", 1).vector_bytes == given.vector_bytes
        assert (machine_of(isa, "gcc", 1, given).name == "given") == same


def test_halide_compiles_for_the_instruction_set_of_the_build(monkeypatch):
    asked = []

    def build(document, method, threads, limit_s, isa):
        asked.append((method, threads, isa))
        raise halide_peers.PeerError("not now")

    monkeypatch.setattr(halide_peers, "build", build)
    problem = at_estimates(pipelines.load("gaussian3x3"))
    for isa in instruction_sets():
        compare.entries(problem, ["Li2018"], compare.METHOD, platform_of(isa, "gcc", 2))
    assert asked == [("Li2018", 2, isa) for isa in instruction_sets()]


def test_the_paper_takes_part_beside_another_method():
    problem = at_estimates(pipelines.load("gaussian3x3"))
    platform = machine_of(NATIVE, "gcc", 1)
    able, unable = compare.entries(problem, [compare.PAPER], compare.METHOD, platform)
    assert unable == []
    expected = [compare.OURS] if compare.METHOD == compare.PAPER_METHOD else [compare.OURS, compare.PAPER]
    assert [e.name for e in able] == expected


def test_the_tuned_one_takes_part_where_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(compare, "TRIED", 2)
    assert compare.TUNED in compare.KNOWN
    assert compare.TUNED not in compare.PEERS
    pipeline = pipelines.load("gaussian3x3")
    problem = at_regions(pipeline, dict.fromkeys(pipeline.outputs, ((1, 96), (1, 64), (0, 3))))
    able, unable = compare.entries(problem, [compare.TUNED], "default", machine_of(NATIVE, "gcc", 1))
    assert unable == []
    assert able[1].name == compare.TUNED
    assert able[1].about["candidate"] in (1, 2)


def test_a_bound_is_what_has_to_be_moved_or_done(monkeypatch, tmp_path):
    from benchmarks import bound as bounds

    measured = measure(host(), tmp_path, TRY, parts=("core",))
    monkeypatch.setattr(bounds, "peak", lambda: measured)
    problem = at_estimates(pipelines.load("gaussian3x3"))
    one, two = bound(problem, 1), bound(problem, 2)
    assert one.operations > 0
    assert one.ms == max(one.bytes_ms, one.operations_ms or 0)
    assert one.by in ("bytes", "operations")
    if host().vector_bytes >= 16:
        assert one.operations_ms == pytest.approx(2 * two.operations_ms)


def test_plots_are_drawn_of_a_run(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is of the extra bench")
    from benchmarks import plots

    data = {"runs": [{"threads": 2, "contests": CONTESTS}]}
    made = plots.draw(data, tmp_path)
    assert {p.name for p in made} == {
        f"{name}-2.{suffix}" for name in ("ratios", "bound", "scheduled") for suffix in ("svg", "png")
    }
    assert all(p.stat().st_size > 1000 for p in made)


def test_plots_of_several_builds_are_told_apart(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is of the extra bench")
    from benchmarks import plots

    builds = [{"isa": isa, "compiler": "gcc", "threads": 2} for isa in ("avx2", "sse4.2")]
    made = plots.draw({"runs": [b | {"contests": CONTESTS} for b in builds]}, tmp_path)
    assert {"ratios-avx2-gcc-2.svg", "ratios-sse4.2-gcc-2.svg"} <= {p.name for p in made}
    assert len(set(made)) == 2 * 6


def test_ours_is_first_and_told_where_it_fails(monkeypatch):
    def refused(*_):
        raise ScheduleError("no way")

    monkeypatch.setattr(compare, "compile_pipeline", refused)
    monkeypatch.setattr(compare, "bound", lambda *_: Bound(1.0, None, 0.0))
    found = compare.compare("gaussian3x3", [compare.AT_ROOT], compare.METHOD, machine_of(NATIVE, "gcc", 1), rounds=1)
    first, second = found["contenders"]
    assert (first["name"], first["error"], first["ratio"]) == (compare.OURS, "ScheduleError: no way", None)
    assert second["error"] is None
    assert second["best_ms"] > 0
    assert compare.losses([found]) == ["gaussian3x3: ours fails: ScheduleError: no way"]
    assert summary.row(found, 1)["best_of_all"] is None
