"""Times, notes and tags of schedules; their answers among the forms, so that lists read short rows"""

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

BATCH = 100
ANSWER = "answer"

schedules = sa.table(
    "schedules",
    sa.column("id", sa.String),
    sa.column("pipeline", sa.String),
    sa.column("platform", sa.String),
    sa.column("method", sa.String),
    sa.column("etag", sa.String),
    sa.column("body", sa.LargeBinary),
    sa.column("predicted_ms", sa.Float),
    sa.column("measured_ms", sa.Float),
    sa.column("words", sa.Text),
)
forms = sa.table(
    "schedule_forms",
    sa.column("schedule_id", sa.String),
    sa.column("name", sa.String),
    sa.column("media_type", sa.String),
    sa.column("etag", sa.String),
    sa.column("content", sa.LargeBinary),
)


def upgrade() -> None:
    for name in ("predicted_ms", "measured_ms"):
        op.add_column("schedules", sa.Column(name, sa.Float(), nullable=True))
    for name in ("note", "tags", "words"):
        op.add_column("schedules", sa.Column(name, sa.Text(), nullable=False, server_default=""))
    connection, last = op.get_bind(), ""
    while rows := connection.execute(_some(schedules, schedules.c.id, last)).all():
        last = rows[-1].id
        connection.execute(
            forms.insert(),
            [
                {
                    "schedule_id": r.id,
                    "name": ANSWER,
                    "media_type": "application/json",
                    "etag": r.etag,
                    "content": r.body,
                }
                for r in rows
            ],
        )
        for row in rows:
            connection.execute(schedules.update().where(schedules.c.id == row.id).values(_found(row)))
    op.create_index(op.f("ix_results_pipeline_recorded_us"), "results", ["pipeline", "recorded_us"])
    op.drop_column(
        "schedules", "body"
    )  # not in batch mode: that would make the table anew, and delete what refers to it
    op.drop_column("schedules", "etag")


def downgrade() -> None:
    op.drop_index(op.f("ix_results_pipeline_recorded_us"), "results")
    op.add_column("schedules", sa.Column("etag", sa.String(length=64), nullable=False, server_default=""))
    op.add_column("schedules", sa.Column("body", sa.LargeBinary(), nullable=False, server_default=""))
    connection, last = op.get_bind(), ""
    while rows := connection.execute(_some(forms, forms.c.schedule_id, last, forms.c.name == ANSWER)).all():
        last = rows[-1].schedule_id
        for row in rows:
            here = schedules.update().where(schedules.c.id == row.schedule_id)
            connection.execute(here.values(etag=row.etag, body=row.content))
    connection.execute(forms.delete().where(forms.c.name == ANSWER))
    for name in ("words", "tags", "note", "measured_ms", "predicted_ms"):
        op.drop_column("schedules", name)


def _some(
    table: sa.TableClause, key: sa.ColumnClause[Any], last: str, *where: sa.ColumnElement[bool]
) -> sa.Select[Any]:
    return sa.select(table).where(key > last, *where).order_by(key).limit(BATCH)


def _found(row: Any) -> dict[str, Any]:
    """The new columns of a row, from its body."""
    body = json.loads(row.body)
    predicted, tuning = body.get("predicted") or {}, body.get("tuning") or {}
    chosen = [s.get("median_ms") for s in tuning.get("samples", ()) if s.get("rank") == tuning.get("chosen")]
    return {
        "predicted_ms": predicted["total"] / 1000 if predicted.get("unit") == "microseconds" else None,
        "measured_ms": chosen[0] if chosen else None,
        "words": f"{row.pipeline} {row.platform} {row.method}".lower(),
    }
