"""/v1/webhooks: made, listed and removed by those who hold the scope admin; what was delivered."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Response

from tilesmith.app.service.context import Admin, Services
from tilesmith.app.service.paging import Paging, next_page
from tilesmith.app.service.times import instant
from tilesmith.app.service.webhooks import repository, schemas

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], dependencies=[Admin])

KIND = "deliveries"


@router.post("", status_code=201, operation_id="createWebhook", summary="Make a webhook")
def create(request: schemas.WebhookRequest, services: Services) -> schemas.NewWebhookDocument:
    """Told when results are recorded that are slower than those that the branch had before. The secret is in this
    answer and nowhere else."""
    made = services.webhooks.create(request.url, request.project, request.above)
    return schemas.NewWebhookDocument(
        id=made.id, url=made.url, project=made.project, above=made.above, secret=made.secret
    )


@router.get("", operation_id="listWebhooks", summary="List webhooks")
def every(services: Services) -> schemas.WebhookList:
    items = [
        schemas.WebhookDocument(
            id=row.id, url=row.url, project=row.project, above=row.above, created_at=instant(row.created_us)
        )
        for row in repository.every(services.db)
    ]
    return schemas.WebhookList(items=items)


@router.delete(
    "/{webhook_id}", status_code=204, response_class=Response, operation_id="removeWebhook", summary="Remove a webhook"
)
def remove(webhook_id: str, services: Services) -> Response:
    services.webhooks.remove(webhook_id)
    return Response(status_code=204)


@router.get("/{webhook_id}/deliveries", operation_id="listDeliveries", summary="Deliveries of a webhook")
def deliveries(webhook_id: str, services: Services, paging: Paging) -> schemas.DeliveryList:
    """The newest first."""
    services.webhooks.check(webhook_id)
    after = paging.key(KIND, (int, str))
    rows = repository.page(services.db, webhook_id, after, paging.limit + 1)
    page = next_page(rows, [(row.created_us, row.id) for row in rows], KIND, paging.limit)
    return schemas.DeliveryList(items=[_delivery(row) for row in page.items], next_cursor=page.next_cursor)


def _delivery(row: Any) -> schemas.Delivery:
    return schemas.Delivery(
        id=row.id,
        state=row.state,
        attempts=row.attempts,
        status=row.status,
        error=row.error,
        event=json.loads(row.body),
        created_at=instant(row.created_us),
        next_at=instant(row.next_us) if row.state == "waiting" else None,
    )
