"""Owners of strategies, whose bytes are taken off where they are deleted"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0018"
down_revision: str | None = "0017"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Strategies of before have an unknown owner and no bytes: nobody's holding changes with them."""
    op.add_column("strategies", sa.Column("owner", sa.String(length=64), nullable=False, server_default=""))
    op.add_column("strategies", sa.Column("bytes", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("strategies", "bytes")
    op.drop_column("strategies", "owner")
