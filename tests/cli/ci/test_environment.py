"""The place of a commit: by GitHub Actions, by GitLab CI, by git, or not at all."""

from __future__ import annotations

import json

import pytest

from tilesmith.app.cli.ci.environment import Found, ancestors, found, resolved
from tilesmith.app.cli.ci.target import target
from tilesmith.app.cli.report import UsageError

HEAD, MERGE = "a" * 40, "b" * 40
GITHUB = {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "owner/camera", "GITHUB_SHA": MERGE}
GITLAB = {
    "GITLAB_CI": "true",
    "CI_PROJECT_PATH": "group/sub/camera",
    "CI_COMMIT_SHA": MERGE,
    "CI_DEFAULT_BRANCH": "trunk",
}


def test_a_push_on_github(tmp_path):
    told = found(GITHUB | {"GITHUB_REF_NAME": "main", "GITHUB_HEAD_REF": "", "GITHUB_BASE_REF": ""}, tmp_path)
    assert told == Found("owner.camera", "main", MERGE, None)


@pytest.mark.parametrize(
    ("event", "commit"),
    [
        ({"pull_request": {"head": {"sha": HEAD}}}, HEAD),
        ({"pull_request": {"head": {"sha": "$(evil)"}}}, MERGE),
        ([], MERGE),
    ],
)
def test_a_pull_request_on_github_is_about_its_head_not_the_merge(tmp_path, event, commit):
    (tmp_path / "event.json").write_text(json.dumps(event))
    variables = {
        "GITHUB_HEAD_REF": "wider", "GITHUB_BASE_REF": "main", "GITHUB_REF_NAME": "7/merge",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
    }  # fmt: skip
    assert found(GITHUB | variables, tmp_path) == Found("owner.camera", "wider", commit, "main")


def test_a_branch_and_a_merge_request_on_gitlab(tmp_path):
    branch = GITLAB | {"CI_COMMIT_REF_NAME": "main"}
    assert found(branch, tmp_path) == Found("group.sub.camera", "main", MERGE, "trunk")
    request = {"SOURCE_BRANCH_NAME": "wider", "SOURCE_BRANCH_SHA": HEAD, "TARGET_BRANCH_NAME": "main"}
    merge = GITLAB | {f"CI_MERGE_REQUEST_{name}": value for name, value in request.items()}
    assert found(merge, tmp_path) == Found("group.sub.camera", "wider", HEAD, "main")


def test_git_tells_what_ci_does_not(repository):
    commit = repository.commit()
    assert found({}, repository.folder) == Found("camera", "main", commit, None)
    repository.git("checkout", "--quiet", "--detach")
    assert found({}, repository.folder).branch is None


def test_outside_of_everything_nothing_is_known(outside, tmp_path):
    outside.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    outside.chdir(tmp_path)
    assert found({}, tmp_path) == Found()
    with (
        target("http://127.0.0.1:1", None, None, None, None, {}) as to,
        pytest.raises(UsageError, match="neither CI nor git tells the commit"),
    ):
        to.commit  # noqa: B018
    with (
        pytest.raises(UsageError, match="no hash of a commit"),
        target("http://127.0.0.1:1", None, None, None, "HEAD", {}),
    ):
        pass


def test_ancestors_follow_first_parents(repository):
    first = repository.commit()
    repository.git("switch", "--quiet", "--create", "feature")
    second = repository.commit()
    repository.git("switch", "--quiet", "main")
    other = repository.commit()
    repository.git("switch", "--quiet", "feature")
    repository.git("merge", "--quiet", "--no-edit", "main")
    merge = repository.git("rev-parse", "HEAD")
    assert ancestors(merge, repository.folder) == (merge, second, first)
    assert other not in ancestors(merge, repository.folder)
    assert ancestors(HEAD, repository.folder) == (HEAD,), "git does not have it"


def test_references_are_what_the_service_knows(repository):
    commit = repository.commit()
    repository.commit()
    repository.git("tag", "v1", "HEAD~1")
    repository.git("update-ref", "refs/remotes/origin/release/2", commit)
    for ref, expected in {
        "main": "main", "HEAD~1": commit, "v1": commit, commit[:10]: commit, "origin/release/2": "release/2",
        "elsewhere": "elsewhere", "--upload-pack=evil": "--upload-pack=evil",
    }.items():  # fmt: skip
        assert resolved(ref, repository.folder) == expected
