"""The image and its Compose file, as far as they are held without a daemon."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml

from tilesmith.app.service.settings import Settings

ROOT = Path(__file__).parents[2]
COMPOSE, DOCKERFILE = ROOT / "compose.yaml", (ROOT / "Dockerfile").read_text(encoding="utf-8")
SERVICE = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]["tilesmith"]


def test_the_compose_file_is_valid():
    program = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_its_volumes_are_folders_that_the_image_gives_to_its_user():
    owned = re.search(r"install -d -o tilesmith -g tilesmith (.+)", DOCKERFILE)[1].split()
    assert {volume.partition(":")[2] for volume in SERVICE["volumes"]} <= set(owned)


def test_it_sets_what_there_is_to_set_and_is_reached_from_this_machine_alone():
    known = {f"TILESMITH_{name.upper()}" for name in Settings.model_fields}
    assert set(SERVICE["environment"]) <= known
    assert all(port.startswith("127.0.0.1:") and port.endswith(":8000") for port in SERVICE["ports"])


def test_the_image_is_made_of_files_that_are_there_and_not_ignored():
    copies = [line.split() for line in DOCKERFILE.splitlines() if line.startswith("COPY ") and "--from" not in line]
    names = {name for _, *sources, _ in copies for name in sources}
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = {line[1:] for line in ignored if line.startswith("!")}
    assert names == kept
    assert all((ROOT / name).exists() for name in names)
