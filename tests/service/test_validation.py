"""POST /v1/validate: every problem of documents, with its place in the text; nothing is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tilesmith import platforms
from tilesmith.app.service.schedules.answers import Answer, Question
from tilesmith.app.service.schedules.examples import BLUR, ROWS
from tilesmith.app.service.schedules.work import answer

FLOW = """\
format: 1
name: flow
inputs:
  - {name: input, type: uint8, dims: [x, y]}
stages:
  - name: a
    dims: [x, y]
    value: input(x, y) + inptu(x, y)
  - name: b
    dims: [x, y]
    value: >-
      a(x, y)
      + c(x)
    colour: red
outputs: [b]
estimates: {b: [[0, 64], [0, 64]]}
"""


def checked(service, **documents):
    answer = service.client.post("/v1/validate", json=documents)
    assert answer.status_code == 200, answer.text
    return answer.json()


def problems(service, **documents):
    (name,) = documents
    found = checked(service, **documents)
    assert found["valid"] is found[name]["valid"] is False
    return {(p["pointer"], p["code"]): p for p in found[name]["problems"]}


def word(text, wanted):
    """The position of the first such word."""
    index = text.index(wanted)
    return {"line": text.count("\n", 0, index) + 1, "column": index - text.rfind("\n", 0, index)}


def test_a_valid_pipeline_is_answered_in_canonical_form(shared):
    for given in (BLUR, json.dumps(BLUR), yaml.safe_dump(BLUR)):
        found = checked(shared, pipeline=given)
        assert found["valid"]
        assert found["pipeline"]["name"] == "blur"
        stored = shared.client.post("/v1/pipelines", json=found["pipeline"]["document"])
        assert stored.status_code in (200, 201)
    assert "platform" not in found


def test_an_input_that_is_read_beyond_its_estimate_is_a_warning(shared):
    text = FLOW.replace("inptu(x, y)", "input(x + 9, y)").replace(" + c(x)", "").replace("    colour: red\n", "")
    image = {"input": [[0, 64], [0, 64]]}
    document = yaml.safe_load(text) | {"estimates": {"b": [[0, 64], [0, 64]]} | image}
    (warning,) = checked(shared, pipeline=document)["pipeline"]["warnings"]
    assert "is needed from 9 to 72 in dim 'x'" in warning
    assert warning.endswith("stage 'a' reads it at x + 9")
    answered = answer(Question(document, platforms.to_document(platforms.load("host")), "default", False, None))
    assert isinstance(answered, Answer)
    assert answered.body["warnings"] == [warning]


def test_nothing_is_kept(service):
    id_ = checked(service, pipeline=BLUR | {"name": "own"})["pipeline"]["id"]
    assert service.client.get(f"/v1/pipelines/{id_}").status_code == 404


def test_problems_of_text_have_their_position(shared):
    found = problems(shared, pipeline=FLOW)
    assert found["/stages/1/colour", "unknown_key"]["position"] == word(FLOW, "colour")
    mended = FLOW.replace("    colour: red\n", "")
    found = problems(shared, pipeline=mended)
    unknown = found["/stages/0/value", "unknown_function"]
    assert unknown["position"] == word(mended, "inptu")
    assert unknown["column"] == len("input(x, y) + ") + 1
    assert "input" in unknown["hint"]
    assert found["/stages/1/value", "unknown_function"]["position"] == word(mended, "c(x)")


@pytest.mark.parametrize(
    "value", ['"{}"', "'{}'", "|\n      {}", ">\n      {}", "\n      {}", ">-\n      1 +\n      {}"]
)
def test_a_column_is_found_in_every_style_of_text(shared, value):
    text = FLOW.replace("    colour: red\n", "").replace("input(x, y) + inptu(x, y)", value.format("input(x, y) + zz"))
    assert problems(shared, pipeline=text)["/stages/0/value", "unknown_name"]["position"] == word(text, "zz")


def test_positions_in_json(shared):
    text = json.dumps(BLUR, indent="\t").replace("blur_x(x, y + 1)", "blur_z(x, y + 1)")
    found = problems(shared, pipeline=text)["/stages/1/value", "unknown_function"]
    assert found["position"] == word(text, "blur_z")
    as_data = problems(shared, pipeline=json.loads(text))["/stages/1/value", "unknown_function"]
    assert "position" not in as_data
    assert as_data["column"] == found["column"]


def test_what_is_missing_is_where_it_should_be(shared):
    text = FLOW.replace("    colour: red\n", "").replace("    dims: [x, y]\n", "", 1)
    assert problems(shared, pipeline=text)["/stages/0", "missing_key"]["position"] == word(text, "name: a")


@pytest.mark.parametrize(("text", "code", "line"), [("a: [1\n", "bad_yaml", 2), ('{"a":\n 1 2}', "bad_json", 2)])
def test_text_that_cannot_be_read_has_a_position_too(shared, text, code, line):
    for kind in ("pipeline", "platform", "strategy"):
        assert problems(shared, **{kind: text})["", code]["position"]["line"] == line


def test_platforms_and_strategies(shared):
    machine = shared.client.get("/v1/platforms/i7-6700").json()["document"]
    found = checked(shared, platform=yaml.safe_dump(machine), strategy=ROWS)
    assert found["valid"]
    assert found["platform"]["document"] == machine
    assert found["strategy"]["name"] == "rows"
    text = yaml.safe_dump(machine, sort_keys=False).replace("\nthreads:", "\ntreads:")
    wrong = problems(shared, platform=text)
    assert wrong["/treads", "unknown_key"]["position"] == word(text, "treads:")
    steps = "strategy: s\nsteps:\n  - search\n  - nonsense\n"
    (problem,) = problems(shared, strategy=steps).values()
    assert problem["position"] == word(steps, "nonsense")


def test_one_bad_document_makes_the_whole_invalid(shared):
    found = checked(shared, pipeline=BLUR, strategy={"strategy": "x"})
    assert (found["valid"], found["pipeline"]["valid"], found["strategy"]["valid"]) == (False, True, False)


def test_nothing_to_check_is_refused(shared):
    answer = shared.client.post("/v1/validate", json={})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_request")
    assert shared.client.post("/v1/validate", content="x").json()["code"] == "unsupported_media_type"


def test_hostile_text_is_refused(shared):
    for text in ("a: &a [*a]", "!!python/object:os.system {}", "[" * 10_000, "- " * 10_000, "{" * 5000, "x" * 600_000):
        assert not checked(shared, pipeline=text, platform=text, strategy=text)["valid"]


def test_shipped_documents_are_valid(shared):
    folder = Path(__file__).parents[2] / "tilesmith" / "scheduler" / "pipelines"
    files = sorted(folder.rglob("*.yaml")) + sorted(folder.rglob("*.json"))
    assert files
    for file in files[:5]:
        assert checked(shared, pipeline=file.read_text(encoding="utf-8"))["valid"]
