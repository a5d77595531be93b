"""An update without a domain is nothing that can be cut into parts."""

from support.machines import machine

from scheduler.lang.document import load
from scheduler.legality import check
from scheduler.search import autoschedule


def test_a_change_of_every_point_has_no_parts() -> None:
    scan = {"domain": {"r": [1, 9]}, "at": ["r", "y"], "value": "f(r - 1, y) * 3"}
    change = {"domain": {}, "at": ["x", "y"], "value": "f(x, y) + input(x, y) * input(y, x)"}
    pipeline = load(
        {
            "format": 1,
            "name": "scanned_and_changed",
            "inputs": [
                {"name": "input", "type": "int32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}},
            ],
            "stages": [
                {"name": "f", "dims": ["x", "y"], "storage": ["y", "x"], "value": "input(x, y)",
                 "updates": [scan, change]},
            ],
            "outputs": ["f"],
            "estimates": {"f": [[0, 50000], [0, 3]]},
        }
    )  # fmt: skip
    schedule = autoschedule(pipeline, machine()).schedule
    check(pipeline, schedule)
    assert schedule.factors == ()
