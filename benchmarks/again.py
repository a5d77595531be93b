"""An earlier run again: its tables, and its plots.

python -m benchmarks.again FILE [--output FOLDER]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks import compare, plots, report
from benchmarks.summary import against_schedulers


def main() -> None:
    parser = argparse.ArgumentParser(description="The tables and plots of a run that was made before.")
    parser.add_argument("file", type=Path, help="figures.json of a run")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="where its plots are drawn")
    arguments = parser.parse_args()
    data = json.loads(arguments.file.read_text())
    for run in data["runs"]:
        compare.show(run)
    print(against_schedulers(data["runs"]))
    if arguments.output is not None:
        for path in plots.draw(data, arguments.output):
            report.progress(str(path))


if __name__ == "__main__":
    main()
