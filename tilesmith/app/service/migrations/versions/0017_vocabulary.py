"""Forms of schedules with a vocabulary, explanations without what the answer predicts: read beside those of before"""

import json
import lzma
import zlib
from collections.abc import Sequence
from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision: str = "0017"
down_revision: str | None = "0016"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 1, "lc": 4, "lp": 0, "pb": 0, "dict_size": 1 << 20}]
VOCABULARY = Path(__file__).parents[1] / "vocabulary.txt"
AS_ANSWERED = b'"predicted":"as answered"'


def upgrade() -> None:
    pass


def downgrade() -> None:
    connection, vocabulary = op.get_bind(), VOCABULARY.read_bytes()

    def unpacked(packed: bytes) -> bytes:
        return zlib.decompressobj(zdict=vocabulary).decompress(packed)

    ids = list(connection.execute(sa.text("SELECT schedule_id FROM kept_forms ORDER BY schedule_id")).scalars())
    kept = sa.text("SELECT answer, others FROM kept_forms WHERE schedule_id = :id")
    put = sa.text("UPDATE kept_forms SET answer = :answer, others = :others WHERE schedule_id = :id")
    made = sa.text("SELECT name, content FROM made_forms WHERE schedule_id = :id")
    put_made = sa.text("UPDATE made_forms SET content = :content WHERE schedule_id = :id AND name = :name")
    for schedule_id in ids:
        row = connection.execute(kept, {"id": schedule_id}).one()
        answer = unpacked(row.answer)
        head, _, text = lzma.decompress(row.others).partition(b"\n")
        forms, start = {}, 0
        for name, length, *packed_too in json.loads(head):
            content = text[start : start + length]
            forms[name] = unpacked(content) if packed_too else content
            start += length
        if AS_ANSWERED in forms.get("explain", b""):
            predicted = json.dumps(json.loads(answer)["predicted"], separators=(",", ":")).encode()
            forms["explain"] = forms["explain"].replace(AS_ANSWERED, b'"predicted":' + predicted)
        lengths = json.dumps([[name, len(content)] for name, content in forms.items()], separators=(",", ":")).encode()
        others = lzma.compress(b"".join([lengths, b"\n", *forms.values()]), check=lzma.CHECK_CRC32, filters=FILTERS)
        connection.execute(put, {"id": schedule_id, "answer": zlib.compress(answer, 9), "others": others})
        for form in connection.execute(made, {"id": schedule_id}).all():
            content = zlib.compress(unpacked(form.content), 9)
            connection.execute(put_made, {"id": schedule_id, "name": form.name, "content": content})
