"""The verbs that need neither a search nor a compiler: what they print, and their exit status."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from tilesmith.app.cli import app
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.errors import Problem
from tilesmith.scheduler.frontends.document.excerpts import excerpt, problem_lines

BAD = {
    "format": 1,
    "name": "bad",
    "inputs": [{"name": "input", "type": "uint8", "dims": ["x", "y"]}],
    "stages": [{"name": "a", "dims": ["x", "y"], "value": "2 * inptu(x, y)"}],
    "outputs": ["a", "b"],
    "estimates": {"a": [[0, 64], [0, 64]]},
}


def tilesmith(*arguments, status=0, stdin=None):
    result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin, catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result


def photograph(path, shape=(24, 32), dtype=np.uint8):
    samples = np.random.default_rng(3).integers(0, np.iinfo(dtype).max, shape, dtype)
    Image.fromarray(samples).save(path)
    return samples


def test_pipelines_are_listed_and_shown():
    listed = tilesmith("pipelines").stdout
    assert [line.split()[0] for line in listed.splitlines()] == list(pipelines.names())
    assert json.loads(tilesmith("pipelines", "show", "harris").stdout) == pipelines.document("harris")
    assert [p["name"] for p in json.loads(tilesmith("pipelines", "--json").stdout)] == list(pipelines.names())


def test_a_pipeline_that_is_not_shipped():
    result = tilesmith("pipelines", "show", "haris", status=2)
    assert "did you mean 'harris'?" in result.stderr


def test_platforms_are_listed_and_shown(tmp_path):
    names = [line.split()[0] for line in tilesmith("platforms").stdout.splitlines()]
    assert names[0] == "host"
    assert "i7-6700" in names
    shown = tilesmith("platforms", "show", "i7-6700").stdout
    (tmp_path / "mine.json").write_text(shown)
    assert tilesmith("platforms", "show", tmp_path / "mine.json").stdout == shown
    assert json.loads(tilesmith("platforms", "detect").stdout)["name"] == "host"
    assert {p["name"] for p in json.loads(tilesmith("platforms", "--json").stdout)} == set(names) - {"host"}


def test_opencl_devices_are_known_and_scheduled_for(monkeypatch):
    assert json.loads(tilesmith("platforms", "show", "nvidia-a100").stdout)["kind"] == "opencl"
    assert tilesmith("schedule", "blur", "--platform", "nvidia-a100").stdout.startswith("blur for nvidia-a100")
    assert "what does not fit" not in tilesmith("schedule", "harris", "--platform", "nvidia-a100").stdout
    told = tilesmith("schedule", "camera_pipe", "--platform", "nvidia-a100").stdout
    assert re.search(r"what does not fit nvidia-a100:\n  \w+, work-groups: ", told)
    assert json.loads(tilesmith("schedule", "blur", "--platform", "nvidia-a100", "--json").stdout)["misfits"] == []
    assert "--device is for --opencl" in tilesmith("platforms", "detect", "--device", "0", status=2).stderr
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    assert "tilesmith[opencl]" in tilesmith("platforms", "detect", "--opencl", status=2).stderr


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("i7-670", None, "did you mean 'i7-6700'?"),
        ("mine.json", '{"kind": "cpu"}', "/threads"),
        ("mine.json", "{", "problem"),
    ],
)
def test_a_platform_that_is_none(tmp_path, monkeypatch, name, text, said):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path(name).write_text(text)
    assert said in tilesmith("platforms", "show", name, status=2).stderr


def test_validate_a_good_document(tmp_path):
    assert "harris is valid: 1 input, 0 params, 12 stages" in tilesmith("validate", "harris").stdout
    text = json.dumps(pipelines.document("blur"))
    for name in ("blur.json", "blur.yaml", "blur"):
        (tmp_path / name).write_text(text)
        assert "blur is valid" in tilesmith("validate", tmp_path / name).stdout
    assert json.loads(tilesmith("validate", "-", "--json", stdin=text).stdout)["valid"] is True


def test_validate_tells_every_problem_and_marks_the_column(tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(BAD))
    result = tilesmith("validate", path, status=2)
    assert not result.stdout
    lines = result.stderr.splitlines()
    assert lines[0] == f"error: {path} has 2 problems"
    at = next(n for n, line in enumerate(lines) if line.startswith(f"  {path}:1:"))
    place, shown, mark, hint = lines[at + 1 : at + 5]
    assert place == "    at /stages/0/value, of stage 'a'"
    assert shown[mark.index("^") :].startswith("inptu(x, y)")
    assert shown.startswith("     1 | ")
    assert "did you mean 'input'?" in hint
    assert "/outputs/1" in result.stderr
    told = json.loads(tilesmith("validate", path, "--json", status=2).stdout)
    assert told["valid"] is False
    assert [(p["pointer"], p.get("column")) for p in told["problems"]] == [("/stages/0/value", 5), ("/outputs/1", None)]


def test_validate_from_the_standard_input():
    result = tilesmith("validate", "-", status=2, stdin=json.dumps(BAD))
    assert "the document on the standard input has 2 problems" in result.stderr


@pytest.mark.parametrize(
    ("doc", "said"),
    [
        ("haris", "did you mean 'harris'?"),
        ("missing.yaml", "no pipeline 'missing.yaml'"),
        (".", ". is a directory"),
        (__file__, f"'tilesmith import python {__file__}:function' prints the document"),
        ("a\0b", "cannot be read"),
    ],
)
def test_a_doc_that_is_none(doc, said):
    assert said in tilesmith("validate", doc, status=2).stderr


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1, 2]", "a: &a [*a]", "\xff\x00", "- " * 100_000, "[" * 100_000, json.dumps({"x": "9" * 3_000_000})],
    ids=["empty", "cut", "list", "alias", "binary", "deep yaml", "deep json", "long"],
)
@pytest.mark.parametrize("suffix", [".json", ".yaml", ""])
def test_text_that_is_no_document(tmp_path, text, suffix):
    path = tmp_path / f"doc{suffix}"
    path.write_text(text, encoding="latin-1")
    result = tilesmith("validate", path, status=2)
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr


def test_usage_errors_end_with_2():
    tilesmith("no-such-verb", status=2)
    tilesmith("validate", status=2)
    tilesmith("run", "harris", "--no-such-option", status=2)
    tilesmith("run", "harris", "--repeat", "0", status=2)


def test_help_and_version():
    for verb in ("schedule", "explain", "validate", "run", "interpret", "pipelines", "platforms", "serve"):
        assert verb in tilesmith("--help").stdout
        assert "Usage" in tilesmith(verb, "--help").stdout
    assert tilesmith("--version").stdout.startswith("tilesmith ")


def test_interpret_a_photograph(tmp_path):
    samples = photograph(tmp_path / "in.png")
    arguments = ("--input", f"input={tmp_path / 'in.png'}", "--output", f"output={tmp_path / 'out.png'}")
    result = tilesmith("interpret", "sobel", *arguments)
    assert f"wrote {tmp_path / 'out.png'}: output, 32 x 24 from 0,0" in result.stdout
    wide = np.pad(samples.astype(np.int64), 1, mode="edge")
    column = wide[:-2] + 2 * wide[1:-1] + wide[2:]
    row = wide[:, :-2] + 2 * wide[:, 1:-1] + wide[:, 2:]
    magnitude = np.sqrt((column[:, 2:] - column[:, :-2]) ** 2 + (row[2:] - row[:-2]) ** 2)
    expected = np.clip(np.rint(magnitude), 0, 255)
    assert np.abs(np.asarray(Image.open(tmp_path / "out.png")).astype(float) - expected).max() <= 1


def test_without_a_region_the_largest_possible_is_computed(tmp_path):
    array = np.random.default_rng(1).random((3, 20, 30), dtype=np.float32)
    np.save(tmp_path / "in.npy", array)
    common = ("interpret", "harris", "--json", "--output", f"output={tmp_path / 'out.npy'}")
    told = json.loads(tilesmith(*common, "--input", f"input={tmp_path / 'in.npy'}").stdout)
    assert told["outputs"]["output"]["region"] == [[2, 26], [2, 16]]
    whole = np.load(tmp_path / "out.npy")
    assert whole.shape == (16, 26)
    told = json.loads(tilesmith(*common, "--input", f"input={tmp_path / 'in.npy'}@-5,100,0").stdout)
    assert told["outputs"]["output"]["region"] == [[-3, 26], [102, 16]]
    assert np.array_equal(np.load(tmp_path / "out.npy"), whole)
    tilesmith(*common, "--input", f"input={tmp_path / 'in.npy'}", "--region", "output=4:3,5:2")
    assert np.array_equal(np.load(tmp_path / "out.npy"), whole[3:5, 2:5])


def test_a_region_beyond_the_input_is_refused(tmp_path):
    np.save(tmp_path / "in.npy", np.zeros((3, 20, 30), np.float32))
    common = ("interpret", "harris", "--input", f"input={tmp_path / 'in.npy'}")
    error = tilesmith(*common, "--region", "output=0:30,2:16", status=2).stderr
    assert "input" in error
    assert "-2..31" in error
    np.save(tmp_path / "in.npy", np.zeros((3, 3, 3), np.float32))
    assert "too small" in tilesmith(*common, status=2).stderr


def test_pictures_that_do_not_fit_are_told_all_at_once(tmp_path):
    photograph(tmp_path / "gray.png")
    result = tilesmith("interpret", "harris", "--input", f"input={tmp_path / 'gray.png'}", status=2)
    assert "has 1 channel (gray), but input 'input' wants 3" in result.stderr
    assert "--convert" in result.stderr
    tilesmith("interpret", "harris", "--input", f"input={tmp_path / 'gray.png'}", "--convert")
    result = tilesmith("interpret", "blur", "--input", f"input={tmp_path / 'gray.png'}", status=2)
    assert "8 bit a sample, but input 'input' is uint16" in result.stderr


def test_options_of_interpret_are_told_all_at_once():
    result = tilesmith("interpret", "harris", "--input", "inptu=a", "--output", "x=y.bmp", "--param", "q", status=2)
    assert result.stderr.count("error:") == 4


def test_estimates_are_the_same_every_time(tmp_path):
    small = pipelines.document("sobel") | {"estimates": {"input": [[0, 40], [0, 30]], "output": [[0, 40], [0, 30]]}}
    (tmp_path / "small.json").write_text(json.dumps(small))
    for name in ("a", "b"):
        tilesmith("interpret", tmp_path / "small.json", "--estimates", "--output", f"output={tmp_path / name}.npy")
    first = np.load(tmp_path / "a.npy")
    assert first.shape == (30, 40)
    assert np.array_equal(first, np.load(tmp_path / "b.npy"))


def test_the_excerpt_of_a_long_expression_keeps_the_place():
    expression = " + ".join(f"input(x + {n})" for n in range(2000))
    column = expression.index("input(x + 1234)") + 1
    line, mark = excerpt(expression, column)
    assert len(line) < 120
    assert line[mark.index("^") :].startswith("input(x + 1234)")
    assert excerpt("a\tb\nc", 5) == ("a b c", "    ^")


def test_problems_of_text_have_lines_and_those_of_data_have_pointers(tmp_path):
    text = "name: p\nstages:\n  - name: blurred\n    dims: [x]\n    value: >\n      1 +\n      imgg(x)\n"
    (tmp_path / "p.yaml").write_text(text)
    told = tilesmith("validate", tmp_path / "p.yaml", status=2).stderr
    assert f"{tmp_path / 'p.yaml'}:7:7: No input, stage or function is called 'imgg'." in told
    assert "    at /stages/0/value, of stage 'blurred'\n     7 |       imgg(x)\n       |       ^\n" in told
    assert "  <stdin>:7:7: " in tilesmith("validate", "-", status=2, stdin=text).stderr
    (problem,) = [Problem("unknown_key", "/a", "There is no key 'a' here.", "did you mean 'b'?")]
    assert list(problem_lines((problem,), "what --fix says", None)) == [
        "", "  at /a: There is no key 'a' here. [unknown_key]", "    hint: did you mean 'b'?",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--database", "mysql://x"), "--database"),
        (("--host", "0.0.0.0", "--port", "0"), "no token"),
        (("--host", "no such host"), "cannot listen"),
    ],
)
def test_a_service_that_cannot_be(tmp_path, monkeypatch, options, said):
    monkeypatch.setenv("TILESMITH_DATA_DIR", str(tmp_path))
    assert said in tilesmith("serve", *options, status=2).stderr


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("sqlite:////proc/none.db", "unable to open"),
        ("sqlite:///{}/text.db", "not a database"),
        ("postgresql+psycopg://me:secret@127.0.0.1:1/none", "refused"),
    ],
)
def test_a_store_that_cannot_be_used(tmp_path, monkeypatch, store, said):
    monkeypatch.setenv("TILESMITH_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TILESMITH_DATABASE_WAIT_S", "0")
    (tmp_path / "text.db").write_text("a text, and a long one: no database has such a first line\n" * 20)
    for verb in (("serve", "--port", 0, "--no-calibrate"), ("tokens", "list")):
        result = tilesmith(*verb, "--database", store.format(tmp_path), status=2)
        assert said in result.stderr
        assert "secret" not in result.stderr


def test_a_port_that_is_taken(tmp_path, monkeypatch):
    import socket

    monkeypatch.setenv("TILESMITH_DATA_DIR", str(tmp_path))
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        result = tilesmith("serve", "--port", other.getsockname()[1], status=2)
    assert "already in use" in result.stderr


def test_help_loads_nothing_heavy():
    code = "import sys, tilesmith.app.cli; print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    modules = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    heavy = {"numpy", "networkx", "pydantic", "fastapi", "sqlalchemy", "skimage", "PIL", "httpx", "rich", "yaml"}
    assert not heavy & set(modules)


def test_a_schedule_for_a_cpu_loads_no_halide_and_no_opencl():
    code = "import sys; from tilesmith.app.cli.sources import load_pipeline; load_pipeline('blur'); "
    code += "import tilesmith.scheduler.compiler; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "tilesmith.scheduler.codegen.c.emitter" in modules
    assert "tilesmith.scheduler.frontends.halide.importer" in modules
    assert {m for m in modules if m.startswith("tilesmith.scheduler.frontends.halide.")} <= {
        f"tilesmith.scheduler.frontends.halide.{name}" for name in ("importer", "options", "text")
    }
    assert "tilesmith.scheduler.codegen.opencl.emitter" not in modules


def test_a_reader_that_goes_away_is_no_error():
    read, write = os.pipe()
    os.close(read)
    with io.FileIO(write, "w") as closed:
        code = "from tilesmith.app.cli import main; main()"
        arguments = [sys.executable, "-c", code, "pipelines", "show", "interpolate"]
        result = subprocess.run(arguments, stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode in (0, 1)
    assert "Traceback" not in result.stderr
