"""Spans of time are looked for in the indices of times; names of platforms are ordered by code points"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0013"
down_revision: str | None = "0012"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

TIMES = ("predicted_ms", "measured_ms")


def upgrade() -> None:
    for time in TIMES:
        op.create_index(op.f(f"ix_schedules_{time}_id_created_us"), "schedules", [time, "id", "created_us"])
        op.drop_index(op.f(f"ix_schedules_{time}_id"), "schedules")
    _order_platforms(sa.String(length=64, collation="C"))


def downgrade() -> None:
    for time in TIMES:
        op.create_index(op.f(f"ix_schedules_{time}_id"), "schedules", [time, "id"])
        op.drop_index(op.f(f"ix_schedules_{time}_id_created_us"), "schedules")
    _order_platforms(sa.String(length=64, collation="default"))


def _order_platforms(type_: sa.String) -> None:
    """On SQLite they have always been ordered so."""
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("schedules", "platform", type_=type_)
