"""Owners of schedules and pipelines, and how much each has stored"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0015"
down_revision: str | None = "0014"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "holdings",
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("schedules", sa.Integer(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner", name=op.f("pk_holdings")),
    )
    for table in ("schedules", "pipelines"):
        op.add_column(table, sa.Column("owner", sa.String(length=64), nullable=False, server_default=""))
        op.add_column(table, sa.Column("bytes", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    for table in ("pipelines", "schedules"):
        op.drop_column(table, "bytes")
        op.drop_column(table, "owner")
    op.drop_table("holdings")
