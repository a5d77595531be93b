"""Acting in a browser: a picture is run, before and after are there; jobs are followed, cancelled and asked again."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from browser.checks import by_keyboard, looks_well
from PIL import Image
from playwright.sync_api import Page, expect

FOREVER = "1000"  # calls: seconds, so that there is time to look


@pytest.fixture(scope="module")
def photo(tmp_path_factory) -> Path:
    """A picture with something on it, 120 by 80."""
    y, x = np.mgrid[:80, :120]
    rings = np.sin(np.hypot(x - 60, y - 40) / 3) * 127 + 128
    path = tmp_path_factory.mktemp("photo") / "rings.png"
    Image.fromarray(np.stack([rings, rings[::-1], 255 - rings], 2).astype(np.uint8)).save(path)
    return path


def status(page: Page):
    return page.get_by_role("status")


def run_on(page: Page, photo: Path) -> None:
    """Uploads the picture on the page of a schedule, and waits until the job has come to its end."""
    page.get_by_label(re.compile("^input")).set_input_files(photo)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(status(page)).to_have_text("The job has succeeded.", timeout=60_000)


def loaded(page: Page, name: str) -> bool:
    """True if the picture is there and has been loaded."""
    picture = page.get_by_role("img", name=name)
    expect(picture).to_be_visible()
    return bool(picture.evaluate("e => e.decode().then(() => e.naturalWidth > 0)"))


def test_a_picture_is_run_and_shown_before_and_after(site, visit, photo):
    page = visit(f"/schedules/{site.schedules['unsharp']}")
    run_on(page, photo)
    assert loaded(page, "input")
    assert loaded(page, "output")
    assert page.get_by_text("nearly black").count() == 0
    for name in ("output as an array (.npy)", "output as a picture (.png)"):
        with page.expect_download() as download:
            page.get_by_role("link", name=name).click()
        content = download.value.path().read_bytes()
        assert content[:6] in (b"\x93NUMPY", b"\x89PNG\r\n")


def test_a_dark_result_is_stretched(site, visit, photo):
    page = visit(f"/schedules/{site.schedules['harris']}")
    run_on(page, photo)
    assert loaded(page, "output, stretched")
    expect(page.get_by_text("As it is, the picture is nearly black")).to_be_visible()


def test_the_same_is_asked_again(site, visit, photo):
    page = visit(f"/schedules/{site.schedules['unsharp']}")
    run_on(page, photo)
    before = page.url
    page.get_by_role("button", name="Run this job again").click()
    page.wait_for_url(lambda url: url != before)
    expect(status(page)).to_have_text("The job has succeeded.", timeout=60_000)
    assert loaded(page, "input")
    assert loaded(page, "output")


def measure(page: Page, calls: str) -> None:
    page.get_by_label("Measure on random images, calls").fill(calls)
    page.get_by_role("button", name="Measure").click()
    page.wait_for_url("**/jobs/*")


def test_a_job_is_followed_to_its_end_without_reloading(site, visit):
    page = visit(f"/schedules/{site.schedules['unsharp']}")
    measure(page, "50")
    page.evaluate("window.sameDocument = true")
    expect(status(page)).to_have_text("The job has succeeded.", timeout=60_000)
    expect(page.get_by_role("heading", name="Measured")).to_be_visible()
    expect(page.get_by_text("50 calls")).to_be_visible()
    assert loaded(page, "Times of the calls in their order")
    assert page.locator("ol.steps li").all_inner_texts()[-1].endswith("succeeded")
    assert page.evaluate("window.sameDocument") is True


def test_jobs_are_cancelled_while_they_run_and_while_they_wait(site, visit):
    running = visit(f"/schedules/{site.schedules['harris']}")
    measure(running, FOREVER)
    expect(status(running)).to_contain_text("is running")
    waiting = visit(f"/schedules/{site.schedules['blur']}")
    measure(waiting, "2")
    expect(status(waiting)).to_contain_text("waits for its turn")
    for page in (waiting, running):
        page.get_by_role("button", name="Cancel").click()
        expect(status(page)).to_have_text("The job was cancelled.", timeout=20_000)
        expect(page.get_by_role("button", name="Cancel")).to_have_count(0)


@pytest.mark.parametrize("name", ["build", "run", "tune"])
def test_pages_of_jobs_are_accessible_and_fit_and_the_keyboard_reaches_everything(site, visit, name):
    page = visit(f"/jobs/{site.jobs[name]}")
    looks_well(page)
    by_keyboard(page)


def test_all_of_it_works_without_scripts(site, visit, photo):
    page = visit(f"/schedules/{site.schedules['unsharp']}", scripts=False)
    page.get_by_label(re.compile("^input")).set_input_files(photo)
    page.get_by_role("button", name="Run", exact=True).click()
    again = page.get_by_role("link", name="Look again")
    site.finished(page.url.rpartition("/")[2])
    if again.count():
        again.click()
    expect(status(page)).to_have_text("The job has succeeded.")
    expect(page.get_by_role("img", name="output")).to_be_visible()
    page.get_by_role("button", name="Run this job again").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Run of unsharp on host")
    site.finished(page.url.rpartition("/")[2])
