"""The clients' models of answers are those of the OpenAPI document, and their methods are all of its operations."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from support.client_models import models

from tilesmith.app.client import Client
from tilesmith.app.client import models as kept
from tilesmith.app.service.main import create_app
from tilesmith.app.service.settings import Settings

FILE = Path(inspect.getfile(kept))


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    return create_app(Settings(data_dir=tmp_path_factory.mktemp("models"), schedule_workers=0)).openapi()


def test_the_models_are_those_of_the_document(document, request):
    text = subprocess.run(
        [Path(sys.executable).with_name("ruff"), "format", "-", "--stdin-filename", FILE],
        input=models(document),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    if request.config.getoption("--renew-golden"):
        FILE.write_text(text, encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == text, "make them anew with --renew-golden"


ARGUMENTS = {
    "schedule": ("harris",),
    "batch": ([{"pipeline_id": "harris"}],),
    "form": ("x", "code.c"),
    "output": ("x", "y"),
    "create_token": ("ci", ["read"]),
    **{f"store_{what}": ({"name": "x"},) for what in ("pipeline", "platform", "strategy")},
    "wait": ({"id": "x", "state": "running"},),
}
"""Of methods that take more, or other, than a name."""
WITHOUT = {"getHealth", "getComponentArray", "getComponentPicture"}
"""Operations without a method: `health` asks whether the service can do its work; components are of tuples."""


def test_there_is_a_method_for_every_operation(document):
    sent = []

    def handle(request):
        sent.append((request.method.lower(), request.url.path))
        state = "succeeded" if request.url.path.startswith("/v1/jobs/") else None
        return httpx.Response(200, json={"id": "x", "state": state})

    with Client(transport=httpx.MockTransport(handle)) as client:
        for name, method in inspect.getmembers(client, inspect.ismethod):
            if not name.startswith("_"):
                positional = [
                    p for p in inspect.signature(method).parameters.values() if p.default is p.empty and p.kind == 1
                ]
                method(*ARGUMENTS.get(name, ("x",) * len(positional)))
        for form in document["paths"]:
            if form.startswith("/v1/schedules/{schedule_id}/") and "get" in document["paths"][form]:
                client.form("x", form.removeprefix("/v1/schedules/{schedule_id}/").replace("{rank}", "1"))
        client.output("x", "y", "png")
    for path, operations in document["paths"].items():
        pattern = re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))
        for method, operation in operations.items():
            asked = any(m == method and pattern.fullmatch(p) for m, p in sent)
            assert asked or operation["operationId"] in WITHOUT, operation["operationId"]
    for method, path in sent:
        patterns = (re.sub(r"\\{\w+\\}", "[^/]+", re.escape(p)) for p, o in document["paths"].items() if method in o)
        assert any(re.fullmatch(p, path) for p in patterns), (method, path)
