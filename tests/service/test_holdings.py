"""Holdings: how much each token has stored, and what happens where that is as much as it may."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from tilesmith import platforms
from tilesmith.app.service.tables import holdings, packed_forms, pipelines


def bearer(token):
    return {"Authorization": f"Bearer {token.token}"}


@pytest.fixture
def holder(start):
    """holder(setting=value): a service with an admin's token as the client's own; its tokens."""

    def begin(**changed):
        service = start(**changed)
        admin = service.context.tokens.create("admin", ("admin",))
        service.client.headers.update(bearer(admin))
        return service, service.context.tokens

    return begin


def ask(service, token, pipeline):
    return service.client.post("/v1/schedules", json={"pipeline": pipeline}, headers=bearer(token))


def held(service):
    items = service.client.get("/v1/tokens").json()["items"]
    return {item["name"]: (item["schedules"], item["stored_bytes"]) for item in items}


def test_what_a_token_has_stored_is_counted_and_counted_off(holder, pipeline):
    service, tokens = holder()
    mine, other = tokens.create("mine", ("admin",)), tokens.create("other", ("submit",))
    first, second = (ask(service, mine, pipeline(name)).json()["id"] for name in ("a", "b"))
    ask(service, other, pipeline("a"))  # the store has it
    stored = service.client.post("/v1/pipelines", json=pipeline("c"), headers=bearer(mine)).json()["id"]
    service.client.post("/v1/pipelines", json=pipeline("c"), headers=bearer(other))
    with service.context.db.read() as connection:
        size = connection.execute(select(func.sum(func.length(packed_forms.c.content)))).scalar_one()
        document = connection.execute(select(func.length(pipelines.c.document))).scalar_one()
    assert held(service) == {"admin": (0, 0), "mine": (2, size + document), "other": (0, 0)}
    for url in (f"/v1/schedules/{first}", f"/v1/schedules/{second}", f"/v1/pipelines/{stored}"):
        assert service.client.delete(url).status_code == 204
    assert held(service)["mine"] == (0, 0)


def test_platforms_are_counted(holder):
    service, tokens = holder()
    mine = tokens.create("mine", ("submit",))
    machine = {**platforms.to_document(platforms.get("i7-6700")), "name": "mine"}
    for status in (201, 200):
        answer = service.client.post("/v1/platforms", json=machine, headers=bearer(mine))
        assert answer.status_code == status, answer.text
        assert 1000 < held(service)["mine"][1] < 5000


def test_a_token_stores_no_more_schedules_than_it_may(holder, pipeline):
    service, tokens = holder(schedules_per_token=2)
    mine, other = tokens.create("mine", ("submit",)), tokens.create("other", ("submit",))
    made = [ask(service, mine, pipeline(name)).json()["id"] for name in ("a", "b")]
    refused = ask(service, mine, pipeline("c"))
    problem = refused.json()
    assert (refused.status_code, problem["code"]) == (507, "token_full")
    assert (problem["setting"], problem["limit"]) == ("TILESMITH_SCHEDULES_PER_TOKEN", 2)
    assert "delete some" in problem["detail"]
    assert len(service.scheduling.answered) == 2  # nothing was worked out
    assert ask(service, mine, pipeline("a")).status_code == 200
    assert ask(service, other, pipeline("c")).status_code == 201
    service.client.delete(f"/v1/schedules/{made[0]}")
    assert ask(service, mine, pipeline("d")).status_code == 201


@pytest.mark.parametrize("kind", ["schedules", "pipelines", "platforms", "strategies", "projects/p/results"])
def test_a_token_stores_no_more_bytes_than_it_may(holder, pipeline, kind):
    service, tokens = holder(stored_bytes_per_token=1)
    mine = tokens.create("mine", ("submit",))
    assert ask(service, mine, pipeline("a")).status_code == 201  # what it has is looked at before
    machine = {**platforms.to_document(platforms.get("i7-6700")), "name": "mine"}
    bodies = {"pipelines": pipeline("b"), "platforms": machine, "strategies": {}}
    bodies["projects/p/results"] = {"branch": "main", "commit": "5f0c8f3b", "results": [{"schedule_id": "0" * 32}]}
    body = bodies.get(kind, {"pipeline": pipeline("b")})
    refused = service.client.post(f"/v1/{kind}", json=body, headers=bearer(mine))
    assert (refused.status_code, refused.json()["code"]) == (507, "token_full"), refused.text
    assert refused.json()["setting"] == "TILESMITH_STORED_BYTES_PER_TOKEN"


def test_results_of_projects_are_counted(holder, pipeline):
    service, tokens = holder()
    mine = tokens.create("mine", ("submit",))
    schedule = ask(service, mine, pipeline("a")).json()["id"]
    before = held(service)["mine"][1]
    body = {"branch": "main", "commit": "5f0c8f3b1d0f4d1c", "results": [{"schedule_id": schedule}]}
    assert service.client.post("/v1/projects/p/results", json=body, headers=bearer(mine)).status_code == 201
    assert 100 < held(service)["mine"][1] - before < 1000
    assert service.client.delete("/v1/projects/p/results").json() == {"results": 1}
    assert held(service)["mine"][1] == before


def test_without_tokens_there_is_no_limit(start, pipeline):
    service = start(schedules_per_token=1, stored_bytes_per_token=1)
    for name in ("a", "b", "c"):
        service.schedule(name)
    with service.context.db.read() as connection:
        assert connection.execute(select(holdings.c.schedules)).scalar_one() == 3
