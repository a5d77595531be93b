"""/v1/schedules/{id}/notes: what people say of a schedule. The schedule itself does not change by it."""

from __future__ import annotations

from fastapi import APIRouter, Response

from tilesmith.app.service.context import Read, Services, Submit
from tilesmith.app.service.schedules import notes
from tilesmith.app.service.schedules.notes import Notes

router = APIRouter(prefix="/v1/schedules/{schedule_id}/notes", tags=["schedules"])


@router.get("", dependencies=[Read], operation_id="getNotes", summary="The note and the tags of a schedule")
def one(schedule_id: str, services: Services, response: Response) -> Notes:
    response.headers["Cache-Control"] = "no-store"
    return notes.find(services.db, schedule_id)


@router.put("", dependencies=[Submit], operation_id="replaceNotes", summary="Put a note and tags on a schedule")
def replace(schedule_id: str, body: Notes, services: Services) -> Notes:
    """In place of those that are there."""
    notes.replace(services.db, schedule_id, body)
    return body
