"""Expressions as long as the language allows go all the way through the command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_a_sum_of_five_hundred_terms(tmp_path: Path) -> None:
    terms = " + ".join(f"image(x + {i}) * 0.5" for i in range(500))
    document = {
        "format": 1,
        "name": "long",
        "inputs": [{"name": "image", "type": "float32", "dims": ["x"]}],
        "stages": [{"name": "f", "dims": ["x"], "value": terms}],
        "outputs": ["f"],
        "estimates": {"f": [[0, 64]]},
    }
    path = tmp_path / "long.json"
    path.write_text(json.dumps(document))
    command = [sys.executable, "-c", "from tilesmith.app.cli import main; main()", "schedule", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pipeline"] == "long"
