"""Artifacts of jobs and libraries in an object store"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0008"
down_revision: str | None = "0007"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("artifacts", sa.LargeBinary(), nullable=True))
    op.add_column("libraries", sa.Column("sha256", sa.String(length=64), nullable=True))


def downgrade() -> None:
    op.drop_column("libraries", "sha256")
    op.drop_column("jobs", "artifacts")
