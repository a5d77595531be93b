"""A dictionary of Zstandard for forms of schedules, trained with those of the shipped pipelines and the developing half
of the corpus, each on one of the shipped platforms.

    python tests/support/train_dictionary.py FILE

What is stored is read with the dictionary it was packed with: a new one takes a migration of what is stored.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import zstandard

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.corpus.registry import cases, for_reports  # noqa: E402
from tilesmith import platforms  # noqa: E402
from tilesmith.app.service.schedules.answers import Answer, Question, compact  # noqa: E402
from tilesmith.app.service.schedules.service import links  # noqa: E402
from tilesmith.app.service.schedules.work import answer  # noqa: E402
from tilesmith.scheduler import pipelines  # noqa: E402
from tilesmith.scheduler.frontends.document.document import to_document  # noqa: E402

IDENTITY = 1
BYTES = 64 << 10
SEGMENT_BYTES, RECURRING_BYTES = 1500, 8
"""Parameters of the algorithm COVER: a segment that it takes at once, and a run of bytes whose recurrence it counts."""


def samples() -> Iterator[bytes]:
    """Each form that is kept, of each pipeline in turn."""
    documents = [pipelines.document(name) for name in pipelines.names()]
    documents += [to_document(case.pipeline()) for name, case in cases().items() if not for_reports(name)]
    for document, name in zip(documents, cycle(platforms.catalog_names())):
        found = answer(Question(document, platforms.to_document(platforms.get(name)), "default", False, None))
        if isinstance(found, Answer):
            stored = {"version": found.version, "created_at": "2026-01-01T00:00:00.000000Z", "links": links(found.id)}
            yield compact(found.body | stored).encode()
            yield from found.forms.values()


if __name__ == "__main__":
    (to,) = sys.argv[1:]
    trained = zstandard.train_dictionary(
        BYTES, list(samples()), k=SEGMENT_BYTES, d=RECURRING_BYTES, dict_id=IDENTITY, level=9
    )
    Path(to).write_bytes(trained.as_bytes())
