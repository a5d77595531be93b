"""The project, branch and commit that a job is about: from GitHub Actions, GitLab CI, or git."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ANCESTORS = 500
HASH = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True, slots=True)
class Found:
    """A commit's place; None where nothing tells. `into` is the branch that it is to be merged into."""

    project: str | None = None
    branch: str | None = None
    commit: str | None = None
    into: str | None = None


def found(environment: Mapping[str, str], folder: Path) -> Found:
    """The place that the environment tells, and git for what it does not."""
    told = Found()
    if environment.get("GITHUB_ACTIONS") == "true":
        told = _github(environment)
    elif environment.get("GITLAB_CI") == "true":
        told = _gitlab(environment)
    by_git = _by_git(folder)
    return Found(
        _as_project(told.project or by_git.project),
        told.branch or by_git.branch,
        told.commit or by_git.commit,
        told.into,
    )


def ancestors(commit: str, folder: Path) -> tuple[str, ...]:
    """The commit and those before it along first parents, the nearest first: what was merged into a branch is no
    ancestor in this sense. The commit alone where git does not have it, or a shallow clone ends there."""
    text = git(folder, "rev-list", "--first-parent", f"--max-count={ANCESTORS}", f"{commit}^{{commit}}", "--")
    return tuple(text.split()) or (commit,)


def resolved(ref: str, folder: Path) -> str:
    """A reference as the service knows it: a branch by its name, anything else that git knows by its commit."""
    name = git(folder, "rev-parse", "--verify", "--quiet", "--symbolic-full-name", "--end-of-options", ref)
    for prefix in (r"refs/heads/", r"refs/remotes/[^/]+/"):
        if match := re.fullmatch(prefix + r"(.+)", name):
            return match[1]
    commit = git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    return commit if HASH.fullmatch(commit) else ref


def _github(environment: Mapping[str, str]) -> Found:
    """GITHUB_SHA of a pull request is a merge that nobody made: its head is in the event."""
    told = Found(
        environment.get("GITHUB_REPOSITORY"),
        environment.get("GITHUB_HEAD_REF") or environment.get("GITHUB_REF_NAME"),
        environment.get("GITHUB_SHA"),
        environment.get("GITHUB_BASE_REF") or None,
    )
    head = _event(environment).get("pull_request", {}).get("head", {}).get("sha")
    return replace(told, commit=head) if isinstance(head, str) and HASH.fullmatch(head) else told


def _event(environment: Mapping[str, str]) -> dict[str, Any]:
    try:
        event = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_bytes())
    except (KeyError, OSError, ValueError):
        return {}
    return event if isinstance(event, dict) else {}


def _gitlab(environment: Mapping[str, str]) -> Found:
    request = "CI_MERGE_REQUEST_"
    return Found(
        environment.get("CI_PROJECT_PATH"),
        environment.get(f"{request}SOURCE_BRANCH_NAME") or environment.get("CI_COMMIT_REF_NAME"),
        environment.get(f"{request}SOURCE_BRANCH_SHA") or environment.get("CI_COMMIT_SHA"),
        environment.get(f"{request}TARGET_BRANCH_NAME") or environment.get("CI_DEFAULT_BRANCH"),
    )


def _by_git(folder: Path) -> Found:
    top = git(folder, "rev-parse", "--show-toplevel")
    branch = git(folder, "branch", "--show-current") or None
    commit = git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    return Found(Path(top).name if top else None, branch, commit if HASH.fullmatch(commit) else None)


def git(folder: Path, *arguments: str) -> str:
    """The output of a command of git, without its last newline; empty where it fails, or there is no git."""
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _as_project(name: str | None) -> str | None:
    """A name of a repository as one of a project: `owner/name` is `owner.name`."""
    if name is None:
        return None
    return re.sub(r"[^A-Za-z0-9_.+-]+", ".", name).strip(".+-")[:64] or None
