"""Updates: loops over the free dims and the domain, after the values."""

from __future__ import annotations

from collections.abc import Callable

from support.lowered import body, group, loaded

Golden = Callable[[str, str], None]


def test_an_update_runs_over_its_domain_after_the_values(golden: Golden) -> None:
    update = {
        "domain": {"k": [0, 64]},
        "at": ["clamp(int32(f(k)), 0, 63)"],
        "value": "out(clamp(int32(f(k)), 0, 63)) + 1",
    }
    p = loaded({"name": "out", "dims": ["x"], "type": "int32", "value": "0", "updates": [update]}, type="uint8")
    golden("an_update_runs_over_its_domain_after_the_values.txt", body(p, [group("x.inner", vector=None)]))
