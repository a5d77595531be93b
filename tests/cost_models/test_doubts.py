"""What predictions are unsure of: sentences of the stages that are a good part of them."""

from __future__ import annotations

import pytest

from tilesmith import platforms
from tilesmith.cost_models.interface import MICROSECONDS, Breakdown, StageCost, Term
from tilesmith.platforms import Platform
from tilesmith.scheduler.compiler import Options, decide
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.search.explain import to_text

SIZE = [[0, 1536], [0, 1024]]
COUNTS = {"domain": {"r": [0, 1536], "s": [0, 1024]}, "at": ["x", "int32(a(r, s) * 255.0) & 255"]}


def unsure(value: str, platform: Platform, size: list[list[int]] = SIZE, updates: tuple[object, ...] = ()) -> str:
    stage = {"name": "out", "dims": ["x", "y"], "value": value, **({"updates": list(updates)} if updates else {})}
    inputs = [{"name": n, "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}} for n in "ab"]
    pipeline = load(
        {"format": 1, "name": "one", "inputs": inputs, "stages": [stage], "outputs": ["out"],
         "estimates": {"out": size, "a": size}}
    )  # fmt: skip
    found = decide(pipeline, platform, Options())
    told = to_text(found.schedule, found.trace, found.predicted)
    assert [line.split("unsure: ")[1] for line in told.splitlines() if "unsure: " in line] == [*found.predicted.unsure]
    assert Breakdown.from_document(found.predicted.to_document()).unsure == found.predicted.unsure
    return " ".join(found.predicted.unsure)


@pytest.fixture(scope="module")
def platform() -> Platform:
    return platforms.get("i7-6700")


@pytest.mark.parametrize("value", ["exp(a(x, y))", "a(x, y) * b(x + 1, y)", "sum(a(x + r, y) for r in range(9))"])
def test_what_is_counted_whole_is_sure(value: str, platform: Platform) -> None:
    assert unsure(value, platform) == ""


def test_places_that_data_says(platform: Platform) -> None:
    place = "clamp(int32(b(x, y) * 1023.0), 0, 1023)"
    assert "reads where data says" in unsure(f"a({place}, {place})", platform)
    assert unsure(f"a({place}, y)", platform) == ""  # a row stays in the first cache


def test_places_that_data_says_to_write_to(platform: Platform) -> None:
    counted = {**COUNTS, "value": "out(x, int32(a(r, s) * 255.0) & 255) + 1.0"}
    assert "writes where data says" in unsure("0.0", platform, [[0, 1536], [0, 256]], (counted,))


def test_rows_in_each_others_way(platform: Platform) -> None:
    assert "walks across rows" in unsure("a(y, x)", platform, [[0, 1024], [0, 1024]])


def test_what_is_too_narrow_for_vectors(platform: Platform) -> None:
    assert "point by point" in unsure("a(x, y) + b(x, y)", platform, [[0, 1], [0, 60000]])


def test_less_than_a_call(platform: Platform) -> None:
    assert "call itself" in unsure("a(x, y) + b(x, y)", platform, [[0, 40], [0, 30]])


def test_only_stages_that_count_put_a_prediction_in_doubt() -> None:
    small = StageCost("small", "g", (Term("in core", 5.0),), ("small is in doubt.",))
    large = StageCost("large", "g", (Term("in core", 95.0),), ("large is in doubt.",))
    assert Breakdown("ecm", MICROSECONDS, (small, large)).unsure == ("large is in doubt.",)
