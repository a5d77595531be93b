"""The benchmark of the store: every question has an answer, and is measured."""

from __future__ import annotations

import time
from contextlib import closing

from benchmarks.store import PLATFORMS, WORDS, Filling, measure
from tilesmith.app.service.db import Database, upgrade
from tilesmith.app.service.pipelines import history
from tilesmith.app.service.schedules import lists
from tilesmith.app.service.schedules.lists import Filters


def test_every_question_is_measured(tmp_path):
    with closing(Database(f"sqlite:///{tmp_path}/store.db")) as db:
        upgrade(db)
        Filling(300).fill(db)
        figures = measure(db, time.thread_time, 1)
        assert lists.count(db, Filters()) == "300 schedules"
        assert len(history.best(db, f"{WORDS[0]}_{WORDS[0]}_0")) <= 3 * len(PLATFORMS)
    assert len(figures) > 150
    assert all(len(f.samples) == 1 for f in figures)
