"""A checkout's way from a document to C, in a process of its own: what `revisions` asks of this one and of an earlier.

It is run as a file, with the folder of the checkout as its argument, and reads questions as lines of JSON:

    {"pipeline": NAME or DOCUMENT, "platform": DOCUMENT, "into": FOLDER}

The answer is another line: the CPU time of the way in milliseconds, of each of its phases, and the entry and the flags
of the C, which is in the folder as `pipeline.c`, with its header.
"""

from __future__ import annotations

import json
import sys
import time
from functools import reduce
from importlib import import_module
from operator import getitem
from pathlib import Path
from typing import Any

LAYOUTS = (
    ("tilesmith.scheduler.pipelines", "tilesmith.platforms.catalog", "tilesmith.scheduler.compiler",
     "tilesmith.scheduler.frontends.document.document"),
    ("scheduler.pipelines", "platforms.catalog", "scheduler.compiler", "scheduler.frontends.document.document"),
    ("scheduler.pipelines", "platforms.catalog", "scheduler.compile", "scheduler.lang.document"),
)  # fmt: skip
"""The modules that are needed, where they are and where they were."""


def modules(tree: Path) -> list[Any]:
    """Modules of the checkout. Raises StopIteration where it has none of the layouts."""
    sys.path.insert(0, str(tree))
    layout = next(names for names in LAYOUTS if (tree / f"{names[2].replace('.', '/')}.py").exists())
    return [import_module(name) for name in layout]


UNKNOWN = {"unknown_key", "unknown_figure"}
"""Codes of what a revision says of parts of a platform that it does not know."""


def understood(catalog: Any, document: dict[str, Any]) -> Any:
    """The platform of a document, without the parts that the checkout does not know: what they say was its own then."""
    while True:
        try:
            return catalog.load(document)
        except Exception as e:
            problems = getattr(e, "problems", ())
            if not problems or any(p.code not in UNKNOWN for p in problems):
                raise
        for p in problems:
            *outer, key = p.pointer.strip("/").split("/")
            del reduce(getitem, outer, document)[key]


def main() -> None:
    pipelines, catalog, compiler, documents = modules(Path(sys.argv[1]))
    for line in sys.stdin:
        question = json.loads(line)
        asked, platform = question["pipeline"], understood(catalog, question["platform"])
        document = pipelines.document(asked) if isinstance(asked, str) else asked
        start = time.process_time()
        made = compiler.compile_pipeline(documents.load(document), platform, now=time.process_time)
        taken = 1e3 * (time.process_time() - start)
        source, folder = made.source, Path(question["into"])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pipeline.c").write_text(source.code)
        (folder / f"{made.pipeline.name}.h").write_text(source.header)
        answer = {"ms": taken, "phases_ms": made.timings_ms, "entry": source.entry, "flags": source.flags}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
