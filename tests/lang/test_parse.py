"""Expressions are parsed in several threads at a time."""

from concurrent.futures import ThreadPoolExecutor

from scheduler import pipelines
from scheduler.lang.document import load


def test_documents_are_loaded_in_several_threads_at_a_time() -> None:
    names = [name for name in pipelines.names() if name in ("blur", "harris", "unsharp", "sobel")] * 8
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(lambda name: load(pipelines.document(name)), names))
    assert [p.name for p in loaded] == names
