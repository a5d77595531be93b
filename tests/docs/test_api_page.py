"""docs/api.md names every route, error code, setting and limit, and none that there is not."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from tilesmith.app.service.errors import CODES
from tilesmith.app.service.jobs.states import STATES
from tilesmith.app.service.main import create_app
from tilesmith.app.service.metrics import Metrics
from tilesmith.app.service.settings import Settings
from tilesmith.app.service.tokens.service import SCOPES
from tilesmith.scheduler.frontends.document.limits import Limits

DOCS = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")


def table(heading):
    """Cells of the table below a heading, row by row, without the head."""
    section = DOCS.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows if not set(row[0].strip()) <= set("-: |")]


def names(heading):
    return [re.search(r"`([^`]+)`", row[0])[1] for row in table(heading) if "`" in row[0]]


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    return create_app(Settings(data_dir=tmp_path_factory.mktemp("docs"), schedule_workers=0))


def test_every_route_is_documented(app):
    served = {
        f"{method.upper()} {path}" for path, operations in app.openapi()["paths"].items() for method in operations
    } | {"GET /openapi.json", "GET /docs"}
    assert set(names("Routes")) == served
    assert len(names("Routes")) == len(served)


def test_every_error_code_is_documented_with_its_status():
    documented = {re.search(r"`([^`]+)`", row[0])[1]: int(row[1]) for row in table("Errors") if "`" in row[0]}
    assert documented == {code: status for code, (status, _) in CODES.items()}


def test_every_setting_is_documented():
    assert names("Settings") == [f"TILESMITH_{name.upper()}" for name in Settings.model_fields]


def test_every_limit_is_documented():
    found = {row[0].strip("`"): row[1].replace(",", "") for row in table("Limits of documents")[1:]}
    assert found == {f.name: str(getattr(Limits(), f.name)) for f in fields(Limits)}


def test_states_scopes_and_metrics_are_documented():
    for state in STATES:
        assert f"`{state}`" in DOCS
    for scope in SCOPES:
        assert f"`{scope}`" in DOCS
    for family in Metrics().registry.collect():
        assert f"`{family.name}" in DOCS
