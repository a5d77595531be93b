"""The tables of the store. Times are microseconds since 1970, UTC; documents are bytes as they are sent.

pipelines, platforms, strategies  documents of users; shipped ones are not stored
schedules -< schedule_forms       answers in all their forms: immutable, content-addressed
schedules -< jobs -< job_events   work on a schedule and what happened to it
schedules -< measurements         what jobs measured: runs, and the candidates of a tuned schedule
tokens                            who may ask
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
    Index(None, "name", "id"),
)

strategies = Table(
    "strategies",
    metadata,
    Column("id", Name, primary_key=True),
    Column("name", Name, nullable=False),
    Column("document", LargeBinary, nullable=False),
    Column("created_us", BigInteger, nullable=False),
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

schedules = Table(
    "schedules",
    metadata,
    Column("id", Name, primary_key=True),
    Column("pipeline_id", String(64), nullable=False),
    Column("pipeline", Name, nullable=False),
    Column("platform", String(64), nullable=False),
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
    Column("words", Text, nullable=False, server_default=""),
    Index(None, "created_us", "id"),
    Index(None, "pipeline", "created_us"),
)
"""Rows are short, for lists: the answer is a form. What was decided never changes; what was measured, the note and the
tags do. `words` is what a search looks into: names and tags, in lower case."""

schedule_forms = Table(
    "schedule_forms",
    metadata,
    Column("schedule_id", ForeignKey("schedules.id", ondelete="CASCADE"), primary_key=True),
    Column("name", String(32), primary_key=True),
    Column("media_type", String(64), nullable=False),
    Column("etag", String(64), nullable=False),
    Column("content", LargeBinary, nullable=False),
)

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
    Index(None, "schedule_id", "measured_us"),
    Index(None, "measured_us", "id"),
)
"""`job_id` refers to a job that may be forgotten."""

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
    Index(None, "state", "created_us"),
    Index(None, "schedule_id", "created_us"),
    Index(None, "created_us", "id"),
)

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
    Index(None, "project", "branch", "recorded_us"),
    Index(None, "project", "commit"),
    Index(None, "project", "recorded_us", "id"),
    Index(None, "pipeline", "recorded_us"),
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
