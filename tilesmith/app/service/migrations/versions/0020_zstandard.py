"""Forms of schedules in frames of Zstandard, one for all that are kept"""

import json
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import zstandard
from alembic import op

revision: str = "0020"
down_revision: str | None = "0019"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 1, "lc": 4, "lp": 0, "pb": 0, "dict_size": 1 << 16}]
BATCH = 500
HERE = Path(__file__).parents[1]
ID = sa.String(length=64).with_variant(sa.String(length=64, collation="C"), "postgresql")


def upgrade() -> None:
    connection, vocabulary = op.get_bind(), (HERE / "vocabulary.txt").read_bytes()
    packer = zstandard.ZstdCompressor(level=9, dict_data=_dictionary(), write_checksum=True)

    def inflated(packed: bytes) -> bytes:
        return zlib.decompressobj(zdict=vocabulary).decompress(packed)

    _create("packed_forms", "content")
    insert = sa.text("INSERT INTO packed_forms VALUES (:schedule_id, :content)")
    for rows in _batches(connection, "kept_forms", "schedule_id"):
        packed = []
        for row in rows:
            others = _separated(lzma.decompress(row.others), inflated)
            content = packer.compress(_joined(_forms(inflated(row.answer), others)))
            packed.append({"schedule_id": row.schedule_id, "content": content})
        connection.execute(insert, packed)
    op.drop_table("kept_forms")
    _repack(connection, lambda content: packer.compress(inflated(content)))


def downgrade() -> None:
    connection = op.get_bind()
    unpacker = zstandard.ZstdDecompressor(dict_data=_dictionary())
    _create("kept_forms", "answer", "others")
    insert = sa.text("INSERT INTO kept_forms VALUES (:schedule_id, :answer, :others)")
    for rows in _batches(connection, "packed_forms", "schedule_id"):
        kept = []
        for row in rows:
            forms = _separated(unpacker.decompress(row.content))
            answer = zlib.compress(forms.pop("answer"), 9)
            others = lzma.compress(_joined(forms), check=lzma.CHECK_CRC32, filters=FILTERS)
            kept.append({"schedule_id": row.schedule_id, "answer": answer, "others": others})
        connection.execute(insert, kept)
    op.drop_table("packed_forms")
    _repack(connection, lambda content: zlib.compress(unpacker.decompress(content), 9))


def _dictionary() -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict((HERE.parent / "schedules" / "forms.dict").read_bytes())


def _create(table: str, *blobs: str) -> None:
    op.create_table(
        table,
        sa.Column("schedule_id", ID, nullable=False),
        *(sa.Column(name, sa.LargeBinary(), nullable=False) for name in blobs),
        sa.ForeignKeyConstraint(
            ["schedule_id"], ["schedules.id"], name=op.f(f"fk_{table}_schedule_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("schedule_id", name=op.f(f"pk_{table}")),
    )


def _batches(connection: sa.Connection, table: str, *key: str) -> Iterator[Sequence[Any]]:
    """All rows of the table, some at a time, in the order of the columns of its key."""
    columns, last = ", ".join(key), ", ".join(f":{name}" for name in key)
    query = sa.text(f"SELECT * FROM {table} WHERE ({columns}) > ({last}) ORDER BY {columns} LIMIT {BATCH}")
    after = dict.fromkeys(key, "")
    while rows := connection.execute(query, after).all():
        yield rows
        after = {name: rows[-1]._mapping[name] for name in key}


def _repack(connection: sa.Connection, repacked: Callable[[bytes], bytes]) -> None:
    """Forms that were made, packed in another way."""
    put = sa.text(
        "UPDATE made_forms SET content = :content, bytes = :bytes WHERE schedule_id = :schedule_id AND name = :name"
    )
    for rows in _batches(connection, "made_forms", "schedule_id", "name"):
        contents = [repacked(row.content) for row in rows]
        keys = [{"schedule_id": row.schedule_id, "name": row.name} for row in rows]
        connection.execute(put, [k | {"content": c, "bytes": len(c)} for k, c in zip(keys, contents, strict=True)])


def _forms(answer: bytes, forms: dict[str, bytes]) -> dict[str, bytes]:
    """All forms, with what those in compact JSON leave to the answer."""
    for part in ("predicted", "groups"):
        left_out = f'"{part}":"as answered"'.encode()
        for name in ("explain", "schedule.json"):
            if left_out in forms.get(name, b""):
                value = json.dumps(json.loads(answer)[part], separators=(",", ":"), allow_nan=False)
                forms[name] = forms[name].replace(left_out, f'"{part}":{value}'.encode())
    return {"answer": answer, **forms}


def _joined(forms: dict[str, bytes]) -> bytes:
    head = json.dumps([[name, len(content)] for name, content in forms.items()], separators=(",", ":")).encode()
    return b"".join([head, b"\n", *forms.values()])


def _separated(text: bytes, inflated: Callable[[bytes], bytes] = bytes) -> dict[str, bytes]:
    head, _, text = text.partition(b"\n")
    forms, start = {}, 0
    for name, length, *packed_too in json.loads(head):
        content = text[start : start + length]
        forms[name] = inflated(content) if packed_too else content
        start += length
    return forms
