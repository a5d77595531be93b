"""Forms of schedules compressed, those together that cannot be made again, the others each"""

import hashlib
import json
import lzma
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0011"
down_revision: str | None = "0010"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 4, "lp": 0, "pb": 0, "dict_size": 1 << 20}]
BATCH = 100
MADE = ("loopnest.txt", "schedule.h", "schedule.py", "figures.json", "tiles.json", "source.json")
PARTS = {"code.c": "code", "code.h": "header"}
MEDIA_TYPES = {"c": "text/x-c", "h": "text/x-c", "txt": "text/plain", "py": "text/x-python"}
ID = sa.String(length=64).with_variant(sa.String(length=64, collation="C"), "postgresql")


def upgrade() -> None:
    connection = op.get_bind()
    _create("kept_forms", [], _blob("answer"), _blob("others"))
    _create("made_forms", ["name"], _name(), _blob("content"))
    read = sa.text("SELECT name, content FROM schedule_forms WHERE schedule_id = :id")
    for ids in _ids(connection, "schedule_forms"):
        kept, made = [], []
        for schedule_id in ids:
            forms = {row.name: bytes(row.content) for row in connection.execute(read, {"id": schedule_id})}
            answer = zlib.compress(forms.pop("answer", b"{}"), 9)
            kept.append({"schedule_id": schedule_id, "answer": answer, "others": _pack(_kept(forms))})
            made += [
                {"schedule_id": schedule_id, "name": name, "content": zlib.compress(content, 9)}
                for name, content in forms.items()
                if name.rpartition("/")[2] in MADE
            ]
        connection.execute(sa.text("INSERT INTO kept_forms VALUES (:schedule_id, :answer, :others)"), kept)
        if made:
            connection.execute(sa.text("INSERT INTO made_forms VALUES (:schedule_id, :name, :content)"), made)
    op.drop_table("schedule_forms")


def downgrade() -> None:
    connection = op.get_bind()
    media_type, etag = (sa.Column(name, sa.String(length=64), nullable=False) for name in ("media_type", "etag"))
    _create("schedule_forms", ["name"], _name(), media_type, etag, _blob("content"))
    kept = sa.text("SELECT answer, others FROM kept_forms WHERE schedule_id = :id")
    made = sa.text("SELECT name, content FROM made_forms WHERE schedule_id = :id")
    for ids in _ids(connection, "kept_forms"):
        rows = []
        for schedule_id in ids:
            row = connection.execute(kept, {"id": schedule_id}).one()
            forms = _unpack(row.others) | {"answer": zlib.decompress(row.answer)}
            forms |= {r.name: zlib.decompress(r.content) for r in connection.execute(made, {"id": schedule_id})}
            source = json.loads(forms.get("source.json", b"{}"))
            forms |= {name: source[key].encode() for name, key in PARTS.items() if key in source}
            rows += [_old_row(schedule_id, name, content) for name, content in forms.items()]
        insert = "INSERT INTO schedule_forms VALUES (:schedule_id, :name, :media_type, :etag, :content)"
        connection.execute(sa.text(insert), rows)
    op.drop_table("made_forms")
    op.drop_table("kept_forms")


def _kept(forms: Mapping[str, bytes]) -> dict[str, bytes]:
    """The forms that cannot be made from others."""
    tuned = b'"tuning"' in forms.get("explain", b"")
    without = {*MADE, *PARTS, "predicted.json", *(() if tuned else ("explain.txt",))}
    return {name: content for name, content in forms.items() if name.rpartition("/")[2] not in without}


def _create(table: str, key: Sequence[str], *columns: sa.Column[Any]) -> None:
    op.create_table(
        table,
        sa.Column("schedule_id", ID, nullable=False),
        *columns,
        sa.ForeignKeyConstraint(
            ["schedule_id"], ["schedules.id"], name=op.f(f"fk_{table}_schedule_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("schedule_id", *key, name=op.f(f"pk_{table}")),
    )


def _name() -> sa.Column[str]:
    return sa.Column("name", sa.String(length=32), nullable=False)


def _blob(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary(), nullable=False)


def _ids(connection: sa.Connection, table: str) -> Iterator[list[str]]:
    """The ids of all schedules that have forms in the table, some at a time."""
    after = ""
    query = sa.text(
        f"SELECT DISTINCT schedule_id FROM {table} WHERE schedule_id > :after ORDER BY schedule_id LIMIT {BATCH}"
    )
    while ids := list(connection.execute(query, {"after": after}).scalars()):
        yield ids
        after = ids[-1]


def _pack(forms: Mapping[str, bytes]) -> bytes:
    names = sorted(forms)
    head = json.dumps([[name, len(forms[name])] for name in names], separators=(",", ":")).encode()
    text = b"".join([head, b"\n", *(forms[name] for name in names)])
    return lzma.compress(text, check=lzma.CHECK_CRC32, filters=FILTERS)


def _unpack(packed: bytes) -> dict[str, bytes]:
    head, _, text = lzma.decompress(packed).partition(b"\n")
    forms, start = {}, 0
    for name, length in json.loads(head):
        forms[name] = text[start : start + length]
        start += length
    return forms


def _old_row(schedule_id: str, name: str, content: bytes) -> dict[str, Any]:
    text = MEDIA_TYPES.get(name.rpartition(".")[2])
    return {
        "schedule_id": schedule_id,
        "name": name,
        "media_type": "application/json" if text is None else f"{text}; charset=utf-8",
        "etag": f'"{hashlib.sha256(content).hexdigest()[:32]}"',
        "content": content,
    }
