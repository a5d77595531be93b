"""Size and last use of forms that can be made again"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0014"
down_revision: str | None = "0013"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("made_forms", sa.Column("bytes", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("made_forms", sa.Column("used_us", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute("UPDATE made_forms SET bytes = length(content)")
    op.create_index(op.f("ix_made_forms_used_us_bytes"), "made_forms", ["used_us", "bytes"])


def downgrade() -> None:
    op.drop_index(op.f("ix_made_forms_used_us_bytes"), "made_forms")
    op.drop_column("made_forms", "used_us")
    op.drop_column("made_forms", "bytes")
