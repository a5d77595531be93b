"""Documents of schedules: what is wrong with one is told with its place, all of it at once."""

import pytest

from tilesmith.scheduler.errors import DocumentError
from tilesmith.scheduler.ir.schedule.document import from_document, to_document
from tilesmith.scheduler.ir.schedule.schedule import Schedule


@pytest.mark.parametrize(
    ("change", "pointer", "code"),
    [
        ({"surprise": 1}, "/surprise", "unknown_key"),
        ({"format": 2}, "/format", "bad_value"),
        ({"pipeline": "a b"}, "/pipeline", "bad_value"),
        ({"method": 'x"; system("y")'}, "/method", "bad_value"),
        ({"groups": [{"loops": []}]}, "/groups/0/output", "missing_key"),
        ({"groups": [{"output": "a", "loops": ["x.middle"]}]}, "/groups/0/loops/0", "bad_value"),
        ({"groups": [{"output": "a", "tiles": [{"dim": "x", "size": 0}]}]}, "/groups/0/tiles/0/size", "bad_value"),
        ({"groups": [{"output": "a", "tiles": [{"dim": "x", "size": True}]}]}, "/groups/0/tiles/0/size", "bad_value"),
        ({"groups": [{"output": "a", "placements": [{}]}]}, "/groups/0/placements/0/stage", "missing_key"),
        (
            {"groups": [{"output": "a", "placements": [{"stage": "b", "compute": "root", "store": "inline"}]}]},
            "/groups/0/placements/0/compute",
            "bad_value",
        ),
    ],
)
def test_a_bad_document_is_refused_with_the_place(change: dict[str, object], pointer: str, code: str) -> None:
    document = {**to_document(Schedule("blur", "hand", ())), **change}
    with pytest.raises(DocumentError) as caught:
        from_document(document)
    assert (code, pointer) in [(p.code, p.pointer) for p in caught.value.problems]


def test_all_problems_of_a_document_at_once() -> None:
    with pytest.raises(DocumentError) as caught:
        from_document({"format": 1, "pipeline": 5, "groups": 7, "more": None})
    assert {p.pointer for p in caught.value.problems} == {"/pipeline", "/groups", "/more", "/method"}
    with pytest.raises(DocumentError):
        from_document([1, 2])
