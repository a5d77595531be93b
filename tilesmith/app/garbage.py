"""Python's garbage collector looks for cycles rarely, since a search makes much that lives as long as the answer."""

from __future__ import annotations

import gc

YOUNG = 20_000
"""Objects made between two collections: some megabytes. By CPython's own count of 700 a search of 300 ms spends half of
its time in the collector."""


def collect_rarely() -> None:
    """Collect rarely, in processes that answer: what is there now stays for good and is not gone through again."""
    gc.freeze()
    gc.set_threshold(YOUNG)
