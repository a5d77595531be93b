"""When schedules were last used, by which retention goes"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0019"
down_revision: str | None = "0018"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("schedules", sa.Column("used_us", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute("UPDATE schedules SET used_us = created_us")
    op.create_index(op.f("ix_schedules_used_us_id"), "schedules", ["used_us", "id"])


def downgrade() -> None:
    op.drop_index(op.f("ix_schedules_used_us_id"), "schedules")
    op.drop_column("schedules", "used_us")
