"""The editor of the playground: what npm is to bring is pinned, and what was made names whose it is."""

from __future__ import annotations

import json
from pathlib import Path

from support.tools import require_editor

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "tilesmith" / "app" / "service" / "dashboard" / "static"


def test_every_package_is_pinned_by_its_content_and_comes_from_the_registry():
    lock = json.loads((ROOT / "editor" / "package-lock.json").read_text(encoding="utf-8"))
    wanted = json.loads((ROOT / "editor" / "package.json").read_text(encoding="utf-8"))
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert lock["packages"][""]["dependencies"] == wanted["dependencies"]
    assert {f"node_modules/{name}" for name in wanted["dependencies"]} <= set(packages)
    for name, entry in packages.items():
        assert entry["integrity"].startswith("sha512-"), name
        assert "resolved" not in entry, f"{name} names a host: another registry would not be asked"


def test_the_licences_of_what_is_in_the_editor_are_beside_it():
    require_editor()
    licences = (STATIC / "editor.LICENSES.txt").read_text(encoding="utf-8")
    for package in ("@codemirror/view", "@codemirror/lint", "@lezer/yaml", "style-mod"):
        assert f"{package}\n" in licences
    assert licences.count("Permission is hereby granted") >= 10
