"""The fair queue: clients share the time, whoever asks for more."""

from __future__ import annotations

from collections import Counter

from tilesmith.app.service.schedules.fair_queue import FairQueue


def test_time_is_shared_and_not_turns():
    """Work of one client takes ten times as long as that of two others: each has a third of the time."""
    queue, seconds = FairQueue(), {"slow": 10.0, "a": 1.0, "b": 1.0}
    spent = Counter()
    for client in seconds:
        for _ in range(200):
            queue.push(client, client, short=False)
    while sum(spent.values()) < 120:
        client = queue.pop(only_short=False)
        queue.end(client, False, seconds[client])
        spent[client] += seconds[client]
    assert all(35 <= spent[client] <= 50 for client in seconds)


def test_who_was_away_has_saved_nothing_up():
    queue = FairQueue()
    for _ in range(100):
        queue.push("busy", "busy", short=False)
    for _ in range(50):
        queue.end(queue.pop(only_short=False), False, 5.0)
    for _ in range(10):
        queue.push("new", "new", short=False)
    found = []
    for _ in range(6):
        found.append(queue.pop(only_short=False))
        queue.end(found[-1], False, 5.0)
    assert sorted(found) == ["busy"] * 3 + ["new"] * 3


def test_the_short_lane_has_short_work_only():
    queue = FairQueue()
    queue.push("a", "long", short=False)
    assert queue.pop(only_short=True) is None
    queue.push("a", "short", short=True)
    assert queue.pop(only_short=True) == "short"
    assert (len(queue), queue.active("a")) == (1, 2)
    queue.end("a", True, 0.1)
    assert queue.pop(only_short=False) == "long"
    queue.end("a", False, 0.1)
    assert (len(queue), queue.active("a")) == (0, 0)


def test_work_that_does_not_suit_keeps_its_place():
    queue = FairQueue()
    for name in ("left", "other", "left too"):
        queue.push("a", name, short=True)
    assert queue.pop(only_short=False, suits=lambda name: "left" not in name) == "other"
    assert queue.pop(only_short=False, suits=lambda name: "left" not in name) is None
    assert [queue.pop(only_short=False), queue.pop(only_short=False)] == ["left", "left too"]
