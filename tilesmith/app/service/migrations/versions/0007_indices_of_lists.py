"""An index for each filter of a list in each order; numbers and names of schedules that are kept, not counted"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

NEW = {
    "schedules": (
        "pipeline created_us id",
        "pipeline platform created_us id",
        "pipeline predicted_ms id",
        "pipeline measured_ms id",
        "pipeline_id created_us id",
        "pipeline_id platform created_us id",
        "pipeline_id predicted_ms id",
        "pipeline_id measured_ms id",
        "platform created_us id",
        "platform pipeline created_us id",
        "platform predicted_ms id",
        "platform measured_ms id",
        "method created_us id",
        "method pipeline created_us id",
        "method platform created_us id",
        "method predicted_ms id",
        "method measured_ms id",
        "predicted_ms id",
        "measured_ms id",
    ),
    "measurements": (
        "schedule_id measured_us id",
        "pipeline measured_us id",
        "platform measured_us id",
        "machine measured_us id",
        "kind measured_us id",
    ),
    "jobs": ("state created_us id", "kind created_us id", "schedule_id created_us id"),
    "results": ("project branch recorded_us id", "project pipeline recorded_us id"),
}
OLD = {
    "schedules": ("pipeline created_us",),
    "measurements": ("schedule_id measured_us",),
    "jobs": ("state created_us", "schedule_id created_us"),
    "results": ("project branch recorded_us",),
}
NAMES = "pipeline, pipeline_id, platform, method"
TALLY = f"""INSERT INTO schedule_tallies ({NAMES}, made, first_us, latest_us, predicted_ms, measured_ms)
  SELECT {NAMES}, count(*), min(created_us), max(created_us), min(predicted_ms), min(measured_ms)
  FROM schedules GROUP BY {NAMES}"""
OF_SCHEDULE = "(SELECT {0} FROM schedules WHERE schedules.id = measurements.schedule_id)"
WORDS = "lower(pipeline || ' ' || platform || ' ' || method || CASE tags WHEN '' THEN '' ELSE ' ' || tags END)"


def upgrade() -> None:
    connection = op.get_bind()
    name = sa.String(length=64).with_variant(sa.String(length=64, collation="C"), "postgresql")
    _drop(OLD)
    op.create_table(
        "schedule_tallies",
        sa.Column("pipeline", name, nullable=False),
        sa.Column("pipeline_id", sa.String(length=64), nullable=False),
        sa.Column("platform", sa.String(length=64), nullable=False),
        sa.Column("method", sa.String(length=32), nullable=False),
        sa.Column("made", sa.Integer(), nullable=False),
        sa.Column("first_us", sa.BigInteger(), nullable=False),
        sa.Column("latest_us", sa.BigInteger(), nullable=False),
        sa.Column("predicted_ms", sa.Float(), nullable=True),
        sa.Column("measured_ms", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("pipeline", "pipeline_id", "platform", "method", name=op.f("pk_schedule_tallies")),
    )
    for column in ("platform", "method"):
        op.create_index(op.f(f"ix_schedule_tallies_{column}"), "schedule_tallies", [column])
    connection.execute(sa.text(TALLY))
    tags = op.create_table(
        "schedule_tags",
        sa.Column("tag", sa.String(length=32), nullable=False),
        sa.Column("schedule_id", name, nullable=False),
        sa.ForeignKeyConstraint(
            ["schedule_id"], ["schedules.id"], name=op.f("fk_schedule_tags_schedule_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tag", "schedule_id", name=op.f("pk_schedule_tags")),
    )
    op.create_index(op.f("ix_schedule_tags_schedule_id"), "schedule_tags", ["schedule_id"])
    tagged = connection.execute(sa.text("SELECT id, tags FROM schedules WHERE tags <> ''")).all()
    if tagged:
        op.bulk_insert(tags, [{"tag": tag, "schedule_id": row.id} for row in tagged for tag in row.tags.split()])
    connection.execute(sa.text("UPDATE schedules SET tags = trim(tags) WHERE tags <> ''"))
    op.drop_column("schedules", "words")
    for column, kind in (("pipeline", name), ("platform", sa.String(length=64))):
        op.add_column("measurements", sa.Column(column, kind, nullable=False, server_default=""))
        connection.execute(sa.text(f"UPDATE measurements SET {column} = {OF_SCHEDULE.format(column)}"))
    _create(NEW)
    degraded = sa.text("degraded IS NOT NULL")
    op.create_index(
        "ix_schedules_degraded", "schedules", ["created_us", "id"], sqlite_where=degraded, postgresql_where=degraded
    )


def downgrade() -> None:
    connection = op.get_bind()
    op.drop_index("ix_schedules_degraded", "schedules")
    _drop(NEW)
    for column in ("pipeline", "platform"):
        op.drop_column("measurements", column)
    op.add_column("schedules", sa.Column("words", sa.Text(), nullable=False, server_default=""))
    connection.execute(sa.text(f"UPDATE schedules SET words = {WORDS}"))
    connection.execute(sa.text("UPDATE schedules SET tags = ' ' || tags || ' ' WHERE tags <> ''"))
    op.drop_table("schedule_tags")
    op.drop_table("schedule_tallies")
    _create(OLD)


def _create(indices: dict[str, tuple[str, ...]]) -> None:
    for table, lists in indices.items():
        for columns in map(str.split, lists):
            op.create_index(op.f("_".join(("ix", table, *columns))), table, columns)


def _drop(indices: dict[str, tuple[str, ...]]) -> None:
    for table, lists in indices.items():
        for columns in map(str.split, lists):
            op.drop_index(op.f("_".join(("ix", table, *columns))), table)
