"""Owners of jobs, who take turns, and keys that start one job however often they are sent"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0010"
down_revision: str | None = "0009"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("owner", sa.String(length=64), nullable=False, server_default=""))
    for name in ("once", "fingerprint"):
        op.add_column("jobs", sa.Column(name, sa.String(length=64), nullable=True))
    op.create_index(op.f("ix_jobs_owner_started_us"), "jobs", ["owner", "started_us"])
    op.create_index(op.f("ix_jobs_once"), "jobs", ["once"], unique=True)


def downgrade() -> None:
    op.drop_index(op.f("ix_jobs_once"), "jobs")
    op.drop_index(op.f("ix_jobs_owner_started_us"), "jobs")
    for name in ("fingerprint", "once", "owner"):
        op.drop_column("jobs", name)
