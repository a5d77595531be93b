"""Owners of results, and what these take: counted off where they are deleted"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0021"
down_revision: str | None = "0020"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("results", sa.Column("owner", sa.String(length=64), nullable=False, server_default=""))
    op.add_column("results", sa.Column("bytes", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("results", "bytes")
    op.drop_column("results", "owner")
