"""When jobs are due, by which short ones are not stuck behind long ones"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0016"
down_revision: str | None = "0015"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("due_us", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute("UPDATE jobs SET due_us = created_us")


def downgrade() -> None:
    op.drop_column("jobs", "due_us")
