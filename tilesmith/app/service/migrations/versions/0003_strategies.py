"""Strategies of users"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    name = sa.String(length=64).with_variant(sa.String(length=64, collation="C"), "postgresql")
    op.create_table(
        "strategies",
        sa.Column("id", name, nullable=False),
        sa.Column("name", name, nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_strategies")),
    )
    with op.batch_alter_table("strategies", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_strategies_name_id"), ["name", "id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_strategies_name_id"), table_name="strategies")
    op.drop_table("strategies")
