"""Verdicts over measured times, layouts of images, and runs that go on where they ended."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks import everywhere, findings
from benchmarks.arguments import LAYOUTS, LINE, PAGE, Arguments
from benchmarks.builds import NATIVE, instruction_sets, isa_of, platform_of
from benchmarks.everywhere import Contenders, Job, Records, Timings, finish, work
from benchmarks.findings import DEFAULT, ESTIMATED, PAPER, ROOT, finding, same_code, tables
from benchmarks.interleaved import Library, Loop, agree, in_turns
from benchmarks.problem import Problem, at_estimates
from benchmarks.verdicts import verdict
from tilesmith.app.bench.agreement import ContenderError
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler.frontends.document.document import canonical_json, load
from tilesmith.scheduler.search import root_schedule

JOB = Job("small", NATIVE, "gcc", 1)


@pytest.fixture
def problem(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Problem:
    """Two planes of 40 x 8, and the document under the name `small`."""
    pipeline = load(
        {
            "format": 1,
            "name": "small",
            "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y", "c"], "boundary": {"kind": "repeat_edge"}}],
            "stages": [{"name": "s", "dims": ["x", "y", "c"], "value": "a(x - 1, y, c) + a(x + 1, y, c)"}],
            "outputs": ["s"],
            "estimates": {"s": [[0, 40], [0, 8], [0, 2]], "a": [[0, 40], [0, 8], [0, 2]]},
        }
    )
    monkeypatch.setattr(everywhere, "pipeline_of", lambda name: pipeline)
    return at_estimates(pipeline)


def rounds(mine: list[float], its: list[float]) -> list[dict[str, float]]:
    return [{"a": m, "b": i} for m, i in zip(mine, its, strict=True)]


def test_a_verdict_has_two_figures_of_each_set() -> None:
    found = verdict(rounds([2, 3, 4, 3], [2, 2, 2, 1]), "a", "b")
    assert found.figures == (1.0, 1.5, 3.0, 2.25)
    assert found.ratio == 1.875
    assert found.above(1.9) == 2


def test_one_lucky_call_makes_no_verdict() -> None:
    even = [1.0] * 12
    assert verdict(rounds(even, [0.8, *even[1:]]), "a", "b").ratio == 1.0
    assert verdict(rounds([1.0, *[1.1] * 11], even), "a", "b").ratio == pytest.approx(1.1)


@pytest.mark.parametrize(("mine", "near"), [(1.0, False), (1.019, False), (1.025, True), (1.2, True)])
def test_what_is_near_the_bound_is_measured_again(mine: float, near: bool) -> None:
    assert verdict(rounds([mine] * 4, [1.0] * 4), "a", "b").near(1.03) == near


def test_a_figure_above_the_bound_is_measured_again() -> None:
    assert verdict(rounds([0.9, 1.1, 0.9, 1.1], [1.0] * 4), "a", "b").near(1.03)


def test_who_was_left_out_is_judged_by_the_rounds_it_has() -> None:
    found = [{"a": 1.0, "b": 4.0}, {"a": 1.0, "b": 5.0}, {"a": 1.0}, {"a": 1.0}]
    assert verdict(found, "a", "b").figures == (0.25, 0.25, 0.2, 0.2)


@pytest.mark.parametrize("name", list(LAYOUTS))
@pytest.mark.parametrize("storage", [(0, 1, 2), (2, 0, 1)])
@pytest.mark.parametrize("extents", [(1024, 6, 3), (1000, 5, 3), (40, 8, 2)])
def test_layouts_keep_what_they_say(name: str, storage: tuple[int, ...], extents: tuple[int, ...]) -> None:
    images = LAYOUTS[name]
    steps = [4 * s for s in images.strides(extents, storage, 4)]
    row = 4 * extents[0] * (extents[2] if storage[0] == 2 else 1)
    planes = [steps[2]] if storage[0] == 0 else []
    assert steps[1] >= row
    if not images.padded:
        assert steps[1] == row
        return
    assert (steps[1] % PAGE == 0) == images.paged
    assert all((step % PAGE == 0) == images.alike for step in planes)
    assert (len({images.offset(k) for k in range(3)}) == 1) == images.alike
    assert steps[1] - row < PAGE + LINE


@pytest.mark.parametrize("name", list(LAYOUTS))
def test_arguments_hold_the_images_in_that_layout(problem: Problem, name: str) -> None:
    found = Arguments(problem, LAYOUTS[name])
    (output,) = found.outputs
    assert output.shape == (2, 8, 40)
    assert tuple(s // 4 for s in reversed(output.strides)) == LAYOUTS[name].strides((40, 8, 2), (0, 1, 2), 4)
    if LAYOUTS[name].padded:
        assert output.ctypes.data % PAGE == LAYOUTS[name].offset(1)


def test_every_build_is_a_platform_of_its_own() -> None:
    builds = [platform_of(isa, compiler, 1) for isa in instruction_sets() for compiler in ("gcc", "clang")]
    assert len({(p.vector_bytes, p.compiler) for p in builds}) == len(builds)
    assert [isa_of(p) for p in builds] == [isa for isa in instruction_sets() for _ in range(2)]
    assert platform_of(NATIVE, "gcc", 3) == host().model_copy(update={"threads": 3})
    if instruction_sets() != (NATIVE,):
        assert platform_of("sse4.2", "gcc", 1).vector_bytes == 16


def library(folder: Any, problem: Problem) -> dict[str, dict[str, Any]]:
    contenders = Contenders(folder)
    contenders.prepare(JOB)
    return contenders.known(JOB)


def test_a_run_goes_on_where_it_ended(problem: Problem, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = []

    def measured(job: Job, libraries: Mapping[str, object], count: int) -> dict[str, Any]:
        timed.append(list(libraries))
        return {"rounds": [dict.fromkeys(libraries, 1.0)] * count, "disturbed": 0}

    monkeypatch.setattr(everywhere, "measured", measured)

    def steps(jobs: list[Job]) -> list[str]:
        return list(work(jobs, Contenders(tmp_path), Timings(tmp_path, 8), False))

    other = Job("small", NATIVE, "gcc", 1, "alike")
    assert [s.partition(" ")[0] for s in steps([JOB])] == ["making", "timing"]
    assert steps([JOB]) == []
    assert [s.partition(" ")[0] for s in steps([JOB, other])] == ["timing"]
    names = set(library(tmp_path, problem))
    assert names == {DEFAULT, ESTIMATED, PAPER, ROOT}
    assert all(DEFAULT in names for names in timed)
    monkeypatch.setattr(everywhere, "version", lambda: "another")
    assert [s.partition(" ")[0] for s in steps([JOB, other])] == ["making"]  # and the same C, so the same times


def test_the_time_may_be_over() -> None:
    seen = []

    def steps() -> Any:
        for n in range(9):
            yield str(n)
            seen.append(n)

    clock = iter(range(99))
    assert not finish(steps(), 3.5, lambda: next(clock))
    assert len(seen) == 3
    assert finish(iter(["a"]), 1.0, lambda: 0.0)


def test_half_a_line_is_forgotten(tmp_path: Any) -> None:
    path = tmp_path / "records.jsonl"
    Records(path).add("a", {"n": 1})
    Records(path).add("a", {"n": 2})
    with path.open("a") as file:
        file.write('{"key": "b", "n"')
    found = Records(path)
    assert found.get("a") == {"key": "a", "n": 2}
    assert found.get("b") is None


def test_the_same_code_is_not_timed(problem: Problem, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = library(tmp_path, problem)
    alike = dict.fromkeys(made, made[DEFAULT])
    assert same_code(alike) == dict.fromkeys(alike, DEFAULT)
    monkeypatch.setattr(everywhere, "measured", lambda *_: pytest.fail("timed"))
    timing = Timings(tmp_path, 8).time(JOB, alike)
    found = finding(vars(JOB), alike, timing)
    assert {v.ratio for v in found.verdicts.values()} == {1.0}
    assert not found.missed


def test_losses_are_told_the_worst_first(problem: Problem, tmp_path: Any) -> None:
    made = library(tmp_path, problem)
    made = {name: {**c, "library": name} for name, c in made.items()}

    def at(layout: str, mine: float) -> findings.Finding:
        timing = {"rounds": [{DEFAULT: mine, ESTIMATED: mine, PAPER: 1.0, ROOT: 2.0}] * 4, "disturbed": 0}
        return finding({**vars(JOB), "layout": layout}, made, timing)

    found = [at("dense", 1.1), at("alike", 2.5), at("apart", 1.0)]
    assert [f.losses for f in found] == [[(DEFAULT, PAPER)], [(DEFAULT, PAPER), (DEFAULT, ROOT)], []]
    told = [line.split("|")[1:4] for line in tables(found).splitlines() if "small" in line]
    assert [(a.split(", ")[-1].strip(), c.strip()) for a, _, c in told] == [
        ("alike", "2.500"), ("alike", "1.250"), ("dense", "1.100")
    ]  # fmt: skip


def test_a_mean_that_is_too_high_is_told_per_build(problem: Problem, tmp_path: Any) -> None:
    made = {name: {**c, "library": name} for name, c in library(tmp_path, problem).items()}

    def at(threads: int, mine: float) -> findings.Finding:
        timing = {"rounds": [{DEFAULT: mine, ESTIMATED: mine, PAPER: 1.0, ROOT: 2.0}] * 4, "disturbed": 0}
        return finding({**vars(JOB), "threads": threads}, made, timing)

    (line,) = findings.slow_builds([at(1, 0.5), at(1, 1.0), at(2, 0.5), at(2, 1.2)])
    assert "threads: 2" in line
    assert "0.775" in line


def test_who_fails_is_told(problem: Problem, tmp_path: Any) -> None:
    made = library(tmp_path, problem) | {PAPER: {"key": "x", "version": "", "error": "Illegal: no"}}
    found = finding(vars(JOB), made, None)
    assert found.missed
    assert found.left
    assert "taco2019: Illegal: no" in tables([found])
    assert "left to do: 1 of 1" in tables([found])


@pytest.fixture
def called(problem: Problem, tmp_path: Any) -> Callable[[str], Library]:
    made = library(tmp_path, problem)
    return lambda name: Library.load(name, made[name]["library"], made[name]["entry"])


def test_libraries_take_turns_on_both_sets(problem: Problem, called: Callable[[str], Library]) -> None:
    libraries, sets, loop = [called(DEFAULT), called(ROOT)], [Arguments(problem) for _ in range(2)], Loop()
    first = agree(problem, libraries, sets[0], loop)
    assert set(first) == {DEFAULT, ROOT}
    assert len(in_turns(libraries, sets, 4, loop, dict.fromkeys(first, 1e6))[0]) == 2
    found, disturbed = in_turns(libraries, sets, 4, loop, first)
    assert len(found) == 4
    assert 0 <= disturbed <= 4
    assert all(set(r) == {DEFAULT, ROOT} and min(r.values()) > 0 for r in found[:2])
    for images in sets:
        assert np.array_equal(images.outputs[0], sets[0].outputs[0])


def test_who_computes_something_else_is_not_timed(problem: Problem, called: Callable[[str], Library]) -> None:
    class Other:
        """Writes nothing."""

        name = "other"

    images, loop = Arguments(problem), Loop()
    with pytest.raises(ContenderError, match="other: disagrees"):
        agree(problem, [called(DEFAULT), Other()], images, lambda lib, a, n: lib.name == "other" or loop(lib, a, n))


def test_a_question_is_answered_in_a_process_of_its_own(problem: Problem, tmp_path: Any) -> None:
    document = tmp_path / "small.json"
    document.write_text(canonical_json(problem.pipeline))
    made = library(tmp_path, problem)
    job = Job(str(document), NATIVE, "gcc", 1)
    answer = everywhere.measured(job, {DEFAULT: (made[DEFAULT]["library"], made[DEFAULT]["entry"])}, 2)
    assert len(json.loads(json.dumps(answer))["rounds"]) == 2
    failed = everywhere.measured(job, {DEFAULT: (str(tmp_path / "none.so"), "none")}, 2)
    assert "exit status" in failed["error"]


def test_the_same_schedule_of_two_methods_is_one_library(
    problem: Problem, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = root_schedule(problem.pipeline, JOB.platform())
    monkeypatch.setattr(Contenders, "_schedule", lambda _, __, name, ___: replace(schedule, method=name))
    assert len({c["library"] for c in library(tmp_path, problem).values()}) == 1
