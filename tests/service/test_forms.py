"""Forms of schedules in the store: small, and those that are made again are what they would have been at first."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from sqlalchemy import func, select
from zstandard import ZstdError

from tilesmith import platforms
from tilesmith.app.service.remembered import Remembered
from tilesmith.app.service.schedules import packing, repository, work
from tilesmith.app.service.schedules.answers import CANDIDATES_FORM, Decided, Question
from tilesmith.app.service.schedules.packing import pack, pack_one, unpack, unpack_one
from tilesmith.app.service.schedules.work import answer, candidates, generate
from tilesmith.app.service.tables import made_forms, packed_forms
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import Options, compile_pipeline, decide
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.ir.schedule.document import to_document
from tilesmith.scheduler.search import candidate_table, explain
from tilesmith.scheduler.search.params import PARAMS

MACHINE = "i7-6700"


@pytest.mark.parametrize("forms", [{}, {"a": b""}, {"b": b"\n[1]\n", "a/1": "é\0".encode()}])
def test_packed_forms_are_unpacked(forms):
    assert unpack(pack(forms)) == forms
    for content in forms.values():
        assert unpack_one(pack_one(content)) == content


def test_a_frame_that_is_not_whole_is_refused():
    packed = pack_one(b"[1]" * 100)
    for damaged in (packed[:-5], packed[:-1] + bytes([packed[-1] ^ 1])):
        with pytest.raises(ZstdError):
            unpack_one(damaged)


def test_the_dictionary_stays_as_it_is():
    """The dictionary is frozen: forms that were packed with it are read with nothing else."""
    found = Path(packing.__file__).with_name("forms.dict").read_bytes()
    assert hashlib.sha256(found).hexdigest() == "62f7c8d5d6e6af02122686c77af59daa90880baed31df0855d9c3c7e718e54b7"


def test_forms_are_whole(real):
    body = stored(real, "harris")
    told = real.client.get(body["links"]["explain"]).json()
    assert told["predicted"] == body["predicted"]
    assert real.client.get(body["links"]["schedule.json"]).json()["groups"] == body["groups"]


def stored(service, name):
    answer = service.client.post("/v1/schedules", json={"pipeline_id": name, "platform_name": MACHINE})
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


@pytest.mark.parametrize(("most", "name"), [(1900, "harris"), (3600, "camera_pipe"), (6700, "local_laplacian")])
def test_a_schedule_takes_few_kilobytes(real, most, name):
    c = packed_forms.c
    with real.context.db.read() as connection:
        size = select(func.length(c.content)).where(c.schedule_id == stored(real, name)["id"])
        assert 500 < connection.execute(size).scalar_one() < most


def test_forms_that_are_made_are_what_the_search_found(real):
    body = stored(real, "harris")
    whole = compile_pipeline(pipelines.load("harris"), platforms.load(MACHINE), Options())
    wanted = {
        "code.c": whole.source.code,
        "code.h": whole.source.header,
        "loopnest.txt": whole.loopnest,
        "explain.txt": explain.to_text(whole.plan.schedule, whole.trace, whole.predicted),
    }
    for form, text in wanted.items():
        assert real.client.get(body["links"][form]).text == text, form
    with real.context.db.read() as connection:
        made = connection.execute(select(made_forms.c.name).where(made_forms.c.schedule_id == body["id"])).scalars()
        assert set(made) == {"source.json", "loopnest.txt", "explain.txt"}


def test_candidates_are_made_when_they_are_asked_for(real):
    body = stored(real, "harris")
    db = real.context.db
    assert not {n for n in repository.kept(db, body["id"]) if n.startswith("candidates")}
    table = real.client.get(body["links"]["candidates"]).json()["items"]
    found = decide(
        pipelines.load("harris"), platforms.load(MACHINE), Options(), None, PARAMS.listed_candidates
    ).candidates
    assert [{k: v for k, v in row.items() if k != "links"} for row in table] == candidate_table.to_document(found)
    for row, candidate in zip(table, found, strict=True):
        assert real.client.get(row["links"]["schedule.json"]).json() == to_document(candidate.schedule)
    texts = json.loads(repository.find_form(db, body["id"], CANDIDATES_FORM).content)
    assert len(texts) == len(table) + 1


def test_the_schedule_itself_is_the_first_candidate_whatever_is_found_now(real):
    body = stored(real, "harris")
    kept = repository.kept(real.context.db, body["id"])
    asked = Question(kept["pipeline.json"], json.loads(kept["platform.json"]), "default", False, None)
    second = candidates(asked, "a", kept["schedule.json"])["candidates/2/schedule.json"]
    again = candidates(asked, "a", second.encode())
    assert again["candidates/1/schedule.json"] == second
    assert kept["schedule.json"].decode() == again["candidates/2/schedule.json"]
    first, *others = json.loads(again["candidates"])["items"]
    assert (first["rank"], first["differs"]) == (1, "")
    assert all(row["differs"] for row in others)


def test_the_cost_of_a_candidate_is_predicted_again(real):
    body = stored(real, "harris")
    kept = repository.kept(real.context.db, body["id"])
    table = real.client.get(body["links"]["candidates"]).json()["items"]
    for row in table[:3]:
        schedule = real.client.get(row["links"]["schedule.json"]).content
        decided = Decided(kept["pipeline.json"], kept["platform.json"], schedule, None, True, "ecm")
        predicted = generate(decided, Limits()).predicted
        assert predicted["total"] == row["predicted"]
        if row["rank"] == 1:
            assert predicted == body["predicted"]


@pytest.mark.parametrize("name", ["unsharp", "camera_pipe"])
def test_code_is_the_same_whether_the_process_has_decided_or_reads_what_was_decided(name, monkeypatch):
    machine = platforms.to_document(platforms.load(MACHINE))
    found = answer(Question(pipelines.document(name), machine, "default", False, None))
    decided = Decided(*(found.forms[f"{form}.json"] for form in ("pipeline", "platform", "schedule")))
    with monkeypatch.context() as changed:
        changed.setattr(work, "rewrite", None)
        own = generate(decided, Limits())
    monkeypatch.setattr(work, "_LAID_OUT", Remembered(1))
    assert generate(decided, Limits()) == own
