"""The tables of the store. Times are microseconds since 1970, UTC; documents are bytes as they are sent.

pipelines, platforms, strategies  documents of users; shipped ones are not stored
schedules -- packed_forms         answers in the forms that cannot be made again: immutable, content-addressed
schedules -< made_forms           forms that can be made from these
schedules -< schedule_tags        what people call them; schedule_tallies has their numbers and names
schedules -< jobs -< job_events   work on a schedule and what happened to it
schedules -< measurements         what jobs measured: runs, and the candidates of a tuned schedule
tokens                            who may ask; holdings: how much they have stored
results                           what commits of projects were predicted and measured to take
webhooks -< webhook_deliveries    who is told of regressions, and what became of that
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Name = String(64).with_variant(String(64, collation="C"), "postgresql")
"""Ordered by code points on every database, as Python does it: lists merge what is shipped with what is stored."""

pipelines = Table(
    "pipelines",
    metadata,
    Column("id", Name, primary_key=True),
    Column("name", Name, nullable=False),
    Column("stages", Integer, nullable=False),
    Column("document", LargeBinary, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("owner", String(64), nullable=False, server_default=""),
    Column("bytes", Integer, nullable=False, server_default="0"),
    Index(None, "name", "id"),
)

strategies = Table(
    "strategies",
    metadata,
    Column("id", Name, primary_key=True),
    Column("name", Name, nullable=False),
    Column("document", LargeBinary, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("owner", String(64), nullable=False, server_default=""),
    Column("bytes", Integer, nullable=False, server_default="0"),
    Index(None, "name", "id"),
)

platforms = Table(
    "platforms",
    metadata,
    Column("name", Name, primary_key=True),
    Column("id", String(64), nullable=False),
    Column("kind", String(32), nullable=False),
    Column("document", LargeBinary, nullable=False),
    Column("created_us", BigInteger, nullable=False),
)

_ORDERS = (("created_us",), ("pipeline", "created_us"), ("platform", "created_us"), ("predicted_ms",), ("measured_ms",))

schedules = Table(
    "schedules",
    metadata,
    Column("id", Name, primary_key=True),
    Column("pipeline_id", String(64), nullable=False),
    Column("pipeline", Name, nullable=False),
    Column("platform", Name, nullable=False),
    Column("method", String(32), nullable=False),
    Column("strict", Boolean, nullable=False),
    Column("degraded", Text, nullable=True),
    Column("groups", Integer, nullable=False),
    Column("version", String(32), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("predicted_ms", Float, nullable=True),
    Column("measured_ms", Float, nullable=True),
    Column("note", Text, nullable=False, server_default=""),
    Column("tags", Text, nullable=False, server_default=""),
    Column("owner", String(64), nullable=False, server_default=""),
    Column("bytes", Integer, nullable=False, server_default="0"),
    Column("used_us", BigInteger, nullable=False, server_default="0"),
    Index(None, "created_us", "id"),
    Index(None, "used_us", "id"),
    *(
        Index(None, name, *order, "id")
        for name in ("pipeline", "pipeline_id", "platform", "method")
        for order in _ORDERS
        if name not in order and not (name == "pipeline_id" and "pipeline" in order)
    ),
    Index(None, "pipeline", "platform", "predicted_ms", "id"),
    Index(None, "pipeline", "platform", "measured_ms", "id"),
    Index(None, "predicted_ms", "id", "created_us"),
    Index(None, "measured_ms", "id", "created_us"),
)
_degraded = schedules.c.degraded.is_not(None)
Index(
    "ix_schedules_degraded", schedules.c.created_us, schedules.c.id, sqlite_where=_degraded, postgresql_where=_degraded
)
"""Rows are short, for lists: the answer is a form. What was decided never changes; what was measured, the note and the
tags do. There is an index for each filter in each order: a list reads the rows that it shows. Those of a
span of time are found in any order by its index, which has the time at its end."""

schedule_tallies = Table(
    "schedule_tallies",
    metadata,
    Column("pipeline", Name, primary_key=True),
    Column("pipeline_id", String(64), primary_key=True),
    Column("platform", String(64), primary_key=True),
    Column("method", String(32), primary_key=True),
    Column("made", Integer, nullable=False),
    Column("first_us", BigInteger, nullable=False),
    Column("latest_us", BigInteger, nullable=False),
    Column("predicted_ms", Float, nullable=True),
    Column("measured_ms", Float, nullable=True),
    Index(None, "platform"),
    Index(None, "method"),
)
"""Numbers of schedules, when the first and the newest of them were made, and their least times: kept, not counted."""

schedule_names = Table(
    "schedule_names",
    metadata,
    Column("kind", String(16), primary_key=True),
    Column("name", Name, primary_key=True),
)
"""The names that a search looks into: of a `pipeline`, a `platform` or a `method` that some schedule has or had."""

schedule_tags = Table(
    "schedule_tags",
    metadata,
    Column("tag", String(32), primary_key=True),
    Column("schedule_id", ForeignKey("schedules.id", ondelete="CASCADE"), primary_key=True),
    Index(None, "schedule_id"),
)

packed_forms = Table(
    "packed_forms",
    metadata,
    Column("schedule_id", ForeignKey("schedules.id", ondelete="CASCADE"), primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
"""The forms that cannot be made again, compressed together."""

made_forms = Table(
    "made_forms",
    metadata,
    Column("schedule_id", ForeignKey("schedules.id", ondelete="CASCADE"), primary_key=True),
    Column("name", String(32), primary_key=True),
    Column("content", LargeBinary, nullable=False),
    Column("bytes", Integer, nullable=False, server_default="0"),
    Column("used_us", BigInteger, nullable=False, server_default="0"),
    Index(None, "used_us", "bytes"),
)
"""Forms that were made when somebody asked for them, compressed: C, loop nests, figures. They can be made again."""

measurements = Table(
    "measurements",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("schedule_id", ForeignKey("schedules.id", ondelete="CASCADE"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("job_id", String(36), nullable=True),
    Column("candidate", Integer, nullable=True),
    Column("estimated", Boolean, nullable=False),
    Column("predicted", Float, nullable=True),
    Column("minimum_ms", Float, nullable=True),
    Column("median_ms", Float, nullable=True),
    Column("low_ms", Float, nullable=True),
    Column("high_ms", Float, nullable=True),
    Column("times_ms", LargeBinary, nullable=False),
    Column("compile_ms", Float, nullable=True),
    Column("threads", Integer, nullable=True),
    Column("machine", Text, nullable=True),
    Column("conditions", LargeBinary, nullable=True),
    Column("error", Text, nullable=True),
    Column("measured_us", BigInteger, nullable=False),
    Column("pipeline", Name, nullable=False, server_default=""),
    Column("platform", String(64), nullable=False, server_default=""),
    Index(None, "schedule_id", "measured_us", "id"),
    Index(None, "pipeline", "measured_us", "id"),
    Index(None, "platform", "measured_us", "id"),
    Index(None, "machine", "measured_us", "id"),
    Index(None, "kind", "measured_us", "id"),
    Index(None, "measured_us", "id"),
)
"""`job_id` refers to a job that may be forgotten. `pipeline` and `platform` are the schedule's, for filters."""

jobs = Table(
    "jobs",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("schedule_id", ForeignKey("schedules.id", ondelete="CASCADE"), nullable=False),
    Column("state", String(16), nullable=False),
    Column("request", LargeBinary, nullable=False),
    Column("result", LargeBinary, nullable=True),
    Column("error", LargeBinary, nullable=True),
    Column("phase", String(32), nullable=True),
    Column("attempts", Integer, nullable=False, default=0),
    Column("cancel_requested", Boolean, nullable=False, default=False),
    Column("worker", String(64), nullable=True),
    Column("lease_us", BigInteger, nullable=True),
    Column("created_us", BigInteger, nullable=False),
    Column("started_us", BigInteger, nullable=True),
    Column("finished_us", BigInteger, nullable=True),
    Column("artifacts", LargeBinary, nullable=True),
    Column("owner", String(64), nullable=False, server_default=""),
    Column("once", String(64), nullable=True),
    Column("fingerprint", String(64), nullable=True),
    Column("due_us", BigInteger, nullable=False, server_default="0"),
    Index(None, "owner", "started_us"),
    Index(None, "once", unique=True),
    Index(None, "state", "created_us", "id"),
    Index(None, "kind", "created_us", "id"),
    Index(None, "schedule_id", "created_us", "id"),
    Index(None, "created_us", "id"),
    Index(None, "finished_us"),
)

"""`owner`: the client that asked; of its jobs, that with the least `due_us` is next. `once`: the hash of its
idempotency key, `fingerprint` that of what it asked with it. `artifacts`: digests of the job's files in the object
store, by name, as JSON; none where there is no store."""

job_events = Table(
    "job_events",
    metadata,
    Column("job_id", ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at_us", BigInteger, nullable=False),
    Column("type", String(16), nullable=False),
    Column("data", LargeBinary, nullable=False),
)

libraries = Table(
    "libraries",
    metadata,
    Column("schedule_id", ForeignKey("schedules.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String(64), nullable=False),
    Column("path", Text, nullable=False),
    Column("built_us", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=True),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("name", String(64), nullable=False),
    Column("hash", String(64), nullable=False, unique=True),
    Column("scopes", String(64), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("revoked_us", BigInteger, nullable=True),
    Column("expires_us", BigInteger, nullable=True),
    Column("used_us", BigInteger, nullable=True),
)

holdings = Table(
    "holdings",
    metadata,
    Column("owner", String(64), primary_key=True),
    Column("schedules", Integer, nullable=False),
    Column("bytes", BigInteger, nullable=False),
)
"""Amounts that each client has stored: kept, not counted."""

results = Table(
    "results",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("project", Name, nullable=False),
    Column("branch", String(255), nullable=False),
    Column("commit", String(64), nullable=False),
    Column("pipeline", Name, nullable=False),
    Column("platform", Name, nullable=False),
    Column("variant", String(64), nullable=False),
    Column("schedule_id", String(64), nullable=False),
    Column("pipeline_id", String(64), nullable=False),
    Column("predicted", Float, nullable=False),
    Column("unit", String(32), nullable=False),
    Column("measured", LargeBinary, nullable=True),
    Column("reason", Text, nullable=True),
    Column("token", String(64), nullable=True),
    Column("recorded_us", BigInteger, nullable=False),
    Column("owner", String(64), nullable=False, server_default=""),
    Column("bytes", Integer, nullable=False, server_default="0"),
    Index(None, "project", "branch", "recorded_us", "id"),
    Index(None, "project", "commit"),
    Index(None, "project", "recorded_us", "id"),
    Index(None, "project", "pipeline", "recorded_us", "id"),
    Index(None, "pipeline", "recorded_us"),
    Index(None, "schedule_id"),
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("project", Name, nullable=True),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("above", Float, nullable=False),
    Column("created_us", BigInteger, nullable=False),
)

webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("webhook_id", ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("state", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("status", Integer, nullable=True),
    Column("error", Text, nullable=True),
    Column("created_us", BigInteger, nullable=False),
    Column("next_us", BigInteger, nullable=False),
    Index(None, "state", "next_us"),
    Index(None, "webhook_id", "created_us", "id"),
)
