"""schedule, explain and run: what they print and write, and every exit status."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from tilesmith import platforms
from tilesmith.app.cli import app
from tilesmith.app.runtime.errors import RunError
from tilesmith.scheduler import pipelines

pytestmark = pytest.mark.slow
COPY = {
    "format": 1,
    "name": "copy",
    "inputs": [{"name": "input", "type": "float32", "dims": ["x", "y"]}],
    "stages": [{"name": "output", "dims": ["x", "y"], "value": "input(x, y)"}],
    "outputs": ["output"],
    "estimates": {"output": [[0, 40], [0, 30]]},
}


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    """A cache of libraries for these tests alone."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


def tilesmith(*arguments, status=0, stdin=None):
    result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin, catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result


def as_json(*arguments):
    return json.loads(tilesmith(*arguments, "--json").stdout)


@pytest.mark.parametrize("name", ["blur", "harris", "bilateral_grid"])
def test_schedule_as_json(name):
    told = as_json("schedule", name, "--platform", "i7-6700")
    assert {"id", "pipeline", "platform", "method", "degraded", "groups", "predicted", "timings_ms"} <= set(told)
    assert (told["pipeline"], told["platform"], told["method"]) == (name, "i7-6700", "default")
    assert set(told["timings_ms"]) == {"parse", "analysis", "search", "lower", "passes", "emit", "total"}
    assert set(told["groups"][-1]) >= {"output", "loops", "tiles", "placements"}
    assert told["predicted"]["unit"]


def test_the_same_question_has_the_same_id():
    first = as_json("schedule", "blur", "--platform", "i7-6700")
    again = as_json("schedule", "blur", "--platform", "i7-6700")
    assert again["id"] == first["id"]
    assert again["groups"] == first["groups"]
    others = [
        as_json("schedule", "blur", "--platform", "i7-5930K"),
        as_json("schedule", "blur", "--platform", "i7-6700", "--strict"),
        as_json("schedule", "sobel", "--platform", "i7-6700"),
    ]
    assert len({first["id"], *(o["id"] for o in others)}) == 4
    text = json.dumps(pipelines.document("blur"))
    assert (
        json.loads(tilesmith("schedule", "-", "--platform", "i7-6700", "--json", stdin=text).stdout)["id"]
        == first["id"]
    )


def test_schedule_prints_the_loop_nest_and_explain_the_decisions():
    printed = tilesmith("schedule", "blur", "--platform", "i7-6700").stdout
    assert printed.startswith("blur for i7-6700 by default, id ")
    assert "blur_x" in printed
    explained = tilesmith("explain", "unsharp", "--platform", "i7-6700").stdout
    assert "blur_x" in explained
    assert "Alg. 1" in explained


def test_out_writes_every_form(tmp_path):
    out = tmp_path / "new" / "out"
    told = as_json("schedule", "harris", "--platform", "i7-6700", "--out", out)
    names = {
        "harris.c",
        "harris.h",
        "schedule.json",
        "loopnest.txt",
        "schedule.halide.h",
        "schedule.halide.py",
        "explain.txt",
    }
    assert {p.name for p in out.iterdir()} == names
    assert {os.path.basename(f) for f in told["files"]} == names
    assert all(p.stat().st_size for p in out.iterdir())
    assert "harris.h" in (out / "harris.c").read_text()
    assert json.loads((out / "schedule.json").read_text())["groups"] == told["groups"]
    again = tmp_path / "again"
    tilesmith("schedule", "harris", "--platform", "i7-6700", "--out", again)
    assert all((again / n).read_bytes() == (out / n).read_bytes() for n in names)


def test_out_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be written" in tilesmith("schedule", "blur", "--out", tmp_path / "file" / "x", status=2).stderr


def test_a_schedule_written_by_hand(tmp_path):
    tilesmith("schedule", "blur", "--platform", "i7-6700", "--out", tmp_path)
    written = json.loads((tmp_path / "schedule.json").read_text())
    written["groups"][0]["tiles"][-1]["size"] = 32
    (tmp_path / "mine.json").write_text(json.dumps(written))
    told = as_json("schedule", "blur", "--schedule", tmp_path / "mine.json")
    assert told["groups"] == written["groups"]
    assert told["predicted"] is None
    by_hand, found = tmp_path / "by_hand.npy", tmp_path / "found.npy"
    tilesmith("run", "blur", "--estimates", "--schedule", tmp_path / "mine.json", "--output", f"blur_y={by_hand}")
    tilesmith("run", "blur", "--estimates", "--output", f"blur_y={found}")
    assert np.array_equal(np.load(by_hand), np.load(found))
    tilesmith("schedule", "blur", "--schedule", tmp_path / "mine.json", "--out", tmp_path)
    assert "by hand" in (tmp_path / "explain.txt").read_text()


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda s: s["groups"][0]["placements"].clear(), 3),
        (lambda s: s["groups"][0].update(output="nothing"), 3),
        (lambda s: s["groups"][0].update(typo=1), 2),
    ],
)
def test_a_schedule_by_hand_that_is_wrong(tmp_path, change, status):
    tilesmith("schedule", "blur", "--platform", "i7-6700", "--out", tmp_path)
    written = json.loads((tmp_path / "schedule.json").read_text())
    change(written)
    (tmp_path / "mine.json").write_text(json.dumps(written))
    result = tilesmith("schedule", "blur", "--schedule", tmp_path / "mine.json", status=status)
    assert result.stderr.startswith("error: ")


def test_an_unknown_method():
    assert "did you mean 'default'?" in tilesmith("schedule", "blur", "--method", "defautl", status=2).stderr


@pytest.mark.parametrize("name", ["gaussian3x3", "laplacian_sharpen", "sobel"])
def test_run_equals_interpret_on_a_photograph(tmp_path, name):
    samples = np.random.default_rng(7).integers(0, 256, (37, 53, 3), np.uint8)
    Image.fromarray(samples).save(tmp_path / "in.png")
    common = ("--convert", "--input", f"input={tmp_path / 'in.png'}")
    told = as_json(
        "run", name, *common, "--output", f"output={tmp_path / 'run.png'}", "--repeat", "3", "--threads", "2"
    )
    tilesmith("interpret", name, *common, "--output", f"output={tmp_path / 'interpreted.png'}")
    assert np.array_equal(*(np.asarray(Image.open(tmp_path / f"{n}.png")) for n in ("run", "interpreted")))
    assert {"schedule_id", "threads", "times_ms"} <= set(told)
    assert told["threads"] == 2
    assert len(told["times_ms"]) == 3
    assert all(t > 0 for t in told["times_ms"])


def test_run_equals_interpret_on_a_region_that_begins_anywhere(tmp_path):
    np.save(tmp_path / "in.npy", np.random.default_rng(7).random((3, 40, 50), dtype=np.float32))
    common = ("harris", "--input", f"input={tmp_path / 'in.npy'}@-7,100,0", "--region", "output=0:31,110:17")
    tilesmith("run", *common, "--output", f"output={tmp_path / 'run.npy'}")
    tilesmith("interpret", *common, "--output", f"output={tmp_path / 'interpreted.npy'}")
    expected = np.load(tmp_path / "interpreted.npy")
    assert expected.shape == (17, 31)
    assert np.abs(np.load(tmp_path / "run.npy") - expected).max() <= 1e-5 * np.abs(expected).max()


def test_run_on_estimates():
    printed = tilesmith("run", "blur", "--estimates", "--repeat", "2").stdout
    assert re.search(r": \d+\.\d{3} ms, the best of 2; median \d+\.\d{3} ms, four of five in ", printed)
    assert re.search(r": \d+\.\d{3} ms\n", tilesmith("run", "blur", "--estimates").stdout)


def test_an_input_is_not_overwritten(tmp_path):
    (tmp_path / "copy.json").write_text(json.dumps(COPY))
    Image.fromarray(np.zeros((20, 30), np.uint8)).save(tmp_path / "in.png")
    (tmp_path / "link.png").symlink_to(tmp_path / "in.png")
    before = (tmp_path / "in.png").read_bytes()
    for name in ("in.png", "link.png"):
        files = ("--input", f"input={tmp_path / 'in.png'}", "--output", f"output={tmp_path / name}")
        said = " ".join(tilesmith("interpret", tmp_path / "copy.json", *files, status=2).stderr.split())
        assert "would overwrite the input 'input' hint: name another file" in said
    assert (tmp_path / "in.png").read_bytes() == before


def test_a_picture_that_shows_nothing_is_told(tmp_path):
    np.save(tmp_path / "in.npy", np.linspace(0, 0.01, 1200, dtype=np.float32).reshape(30, 40))
    (tmp_path / "copy.json").write_text(json.dumps(COPY))
    common = ("interpret", tmp_path / "copy.json", "--input", f"input={tmp_path / 'in.npy'}")
    said = tilesmith(*common, "--output", f"output={tmp_path / 'out.png'}").stderr
    assert "out.png: it is nearly black" in said
    assert "--stretch" in said
    for quiet in (
        ("--output", f"output={tmp_path / 'out.png'}", "--stretch"),
        ("--output", f"output={tmp_path}/o.npy"),
    ):
        assert "nearly black" not in tilesmith(*common, *quiet).stderr


@pytest.mark.parametrize("verb", ["run", "interpret"])
def test_an_array_with_channels_last_is_bad_usage(tmp_path, verb):
    np.save(tmp_path / "in.npy", np.zeros((20, 30, 3), np.float32))
    files = ("--input", f"input={tmp_path / 'in.npy'}", "--output", f"output={tmp_path / 'out.npy'}")
    result = tilesmith(verb, "harris", *files, status=2)
    assert "save array.transpose(2, 0, 1)" in " ".join(result.stderr.split())
    assert not (tmp_path / "out.npy").exists()


def test_a_region_outside_the_input_is_bad_usage(tmp_path):
    np.save(tmp_path / "in.npy", np.zeros((3, 20, 30), np.float32))
    result = tilesmith(
        "run", "harris", "--input", f"input={tmp_path / 'in.npy'}", "--region", "output=0:30,2:16", status=2
    )
    assert "-2..31" in result.stderr


def test_a_compiler_that_refuses_or_is_missing(tmp_path):
    description = platforms.to_document(platforms.load("host"))
    description["compiler"] |= {"flags": ["-march=no-such-machine"]}
    (tmp_path / "host.json").write_text(json.dumps(description))
    result = tilesmith("run", "sobel", "--estimates", "--platform", tmp_path / "host.json", status=4)
    assert "no-such-machine" in result.stderr


def test_a_run_that_needs_more_memory_than_there_is(tmp_path):
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "in.png")
    common = ("sobel", "--input", f"input={tmp_path / 'in.png'}", "--region", "output=0:2000000000,0:1000000")
    assert "memory" in tilesmith("run", *common, status=5).stderr
    assert "MiB" in tilesmith("interpret", *common, status=5).stderr


def test_a_run_that_fails(monkeypatch):
    def fail(*_, **__):
        raise RunError("run_timeout", "the run took longer than 120 s", "killed")

    monkeypatch.setattr("tilesmith.app.runtime.run.run", fail)
    result = tilesmith("run", "sobel", "--estimates", status=5)
    assert result.stderr == "error: the run took longer than 120 s\n  killed\n"


def test_a_search_without_a_result(monkeypatch):
    from tilesmith.scheduler.errors import ScheduleError

    def fail(*_, **__):
        raise ScheduleError("no tile fits the caches")

    monkeypatch.setattr("tilesmith.scheduler.compiler.compile_pipeline", fail)
    assert tilesmith("schedule", "sobel", status=3).stderr == "error: no tile fits the caches\n"


def test_quiet_when_not_a_terminal():
    code = "from tilesmith.app.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "sobel", "--estimates", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


def test_a_compiler_that_is_not_there_is_told_ahead_of_the_search(tmp_path, monkeypatch):
    def searched(*_):
        raise AssertionError("the search has begun")

    monkeypatch.setattr("tilesmith.app.cli.schedules.answer_for", searched)
    machine = platforms.get("i7-6700")
    lacking = machine.model_copy(update={"compiler": machine.compiler.model_copy(update={"command": "gcc-99"})})
    document = tmp_path / "machine.json"
    document.write_text(lacking.model_dump_json())
    result = CliRunner().invoke(app, ["run", "blur", "--platform", str(document), "--estimates"])
    assert result.exit_code != 0
    assert "gcc-99" in result.stderr
