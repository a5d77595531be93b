"""benchmarks.revisions: ratios of what two sides took; one of a checkout and itself runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks import revisions
from benchmarks.revision_compiler import understood
from benchmarks.revisions import EARLIER, THIS, Comparison, Side, ask, compare, compiler_of, tables
from tilesmith import platforms
from tilesmith.platforms import catalog
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import compile_pipeline


def comparison() -> Comparison:
    this = Side(compile_ms=[30.0, 20.0], characters=100, gcc_s=[0.5, 0.4])
    earlier = Side(compile_ms=[40.0, 50.0], characters=400, gcc_s=[1.6])
    return Comparison("blur", this, earlier, {2: 0.9})


def test_ratios_are_of_the_least_times() -> None:
    expected = {"document to C": 0.5, "size": 0.25, "gcc": 0.25, "code, threads: 2": 0.9}
    assert comparison().ratios() == expected


def test_means_are_of_the_pipelines_that_have_the_figure() -> None:
    other = comparison()
    other.pipeline, other.speed, other.this.compile_ms = "harris", {}, [80.0]
    last = tables([comparison(), other]).splitlines()[-1].split("|")
    assert [cell.strip() for cell in last[5:9]] == ["1.00", "0.250", "0.250", "0.900"]


def test_a_process_that_cannot_answer_says_so() -> None:
    with compiler_of(revisions.ROOT) as process, pytest.raises(RuntimeError, match="could not compile"):
        ask(process, {"pipeline": "no such pipeline", "platform": {}, "into": "nowhere"})


def test_a_checkout_is_not_told_of_a_machine_what_it_does_not_know() -> None:
    known = platforms.to_document(catalog.load("i7-6700"))
    told = known | {
        "core": known["core"] | {"wings": 2},
        "feathers": 7,
        "sources": {**known["sources"], "tail": "seen"},
    }
    assert understood(catalog, told) == catalog.load("i7-6700")
    with pytest.raises(platforms.PlatformError, match="/threads"):
        understood(catalog, known | {"threads": "many"})


def test_each_side_is_compiled_with_the_flags_that_its_c_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = iter((THIS, EARLIER))

    def answer(_: object, question: dict[str, Any]) -> dict[str, Any]:
        side, into = next(sides), Path(question["into"])
        into.mkdir(parents=True)
        (into / "pipeline.c").write_text(f"int number = NUMBER_OF_{side};\n")
        return {"ms": 1.0, "phases_ms": {}, "entry": side, "flags": ["-std=gnu11", f"-DNUMBER_OF_{side}=1"]}

    monkeypatch.setattr(revisions, "BUILD", tmp_path)
    monkeypatch.setattr(revisions, "ask", answer)
    found = compare("blur", dict.fromkeys((THIS, EARLIER), cast(Any, None)), host(), 1, (), 1)
    assert [side.flags[-1] for side in (found.this, found.earlier)] == ["-DNUMBER_OF_this=1", "-DNUMBER_OF_earlier=1"]
    assert len(list(tmp_path.rglob("pipeline.so"))) == 2


@pytest.mark.slow
def test_a_checkout_against_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revisions, "BUILD", tmp_path)
    with compiler_of(revisions.ROOT) as one, compiler_of(revisions.ROOT) as other:
        found = compare("blur", {THIS: one, EARLIER: other}, host(), 1, (1,), 2)
    assert found.failed == []
    assert found.this.characters == found.earlier.characters > 0
    assert found.speed[1] > 0
    flags = list(compile_pipeline(pipelines.load("blur"), host()).source.flags)
    assert found.this.flags == found.earlier.flags == flags
