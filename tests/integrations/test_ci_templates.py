"""The action of GitHub and the job of GitLab: valid, run as far as a shell can, and nobody's text becomes a command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "integrations"
ACTION, JOB = FOLDER / "github" / "action.yml", FOLDER / "gitlab" / "tilesmith.yml"
STEPS = {step["name"]: step for step in yaml.safe_load(ACTION.read_text())["runs"]["steps"]}
EVIL = "$(touch evil); `touch evil` & touch evil #'\"\\"
SOFTEN = {
    "format": 1,
    "name": "soften",
    "inputs": [{"name": "photo", "type": "uint16", "dims": ["x", "y"]}],
    "stages": [{"name": "soft", "dims": ["x", "y"], "value": "(photo(x, y) + photo(x + 1, y)) // 2"}],
    "outputs": ["soft"],
    "estimates": {"soft": [[0, 1536], [0, 2560]]},
}


@pytest.mark.parametrize(("file", "schema"), [(ACTION, "vendor.github-actions"), (JOB, "vendor.gitlab-ci")])
def test_it_is_valid(file, schema):
    program = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_expression_is_in_the_text_of_a_shell():
    for step in STEPS.values():
        assert "${{" not in step["run"]
    every_input = set(yaml.safe_load(ACTION.read_text())["inputs"])
    used = set(re.findall(r"inputs\.([a-z-]+)", ACTION.read_text()))
    assert used == every_input


def test_the_package_that_the_action_installs_is_the_one_it_is_in():
    path = re.search(r'"\$GITHUB_ACTION_PATH/(\S+)"', STEPS["Install"]["run"])[1]
    assert (ACTION.parent / path / "pyproject.toml").resolve() == FOLDER.parent / "pyproject.toml"


class Runner:
    """A machine that runs steps in a repository."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.temporary = folder / "repository", folder / "temporary"
        programs = folder / "bin"
        for made in (self.folder, self.temporary, programs):
            made.mkdir()
        self.write(
            programs / "tilesmith", f'exec {sys.executable} -c "from tilesmith.app.cli import main; main()" "$@"'
        )
        self.write(programs / "gh", f'printf "%s\\n" "$@" >> {folder}/gh; cat {folder}/comments 2>/dev/null || true')
        self.asked, self.comments = folder / "gh", folder / "comments"
        self.environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
            "HOME": str(folder),
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
            "GITHUB_REPOSITORY": "owner/camera",
        }
        self.output, self.summary = folder / "output", folder / "summary"

    @staticmethod
    def write(path: Path, script: str) -> None:
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)

    def run(self, step: str, **variables: str) -> subprocess.CompletedProcess[str]:
        empty = dict.fromkeys(STEPS[step].get("env", {}), "")
        return self.shell(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[step]["run"]], empty | variables
        )

    def shell(self, program: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
        environment = self.environment | variables
        return subprocess.run(
            program, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=120
        )


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path)


@pytest.fixture
def arguments(runner, tmp_path):
    """arguments(DOCUMENTS=...): the arguments that the step Check gives to the command."""
    Runner.write(tmp_path / "bin" / "told", f'printf "%s\\n" "$@" > {tmp_path}/told; exit 1')
    given = {"COMMAND": "told", "FAIL_ABOVE": "5%", "MEASURE": "false", "GITHUB_EVENT_NAME": "pull_request"}
    given |= {"GITHUB_REF_NAME": "7/merge", "DEFAULT_BRANCH": "main"}

    def told(**variables):
        done = runner.run("Check", **(given | variables))
        assert done.returncode == 1, done.stderr
        return (tmp_path / "told").read_text().splitlines()

    return told


def test_a_pull_request_is_compared_with_its_base(arguments):
    found = arguments(DOCUMENTS="a.yaml\n\nb c.yaml\n", PLATFORMS="i7-6700\nmine.json\n", GITHUB_BASE_REF="release")
    assert found[:4] == ["ci", "check", "--fail-above", "5%"]
    assert found[10:] == [
        "--platform",
        "i7-6700",
        "--platform",
        "mine.json",
        "--baseline",
        "release",
        "--",
        "a.yaml",
        "b c.yaml",
    ]


def test_a_push_to_the_default_branch_is_recorded(arguments):
    push = {"DOCUMENTS": "a", "GITHUB_EVENT_NAME": "push", "GITHUB_REF_NAME": "main"}
    assert "--record" in arguments(**push)
    assert "--record" not in arguments(**push | {"GITHUB_REF_NAME": "other"})
    assert arguments(**push)[arguments(**push).index("--baseline") + 1] == "main"


@pytest.mark.parametrize(
    ("measure", "expected"), [("false", []), ("true", ["--measure"]), ("gate", ["--measure", "--gate-measured"])]
)
def test_measuring_is_an_input(arguments, measure, expected):
    assert [a for a in arguments(DOCUMENTS="a", MEASURE=measure) if "measure" in a] == expected


def test_the_text_of_others_is_no_command(arguments, runner):
    names = (
        "DOCUMENTS",
        "PLATFORMS",
        "BASELINE",
        "FAIL_ABOVE",
        "TILESMITH_PROJECT",
        "GITHUB_BASE_REF",
        "TILESMITH_TOKEN",
    )
    found = arguments(**dict.fromkeys(names, EVIL), MEASURE=EVIL, GITHUB_REF_NAME=EVIL, GITHUB_EVENT_NAME="push")
    assert found[-1] == EVIL
    assert found.index("--") == len(found) - 2
    runner.run("Comment", NUMBER=EVIL)
    assert not list(runner.folder.rglob("evil"))


def test_an_error_ends_the_step_with_its_own_status(runner):
    (runner.folder / "soften.json").write_text(json.dumps(SOFTEN))
    base = {
        "COMMAND": "tilesmith",
        "DOCUMENTS": "soften.json",
        "PLATFORMS": "i7-6700",
        "FAIL_ABOVE": "5%",
        "MEASURE": "false",
    }
    wrong = runner.run(
        "Check", **base, GITHUB_EVENT_NAME="push", GITHUB_REF_NAME="x", TILESMITH_SERVER="http://no address"
    )
    assert wrong.returncode == 2
    assert "cannot be asked" in wrong.stderr
    assert runner.output.read_text().splitlines()[0] == f"markdown={runner.temporary}/tilesmith.markdown"


def test_a_comment_is_made_changed_and_left_alone(runner):
    variables = {"NUMBER": "7"}
    assert runner.run("Comment", **variables).returncode == 0
    assert not runner.asked.exists(), "there was no check"
    file = runner.temporary / "tilesmith.markdown"
    file.write_text("")
    runner.run("Comment", **variables)
    assert "POST" not in runner.asked.read_text(), "nothing moved: silent"
    file.write_text("### tilesmith: 1 regressed\n")
    runner.run("Comment", **variables)
    assert runner.asked.read_text().splitlines()[-4:] == [
        "POST",
        "repos/owner/camera/issues/7/comments",
        "-F",
        f"body=@{file}",
    ]
    runner.comments.write_text("42\n43\n")
    file.write_text("")
    runner.run("Comment", **variables)
    assert "repos/owner/camera/issues/comments/42" in runner.asked.read_text()
    assert file.read_text() == "### tilesmith: nothing moved\n"


def job_script() -> str:
    return yaml.safe_load(JOB.read_text())["tilesmith"]["script"][0]


def gitlab(runner, **variables):
    job = yaml.safe_load(JOB.read_text())["tilesmith"]
    given = {n: str(v) for n, v in job["variables"].items()} | {"CI_DEFAULT_BRANCH": "main"}
    return runner.shell(["sh", "-c", job["script"][0]], given | variables)


def test_the_job_of_gitlab_passes_arguments_as_they_are(runner, tmp_path):
    Runner.write(tmp_path / "bin" / "tilesmith", f'printf "%s\\n" "$@" > {tmp_path}/told')
    done = gitlab(
        runner, TILESMITH_DOCUMENTS=f"a b.yaml\n*.json\n{EVIL}", TILESMITH_PLATFORMS="x\ny", CI_COMMIT_BRANCH="main"
    )
    assert done.returncode == 0, done.stderr
    told = (tmp_path / "told").read_text().splitlines()
    assert told[8:] == [
        "--record", "--platform", "x", "--platform", "y", "--fail-above", "5%", "--", "a b.yaml", "*.json", EVIL,
    ]  # fmt: skip
    assert not list(runner.folder.rglob("evil"))
    gitlab(runner)
    assert "--record" not in (tmp_path / "told").read_text()


@pytest.mark.slow
def test_the_jobs_gate_against_a_service(runner, tmp_path):
    from support.servers import running

    from tilesmith.app.service.main import create_app
    from tilesmith.app.service.settings import Settings

    document = runner.folder / "soften.json"
    document.write_text(json.dumps(SOFTEN))
    settings = Settings(
        data_dir=tmp_path / "data", schedule_workers=0, job_workers=0, log_level="error", calibrate=False
    )
    github = {
        "COMMAND": "tilesmith", "DOCUMENTS": "soften.json", "PLATFORMS": "i7-6700", "FAIL_ABOVE": "5%",
        "MEASURE": "false", "DEFAULT_BRANCH": "main", "GITHUB_ACTIONS": "true",
    }  # fmt: skip
    with running(create_app(settings)) as url:
        push = github | {
            "TILESMITH_SERVER": url,
            "GITHUB_EVENT_NAME": "push",
            "GITHUB_REF_NAME": "main",
            "GITHUB_SHA": "a" * 40,
        }
        done = runner.run("Check", **push)
        assert done.returncode == 0, done.stderr
        deeper = "uint16(exp(sin(float32(photo(x, y)))))"
        document.write_text(json.dumps(SOFTEN | {"stages": [{"name": "soft", "dims": ["x", "y"], "value": deeper}]}))
        request = {
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_HEAD_REF": "f",
            "GITHUB_BASE_REF": "main",
            "GITHUB_SHA": "b" * 40,
        }
        done = runner.run("Check", **push | request)
        assert done.returncode == 1, done.stderr
        assert "| soften |" in runner.summary.read_text()
        merge = {
            "TILESMITH_SERVER": url, "TILESMITH_DOCUMENTS": "soften.json", "TILESMITH_PLATFORMS": "i7-6700",
            "TILESMITH_PROJECT": "owner.camera", "GITLAB_CI": "true", "CI_COMMIT_SHA": "c" * 40,
            "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "f", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        }  # fmt: skip
        assert gitlab(runner, **merge).returncode == 1
    tree = ElementTree.parse(runner.folder / "tilesmith.xml")
    assert [f.get("type") for f in tree.iter("failure")] == ["regressed"]
