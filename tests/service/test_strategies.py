"""Strategies as resources, and in requests for schedules."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import select

from tilesmith.app.service.schedules import work
from tilesmith.app.service.schedules.examples import ROWS
from tilesmith.app.service.tables import holdings
from tilesmith.scheduler.strategies import catalog


@pytest.fixture
def whole(start):
    """A service with real scheduling, in threads."""
    return start(scheduling=work)


@pytest.mark.parametrize("name", catalog.names())
def test_shipped_strategies_are_read_by_name(whole, name):
    answer = whole.client.get(f"/v1/strategies/{name}")
    assert answer.status_code == 200
    assert answer.json()["source"] == "shipped"
    assert answer.json()["document"]["strategy"] == name
    assert whole.client.get(f"/v1/strategies/{answer.json()['id']}").json() == answer.json()


def test_a_stored_strategy_is_read_by_id_and_listed(whole):
    added = whole.client.post("/v1/strategies", json=ROWS)
    assert added.status_code == 201
    assert whole.client.get(added.headers["location"]).json() == added.json()
    assert whole.client.post("/v1/strategies", json=ROWS).status_code == 200
    assert whole.client.get("/v1/strategies/rows").json()["code"] == "strategy_not_found"
    listed = whole.client.get("/v1/strategies").json()["items"]
    assert [s["name"] for s in listed] == sorted([*catalog.names(), "rows"])


def test_a_stored_strategy_is_deleted_and_its_schedules_stay(whole):
    stored = whole.client.post("/v1/strategies", json=ROWS).json()["id"]
    asked = {"pipeline_id": "blur", "platform_name": "i7-6700", "strategy_id": stored}
    made = whole.client.post("/v1/schedules", json=asked).json()
    with whole.context.db.read() as connection:
        assert connection.execute(select(holdings.c.bytes)).scalar_one() > len(json.dumps(ROWS)) / 2
    assert whole.client.delete(f"/v1/strategies/{stored}").status_code == 204
    for method in ("get", "delete"):
        gone = whole.client.request(method, f"/v1/strategies/{stored}")
        assert (gone.status_code, gone.json()["code"]) == (404, "strategy_not_found")
    shipped = whole.client.delete(f"/v1/strategies/{catalog.names()[0]}")
    assert shipped.json()["code"] == "strategy_not_found"
    assert whole.client.get(f"/v1/schedules/{made['id']}").json()["id"] == made["id"]
    assert whole.client.delete(f"/v1/schedules/{made['id']}").status_code == 204
    with whole.context.db.read() as connection:
        assert connection.execute(select(holdings.c.bytes)).scalar_one() == 0


def test_what_is_wrong_with_a_strategy_is_told_with_its_place(whole):
    wrong = ROWS | {"steps": [{"tile": {"stage": "f", "size": {"y": 32}}}, "serch"]}
    answer = whole.client.post("/v1/strategies", json=wrong)
    assert answer.status_code == 422
    assert {e["pointer"] for e in answer.json()["errors"]} >= {"/steps/0/tile/size", "/steps/1"}
    assert "did you mean 'search'?" in str(answer.json())


def test_a_schedule_is_made_by_a_strategy(whole):
    asked = {"pipeline_id": "blur", "platform_name": "i7-6700"}
    plain = whole.client.post("/v1/schedules", json=asked).json()
    stored = whole.client.post("/v1/strategies", json=ROWS).json()["id"]
    by_id = whole.client.post("/v1/schedules", json=asked | {"strategy_id": stored})
    assert by_id.status_code == 201
    inline = whole.client.post("/v1/schedules", json=asked | {"strategy": ROWS})
    assert inline.status_code == 200
    assert inline.json()["id"] == by_id.json()["id"] != plain["id"]
    assert inline.json()["method"] == "strategy"
    assert inline.json()["options"]["strategy"]["strategy"] == "rows"
    group = inline.json()["groups"][-1]
    assert {"dim": "y", "size": 32} in group["tiles"]
    steps = whole.client.get(inline.json()["links"]["explain"]).json()["steps"]
    assert [s["rule"] for s in steps] == ["tile", "parallel", "search"]
    assert steps[0]["before"] == ["blur_y: for y.inner; for x.inner"]
    assert inline.json()["steps"] == steps
    page = whole.client.get(f"/schedules/{inline.json()['id']}").text
    assert "tile at blur_y" in page


def test_a_strategy_that_does_not_fit_says_which_rule_where_and_why(whole):
    steps = [{"store_circular": {"stage": "blur_x", "along": "y"}}]
    asked = {"pipeline_id": "blur", "platform_name": "i7-6700", "strategy": ROWS | {"steps": steps}}
    refused = whole.client.post("/v1/schedules", json=asked)
    assert refused.status_code == 422
    assert refused.json()["code"] == "strategy_refused"
    assert refused.json()["detail"].startswith("store_circular at blur_x: there is no loop outside of 'y.inner'")


@pytest.mark.parametrize("more", [{"fixed": {"blur_x": {"compute": "inline"}}}, {"tune": 2}, {"method": "taco2019"}])
def test_a_strategy_alone_decides(whole, more):
    asked = {"pipeline_id": "blur", "platform_name": "i7-6700", "strategy_id": "cbuf", "options": more}
    assert whole.client.post("/v1/schedules", json=asked).status_code == 422


def test_there_is_no_such_strategy(whole):
    asked = {"pipeline_id": "blur", "platform_name": "i7-6700", "strategy_id": "cbuff"}
    assert whole.client.post("/v1/schedules", json=asked).json()["code"] == "strategy_not_found"
