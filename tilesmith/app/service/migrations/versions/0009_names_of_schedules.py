"""Names that searches look into; times of a pipeline on a platform in order"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0009"
down_revision: str | None = "0008"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

TIMES = ("predicted_ms", "measured_ms")


def upgrade() -> None:
    name = sa.String(length=64).with_variant(sa.String(length=64, collation="C"), "postgresql")
    op.create_table(
        "schedule_names",
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("name", name, nullable=False),
        sa.PrimaryKeyConstraint("kind", "name", name=op.f("pk_schedule_names")),
    )
    for kind in ("pipeline", "platform", "method"):
        names = f"SELECT DISTINCT '{kind}', {kind} FROM schedule_tallies"
        op.get_bind().execute(sa.text(f"INSERT INTO schedule_names (kind, name) {names}"))
    for time in TIMES:
        columns = ["pipeline", "platform", time, "id"]
        op.create_index(op.f(f"ix_schedules_pipeline_platform_{time}_id"), "schedules", columns)


def downgrade() -> None:
    for time in TIMES:
        op.drop_index(op.f(f"ix_schedules_pipeline_platform_{time}_id"), "schedules")
    op.drop_table("schedule_names")
