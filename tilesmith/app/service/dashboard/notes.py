"""/schedules/{id}/notes: a form for the note and the tags of a schedule."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import ValidationError

from tilesmith.app.service.context import Services
from tilesmith.app.service.dashboard.pages import Change, Page, html
from tilesmith.app.service.schedules import lists, notes
from tilesmith.app.service.schedules.notes import NOTE_CHARACTERS, TAGS, Notes

router = APIRouter()


@router.get("/schedules/{schedule_id}/notes", dependencies=[Page], response_class=HTMLResponse)
def form(schedule_id: str, services: Services) -> HTMLResponse:
    """The form."""
    kept = notes.find(services.db, schedule_id)
    return _form(services, schedule_id, kept.note, " ".join(kept.tags), "", 200)


@router.post("/schedules/{schedule_id}/notes", dependencies=[Change], response_class=HTMLResponse)
def save(
    schedule_id: str,
    services: Services,
    note: Annotated[str, Form()] = "",
    tags: Annotated[str, Form()] = "",
) -> Response:
    """Keeps what the form has, and goes back to the schedule; the form with what is wrong, where something is."""
    try:
        given = Notes(note=note.replace("\r\n", "\n"), tags=tags.replace(",", " ").split())
    except ValidationError as error:
        wrong = "; ".join(f"{e['loc'][0]}: {e['msg']}" for e in error.errors(include_url=False))
        return _form(services, schedule_id, note, tags, wrong, 422)
    notes.replace(services.db, schedule_id, given)
    return RedirectResponse(f"/schedules/{schedule_id}", 303)


def _form(services: Services, schedule_id: str, note: str, tags: str, wrong: str, status: int) -> HTMLResponse:
    return html(
        "notes.html",
        status,
        schedule=lists.summary(services.db, schedule_id),
        note=note,
        tags=tags,
        wrong=wrong,
        most={"note": NOTE_CHARACTERS, "tags": TAGS},
        twin=f"/v1/schedules/{schedule_id}/notes",
    )
