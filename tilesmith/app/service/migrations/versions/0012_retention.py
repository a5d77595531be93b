"""Indices by which what is no longer kept is found"""

from collections.abc import Sequence

from alembic import op

revision: str = "0012"
down_revision: str | None = "0011"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_index(op.f("ix_jobs_finished_us"), "jobs", ["finished_us"])
    op.create_index(op.f("ix_results_schedule_id"), "results", ["schedule_id"])


def downgrade() -> None:
    op.drop_index(op.f("ix_results_schedule_id"), "results")
    op.drop_index(op.f("ix_jobs_finished_us"), "jobs")
