"""One service with a handful of schedules and jobs, and one Chromium, for all tests of pages.

    def test_...(site, visit):
        page = visit(f"/schedules/{site.schedules['harris']}", width=360, theme="dark")

What the console says, what fails to load and what the content security policy forbids is in `page.complaints`; the test
ends with a failure where there is any.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from support.servers import running
from support.tools import require_tool

from tilesmith.app.service import logs
from tilesmith.app.service.jobs.states import FINISHED
from tilesmith.app.service.main import create_app
from tilesmith.app.service.schedules.examples import BLUR
from tilesmith.app.service.settings import Settings

Theme = Literal["light", "dark"]
SIZES = {360: 800, 1280: 900}
OTHER_PLATFORM = "i7-6700"


@dataclass(frozen=True)
class Site:
    """A running service: its address, a client, and the ids of what it has, by name."""

    url: str
    client: httpx.Client
    schedules: dict[str, str]
    jobs: dict[str, str]

    def ask(self, **body: Any) -> str:
        """The id of a schedule, made now."""
        answer = self.client.post("/v1/schedules", json=body)
        assert answer.status_code in (200, 201, 202), answer.text
        return str(answer.json()["id"])

    def finished(self, job_id: str) -> dict[str, Any]:
        """The job, once it has come to its end."""
        deadline = time.monotonic() + 120
        while (job := self.client.get(f"/v1/jobs/{job_id}").json())["state"] not in FINISHED:
            assert time.monotonic() < deadline, job
            time.sleep(0.05)
        return dict(job)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Schedules `blur` (two versions of the pipeline: `blur`, `blur again`), `harris`, `harris elsewhere` (another
    platform), `camera`, `unsharp` and `tuned`; jobs `build`, `run`, `tune`."""
    with empty_site(tmp_path_factory.mktemp("site")) as made:
        _fill(made)
        yield made


@contextmanager
def empty_site(folder: Path) -> Iterator[Site]:
    """A service that has nothing: modules whose tests leave something behind have one of their own."""
    require_tool("gcc")
    logs.configure("json", "error")
    settings = Settings(data_dir=folder, schedule_workers=0, job_workers=1, log_level="error", calibrate=False)
    with running(create_app(settings)) as url, httpx.Client(base_url=url, timeout=120, verify=False) as client:
        yield Site(url, client, {}, {})


def _fill(site: Site) -> None:
    small = {"blur_y": [[0, 96], [0, 64]]}
    first = {**BLUR, "estimates": small}
    site.schedules["blur"] = site.ask(pipeline=first)
    site.schedules["blur again"] = site.ask(pipeline={**first, "estimates": {"blur_y": [[0, 640], [0, 480]]}})
    site.schedules["harris"] = site.ask(pipeline_id="harris")
    site.schedules["harris elsewhere"] = site.ask(pipeline_id="harris", platform_name=OTHER_PLATFORM)
    site.schedules["camera"] = site.ask(pipeline_id="camera_pipe", platform_name=OTHER_PLATFORM)
    site.schedules["unsharp"] = site.ask(pipeline_id="unsharp")
    blur = f"/v1/schedules/{site.schedules['blur']}"
    site.jobs["build"] = site.client.post(f"{blur}/builds", json={}).json()["id"]
    site.jobs["run"] = site.client.post(f"{blur}/runs", json={"estimates": True, "repeat": 5}).json()["id"]
    asked = site.client.post("/v1/schedules", json={"pipeline": first, "options": {"tune": 2}}).json()
    site.jobs["tune"] = asked["jobs"][0]["id"]
    for name, job in site.jobs.items():
        assert site.finished(job)["state"] == "succeeded", (name, site.finished(job))
    site.schedules["tuned"] = site.ask(pipeline=first, options={"tune": 2})
    for commit, schedule in (("a" * 40, "blur"), ("b" * 40, "blur again")):
        results = {"branch": "main", "commit": commit, "results": [{"schedule_id": site.schedules[schedule]}]}
        assert site.client.post("/v1/projects/camera/results", json=results).status_code == 201
    site.client.put(f"{blur}/notes", json={"note": "The first", "tags": ["small", "release-2"]})


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, without windows. It ends with the module: while Playwright is at work the process has an event
    loop, beside which tests of others could start none."""
    path = require_tool("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@dataclass
class Visits:
    """Pages that a test has opened, and what was wrong on them."""

    browser: Browser
    base: str
    complaints: list[str] = field(default_factory=list)

    def __call__(self, path: str, width: int = 1280, theme: Theme = "light", scripts: bool = True) -> Page:
        """A page in a window of its own."""
        context = self.browser.new_context(
            base_url=self.base,
            viewport={"width": width, "height": SIZES.get(width, 900)},
            color_scheme=theme,
            java_script_enabled=scripts,
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(path)
        return page


@pytest.fixture
def visit(chromium: Browser, site: Site) -> Iterator[Callable[..., Page]]:
    """visit(path, width=1280, theme="light", scripts=True): the page. The test fails where a console complained."""
    visits = Visits(chromium, site.url)
    yield visits
    for context in chromium.contexts:
        context.close()
    assert visits.complaints == []
