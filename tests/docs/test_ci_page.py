"""docs/ci.md as a reader types it: every command, in order, against a service; its workflows against their schemas."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import httpx
import pytest
import yaml
from support.servers import running
from typer.testing import CliRunner

from tilesmith.app.cli import app
from tilesmith.app.cli.ci.status import ERROR, FINE, REGRESSED
from tilesmith.app.comparison.noise import CALLS, ROUNDS
from tilesmith.app.service import logs
from tilesmith.app.service.main import create_app
from tilesmith.app.service.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "ci.md").read_text(encoding="utf-8")
YAML = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S)
OURS = ("tilesmith", "git ", "sed ", "export ", "curl ", "TILESMITH_ADMIN_TOKEN")

logs.configure("json", "error")


def commands():
    without_fences = re.sub(r"^```.*?^```$", "", PAGE, flags=re.M | re.S)
    return [
        line.strip() for line in without_fences.splitlines() if line.startswith("    ") and line[4:].startswith(OURS)
    ]


@pytest.fixture
def url(tmp_path):
    settings = Settings(
        data_dir=tmp_path / "data", schedule_workers=0, job_workers=0, log_level="error", calibrate=False,
        admin_token="choose-a-long-one",
    )  # fmt: skip
    with running(create_app(settings)) as found:
        yield found


@pytest.fixture
def shell(tmp_path):
    """A repository, and the environment of somebody who types there."""
    folder = tmp_path / "camera"
    (folder / "pipelines").mkdir(parents=True)
    (folder / "pipelines" / "soften.yaml").write_text(YAML[0])
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("GITHUB_", "GITLAB_", "CI_", "TILESMITH_"))}
    who = {f"GIT_{w}_{f}": "a@example.org" for w in ("AUTHOR", "COMMITTER") for f in ("NAME", "EMAIL")}
    git = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return folder, kept | who | git


def run(command, shell):
    """Ours in this process, where all that they import is loaded."""
    folder, environment = shell
    if not command.startswith("tilesmith "):
        return subprocess.run(
            command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    with chdir(folder):
        whole = dict.fromkeys(os.environ) | environment
        done = CliRunner().invoke(app, shlex.split(command, comments=True)[1:], env=whole)
    return subprocess.CompletedProcess(command, done.exit_code, done.stdout, done.stderr)


@pytest.mark.slow
def test_the_page_can_be_typed_from_nothing_to_a_job_that_fails(url, shell):
    token, outputs = None, []
    for command in commands():
        if command.startswith("TILESMITH_ADMIN_TOKEN"):
            assert command.split() == ["TILESMITH_ADMIN_TOKEN=choose-a-long-one", "tilesmith", "serve"]
        elif command.startswith("curl"):
            token = ask(command, url)["token"]
        elif command.startswith("export"):
            name = command.removeprefix("export ").partition("=")[0]
            shell[1][name] = url if name == "TILESMITH_SERVER" else token
        else:
            done = run(command, shell)
            expected = re.search(r"# exit status (\d)", command)
            assert done.returncode == int(expected[1] if expected else 0), f"{command}\n{done.stdout}{done.stderr}"
            assert token not in done.stdout + done.stderr
            outputs.append(done.stdout)
    (shown,) = re.findall(r"^    pipeline .*\n    soften .*\n    1 regressed.*$", PAGE, re.M)
    assert any(
        [line.split() for line in o.splitlines()] == [line.split() for line in shown.splitlines()] for o in outputs
    )
    assert any("floats do not band" in o for o in outputs)
    assert (shell[0] / "report.md").read_text().startswith("### tilesmith: 1 regressed")


def ask(command, url):
    """The request that a curl command makes, sent to the service of the test."""
    address, *parts = re.findall(r"http\S+|'[^']*'", command)
    headers = dict(p.strip("'").split(": ", 1) for p in parts[:2])
    answer = httpx.post(address.replace("http://127.0.0.1:8000", url), headers=headers, content=parts[2].strip("'"))
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_figures_of_the_page_are_those_of_the_code():
    assert f"{ROUNDS} rounds" in PAGE
    assert "at least nine times" in PAGE
    assert CALLS == 9
    for status, words in ((FINE, "fine"), (REGRESSED, "something has regressed"), (ERROR, "an error")):
        assert f"| {status} | {words}" in PAGE


@pytest.mark.parametrize(("block", "schema"), [(1, "vendor.github-workflows"), (2, "vendor.gitlab-ci")])
def test_workflows_of_the_page_are_valid(block, schema, tmp_path):
    (tmp_path / "ci.yml").write_text(YAML[block])
    assert yaml.safe_load(YAML[block])
    program = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, tmp_path / "ci.yml"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
