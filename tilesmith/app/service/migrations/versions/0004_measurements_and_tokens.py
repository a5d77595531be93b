"""Measurements of any job, with their conditions; tokens that expire, and when they were last used"""

import uuid
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    kept = op.get_bind().execute(sa.text("SELECT * FROM measurements")).mappings().all()
    op.drop_table("measurements")
    name = sa.String(length=64).with_variant(sa.String(length=64, collation="C"), "postgresql")
    table = op.create_table(
        "measurements",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("schedule_id", name, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("job_id", sa.String(length=36), nullable=True),
        sa.Column("candidate", sa.Integer(), nullable=True),
        sa.Column("estimated", sa.Boolean(), nullable=False),
        sa.Column("predicted", sa.Float(), nullable=True),
        sa.Column("minimum_ms", sa.Float(), nullable=True),
        sa.Column("median_ms", sa.Float(), nullable=True),
        sa.Column("low_ms", sa.Float(), nullable=True),
        sa.Column("high_ms", sa.Float(), nullable=True),
        sa.Column("times_ms", sa.LargeBinary(), nullable=False),
        sa.Column("compile_ms", sa.Float(), nullable=True),
        sa.Column("threads", sa.Integer(), nullable=True),
        sa.Column("machine", sa.Text(), nullable=True),
        sa.Column("conditions", sa.LargeBinary(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("measured_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["schedule_id"], ["schedules.id"], name=op.f("fk_measurements_schedule_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_measurements")),
    )
    op.create_index(op.f("ix_measurements_schedule_id_measured_us"), "measurements", ["schedule_id", "measured_us"])
    op.create_index(op.f("ix_measurements_measured_us_id"), "measurements", ["measured_us", "id"])
    if kept:
        op.bulk_insert(table, [_of_a_candidate(row) for row in kept])
    with op.batch_alter_table("tokens") as batch_op:
        batch_op.add_column(sa.Column("expires_us", sa.BigInteger(), nullable=True))
        batch_op.add_column(sa.Column("used_us", sa.BigInteger(), nullable=True))


def _of_a_candidate(row: Any) -> dict[str, Any]:
    """A measurement as it was kept before, of tuning alone."""
    compile_s = row["compile_s"]
    same = ("schedule_id", "candidate", "predicted", "minimum_ms", "median_ms", "times_ms", "error", "measured_us")
    return {name: row[name] for name in same} | {
        "id": str(uuid.uuid4()),
        "kind": "tune",
        "estimated": True,
        "compile_ms": None if compile_s is None else 1000 * compile_s,
    }


def downgrade() -> None:
    with op.batch_alter_table("tokens") as batch_op:
        batch_op.drop_column("used_us")
        batch_op.drop_column("expires_us")
    kept = op.get_bind().execute(sa.text("SELECT * FROM measurements WHERE kind = 'tune'")).mappings().all()
    op.drop_table("measurements")
    table = op.create_table(
        "measurements",
        sa.Column(
            "schedule_id",
            sa.String(length=64).with_variant(sa.String(length=64, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("candidate", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("predicted", sa.Float(), nullable=False),
        sa.Column("minimum_ms", sa.Float(), nullable=True),
        sa.Column("median_ms", sa.Float(), nullable=True),
        sa.Column("compile_s", sa.Float(), nullable=True),
        sa.Column("times_ms", sa.LargeBinary(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("measured_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["schedule_id"], ["schedules.id"], name=op.f("fk_measurements_schedule_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("schedule_id", "candidate", name=op.f("pk_measurements")),
    )
    if kept:
        op.bulk_insert(table, [_as_before(row) for row in kept])


def _as_before(row: Any) -> dict[str, Any]:
    same = ("schedule_id", "candidate", "predicted", "minimum_ms", "median_ms", "times_ms", "error", "measured_us")
    compile_ms = row["compile_ms"]
    return {name: row[name] for name in same} | {"compile_s": None if compile_ms is None else compile_ms / 1000}
