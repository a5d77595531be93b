"""A service, a repository, and the command."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from support.servers import running
from typer.testing import CliRunner

from tilesmith.app.cli import app
from tilesmith.app.service import logs
from tilesmith.app.service.main import create_app
from tilesmith.app.service.settings import Settings

logs.configure("json", "error")
TOKEN = "a-secret-of-the-test"
OF_CI = ("GITHUB_", "GITLAB_", "CI_", "TILESMITH_")

SOFTEN = {
    "format": 1,
    "name": "soften",
    "inputs": [{"name": "photo", "type": "uint16", "dims": ["x", "y"]}],
    "stages": [{"name": "soft", "dims": ["x", "y"], "value": "(photo(x, y) + photo(x + 1, y)) // 2"}],
    "outputs": ["soft"],
    "estimates": {"soft": [[0, 1536], [0, 2560]]},
}
DEEPER = "exp(sin(float32(photo(x, y)))) + exp(cos(float32(photo(x + 1, y))))"
SLOWER = {**SOFTEN, "stages": [{"name": "soft", "dims": ["x", "y"], "value": f"uint16({DEEPER})"}]}


@pytest.fixture(scope="session")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    settings = Settings(
        data_dir=folder, schedule_workers=0, job_workers=1, log_level="error", calibrate=False, admin_token=TOKEN
    )
    with running(create_app(settings)) as found:
        yield found


@pytest.fixture
def outside(monkeypatch):
    """The environment of a person's shell: no CI, no configuration of git but ours."""
    for name in [n for n in os.environ if n.startswith(OF_CI) or n == "CI"]:
        monkeypatch.delenv(name)
    for name, value in {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}.items():
        monkeypatch.setenv(name, value)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "a person")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "person@example.org")
    return monkeypatch


class Repository:
    """A repository of git with pipelines in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commits = 0
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch", "main")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, **documents) -> str:
        """A commit in which the files of those names have those documents (None: not there)."""
        for name, document in documents.items():
            path = self.folder / f"{name}.json"
            path.unlink(missing_ok=True) if document is None else path.write_text(json.dumps(document))
        self.git("add", "-A")
        self.commits += 1
        self.git("commit", "--quiet", "--allow-empty", "-m", f"commit {self.commits}")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(outside, tmp_path):
    found = Repository(tmp_path / "camera")
    outside.chdir(found.folder)
    return found


@pytest.fixture
def ci(repository, url, outside, request):
    """ci("check", ..., status=0): the command in the repository, with a project of the test's own. None: any status."""
    outside.setenv("TILESMITH_SERVER", url)
    outside.setenv("TILESMITH_TOKEN", TOKEN)
    outside.setenv("TILESMITH_PROJECT", f"{request.node.name[:40]}".replace("[", ".").replace("]", ""))

    def run(verb, *arguments, status=0):
        at = () if verb == "history" else ("--platform", "i7-6700")
        done = CliRunner().invoke(app, ["ci", verb, *map(str, arguments), *at], catch_exceptions=False)
        assert status in (None, done.exit_code), f"{done.stdout}\n{done.stderr}"
        assert TOKEN not in done.output
        return done

    return run
