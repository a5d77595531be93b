"""The examples in C and C++, built by CMake and by Meson as they stand, and run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.shipped import loaded
from support.tools import require_tool

from tilesmith.scheduler.codegen.c.emitter import FLAGS, RELAXED, SCALAR_STAYS_SCALAR
from tilesmith.scheduler.interpreter.interpreter import Image as Samples
from tilesmith.scheduler.interpreter.interpreter import interpret

EXAMPLES = Path(__file__).parents[2] / "examples" / "c"
COMMANDS = {
    "cmake": (["cmake", "-S", str(EXAMPLES), "-B", "build"], ["cmake", "--build", "build"]),
    "meson": (["meson", "setup", "build", str(EXAMPLES)], ["meson", "compile", "-C", "build"]),
}


def environment(folder: Path) -> dict[str, str]:
    """A `tilesmith` of these sources is found first; the programs of this environment are found, too."""
    command = folder / "bin" / "tilesmith"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'from tilesmith.app.cli import main; main()' \"$@\"\n")
    command.chmod(0o755)
    path = [str(command.parent), str(Path(sys.executable).parent), os.environ["PATH"]]
    return os.environ | {"PATH": os.pathsep.join(path), "PYTHONPATH": str(EXAMPLES.parents[1])}


@pytest.mark.parametrize("tool", COMMANDS)
def test_the_examples_are_built_and_run(tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    for needed in (tool, "gcc", "g++", *(["ninja"] if tool == "meson" else [])):
        require_tool(needed)
    names = environment(tmp_path)
    for command in COMMANDS[tool]:
        done = subprocess.run(command, cwd=tmp_path, env=names, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    gray = np.random.default_rng(0).integers(0, 256, (97, 131), np.uint8)
    Image.fromarray(gray).save(tmp_path / "in.pgm")
    subprocess.run(["build/edges", "in.pgm", "out.pgm"], cwd=tmp_path, check=True)
    expected = interpret(loaded("sobel"), {"input": Samples(gray, (0, 0))}, {}, {"output": ((0, 131), (0, 97))})
    with Image.open(tmp_path / "out.pgm") as picture:
        np.testing.assert_array_equal(np.asarray(picture), expected["output"][0])
    said = subprocess.run(["build/bands"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert "rows 64 to 128 need rows 63 to 129\n" in said
    assert said.endswith("strongest edge: 255\n")
    for bad in (["nothing.pgm", "out.pgm"], ["in.pgm", "no/folder"], []):
        assert subprocess.run(["build/edges", *bad], cwd=tmp_path, capture_output=True, check=False).returncode == 1


@pytest.mark.parametrize("file", ["CMakeLists.txt", "meson.build"])
def test_the_flags_that_carry_meaning_are_those_of_the_code(file: str) -> None:
    text = (EXAMPLES / file).read_text(encoding="utf-8")
    flags = set(re.findall(r"-f[\w=-]+|-std=\w+", text)) | set(re.findall(r"c_std=\w+", text))
    wanted = {*FLAGS, *RELAXED, *SCALAR_STAYS_SCALAR}
    assert {f.replace("c_std", "-std") for f in flags} == wanted
