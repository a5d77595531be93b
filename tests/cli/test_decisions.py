"""--fix and --top: what is fixed, from files and by hand, and the candidates that are listed."""

import json

import pytest
from support.machines import machine
from support.tools import require_tool
from typer.testing import CliRunner

from tilesmith.app.cli import app
from tilesmith.app.cli.decisions import fixed
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.search.constraints.document import to_document


def tilesmith(*arguments, status=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result


def documents(*texts):
    return to_document(fixed([str(t) for t in texts], pipelines.load("blur"), False, machine()))


def test_decisions_by_hand():
    assert documents() == {}
    assert documents("blur_x.compute=inline") == {"blur_x": {"compute": "inline"}}
    assert documents("blur_y.tiles.x=256", "blur_y.tiles.y=whole", "blur_y.vector=16") == {
        "blur_y": {"vector": 16, "tiles": {"x": 256, "y": None}}
    }
    assert documents("blur_y.loops=x.inner,y.inner", "blur_y.unroll=", "blur_y.parallel=none") == {
        "blur_y": {"parallel": "none", "loops": ["x.inner", "y.inner"], "unroll": []}
    }
    assert documents("blur_y.stream=true", "blur_y.prefetch=0") == {"blur_y": {"stream": True, "prefetch": 0}}


def test_decisions_of_files_and_what_is_said_after_them(tmp_path):
    (tmp_path / "a.yaml").write_text("blur_y: {tiles: {x: 256, y: 64}, vector: 8}\nblur_x: {compute: inline}\n")
    (tmp_path / "b.json").write_text('{"blur_y": {"tiles": {"y": 32}}}')
    assert documents(tmp_path / "a.yaml", tmp_path / "b.json", "blur_y.vector=16") == {
        "blur_x": {"compute": "inline"},
        "blur_y": {"vector": 16, "tiles": {"x": 256, "y": 32}},
    }


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("blur_x=inline", 2, "expected a file, or STAGE.KEY=VALUE"),
        ("blur_x.tiles=8", 2, "write blur_x.tiles.DIM=8"),
        ("blur_x.tile.x=8", 2, "did you mean blur_x.tiles.x=...?"),
        ("nothing.json", 2, "there is no file 'nothing.json'"),
        ("blurx.compute=inline", 2, "did you mean 'blur_x'?"),
        ("blur_x.vector=7", 2, "/blur_x/vector"),
        ("blur_x.compute=maybe", 2, "'inline', 'root', or a loop"),
        ("blur_y.compute=inline", 3, "fixed_contradiction"),
    ],
)
def test_what_is_wrong_with_a_decision(text, status, said):
    result = tilesmith("schedule", "blur", "--method", "default", "--fix", text, status=status)
    assert said in result.stderr
    assert not result.stdout


def test_who_takes_no_decisions(tmp_path):
    fix = ("--fix", "blur_x.compute=inline")
    assert "takes no fixed decisions" in tilesmith("schedule", "blur", "--method", "taco2019", *fix, status=3).stderr
    (tmp_path / "s.json").write_text("{}")
    refused = tilesmith("schedule", "blur", "--schedule", tmp_path / "s.json", *fix, status=2)
    assert "decides everything" in refused.stderr


def test_the_best_candidates_are_listed():
    common = ("schedule", "harris", "--platform", "i7-6700", "--method", "default")
    lines = tilesmith(*common, "--top", "3").stdout.splitlines()
    at = next(n for n, line in enumerate(lines) if "predicted (" in line)
    assert [line.split()[0] for line in lines[at + 1 : at + 4]] == ["1", "2", "3"]
    told = json.loads(tilesmith(*common, "--top", "3", "--json").stdout)
    assert [c["rank"] for c in told["candidates"]] == [1, 2, 3]
    assert told["candidates"][0]["schedule"]["groups"] == told["groups"]
    assert told["factors"] == []
    assert isinstance(told["separations"], list)
    alone = json.loads(tilesmith(*common, "--json").stdout)
    assert (alone["id"], len(alone["candidates"])) == (told["id"], 1)
    assert "predicted (" not in tilesmith(*common).stdout
    more = json.loads(tilesmith(*common, "--top", "5", "--json").stdout)["candidates"]
    assert [c["schedule"] for c in more[:3]] == [c["schedule"] for c in told["candidates"]]  # whatever is shown


@pytest.mark.slow
def test_the_best_candidates_are_timed(tmp_path, monkeypatch):
    require_tool("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    document = pipelines.document("harris") | {"estimates": {"output": [[2, 90], [2, 70]]}}
    (tmp_path / "small.json").write_text(json.dumps(document))
    common = ("schedule", tmp_path / "small.json", "--method", "default", "--tune", "2")
    told = json.loads(tilesmith(*common, "--json", "--out", tmp_path / "out").stdout)
    tuning = told["tuning"]
    assert [(s["rank"], s["error"]) for s in tuning["samples"]] == [(1, None), (2, None)]
    chosen = next(c for c in told["candidates"] if c["rank"] == tuning["chosen"])
    assert chosen["schedule"]["groups"] == told["groups"]
    assert "tune" in told["timings_ms"]
    assert (tmp_path / "out" / "explain.txt").read_text().startswith(f"Tuned: candidate {tuning['chosen']} ")
    assert json.loads(tilesmith(*common[:-2], "--json").stdout)["id"] != told["id"]
    text = tilesmith(*common).stdout
    assert "median (ms)" in text
    assert "> Tuned: candidate" in text
    (tmp_path / "s.json").write_text("{}")
    refused = tilesmith("run", "blur", "--estimates", "--schedule", tmp_path / "s.json", "--tune", "2", status=2)
    assert "decides everything" in refused.stderr


def test_what_is_fixed_is_in_the_schedule():
    fix = ("--fix", "blur_x.compute=inline", "--fix", "blur_y.tiles.x=256")
    common = ("blur", "--platform", "i7-6700", "--method", "default")
    told = json.loads(tilesmith("schedule", *common, *fix, "--json").stdout)
    (group,) = told["groups"]
    assert {"dim": "x", "size": 256} in group["tiles"]
    assert group["placements"] == [{"stage": "blur_x", "compute": "inline", "store": "inline"}]
    assert told["id"] != json.loads(tilesmith("schedule", *common, "--json").stdout)["id"]
    explained = tilesmith("explain", *common, *fix).stdout
    assert "Fixed decisions of blur_x: compute inline" in explained
    assert "Fixed decisions of blur_y: tiles x 256" in explained
