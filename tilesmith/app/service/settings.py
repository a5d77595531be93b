"""Every setting of the service, read from the environment (`TILESMITH_<NAME>`); docs/api.md lists them all."""

from __future__ import annotations

import ipaddress
import re
import socket
from pathlib import Path
from typing import Any, Literal

import platformdirs
from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from tilesmith.app.profiler.host import host
from tilesmith.platforms import PlatformError
from tilesmith.scheduler.frontends.document.limits import Limits

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
DAY_S = 86_400
ADMIN_CHARACTERS = 16
"""Characters that an admin token has at least: who chooses one is no generator of random bits."""


class RefusedAddress(Exception):
    """The service would be reachable by others while nobody has to show a token."""


class Settings(BaseSettings):
    """Frozen. Every field has a default that suits one person on one machine."""

    model_config = SettingsConfigDict(env_prefix="TILESMITH_", env_nested_delimiter="__", frozen=True, extra="forbid")

    host: str = Field(default="127.0.0.1", description="Address to listen on; without tokens only loopback is accepted")
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one")
    data_dir: Path = Field(
        default_factory=lambda: platformdirs.user_data_path("tilesmith", appauthor=False),
        description="Folder of the default database, built libraries, uploads and artefacts of jobs",
    )
    database_url: str | None = Field(
        default=None, description="SQLAlchemy URL of the store; SQLite in the data folder when not given"
    )
    database_busy_ms: int = Field(default=5000, ge=0, description="How long to wait for a locked SQLite file, ms")

    database_wait_s: float = Field(
        default=60.0,
        ge=0,
        description="How long a service that starts waits for a server of the store that is not up, s",
    )
    disk_free_bytes: int = Field(
        default=256 * MIB, ge=0, description="Room on the disk of the data folder below which the service is not ready"
    )

    admin_token: SecretStr | None = Field(
        default=None,
        min_length=ADMIN_CHARACTERS,
        description="A token with every scope that needs no row in the store: the first one, for containers",
    )
    admin_token_file: Path | None = Field(
        default=None, description="File that has the admin token in its first line, as secrets of containers are given"
    )
    token_failures: int = Field(
        default=20, ge=1, description="Unknown tokens from one address in a minute before all it sends but known ones"
    )
    allowed_hosts: tuple[str, ...] = Field(
        default=(),
        description="Host names that requests may be for (JSON list); empty: loopback, or any once tokens are used",
    )

    host_platform: Path | None = Field(
        default=None,
        description="Document that the platform `host` means, as calibration writes it; detected if not given",
    )
    calibrate: bool = Field(
        default=True, description="Whether the platform `host` is measured when the service starts for the first time"
    )
    plugins: tuple[str, ...] = Field(
        default=(),
        description="Python files and modules that add cost models, importers, ... (JSON list)",
    )
    limits: Limits = Field(
        default=Limits(),
        description="Limits of a pipeline document (JSON object), one by one as TILESMITH_LIMITS__<NAME>",
    )
    connections: int = Field(
        default=512, ge=1, description="Open connections; where one more comes, one that waits for a request is closed"
    )
    connections_per_client: int = Field(default=128, ge=1, description="Open connections of one address")
    head_bytes: int = Field(default=32 * KIB, ge=KIB, description="Largest request line with its header fields, bytes")
    head_timeout_s: float = Field(default=10.0, gt=0, description="Longest time for the head of a request, s")
    transfer_timeout_s: float = Field(
        default=20.0,
        gt=0,
        description="Longest time for a body to arrive, or an answer to be taken, beyond that of 16 KiB a second, s",
    )
    body_bytes: int = Field(default=4 * MIB, gt=0, description="Largest request body, bytes")
    held_bytes: int = Field(
        default=128 * MIB, gt=0, description="Bodies in memory at once, uploads apart, bytes; more are `busy`"
    )
    upload_bytes: int = Field(
        default=512 * MIB, gt=0, description="Largest body of a request that uploads images, bytes"
    )
    import_bytes: int = Field(default=64 * MIB, gt=0, description="Largest file that is imported, bytes")
    page_limit: int = Field(default=200, ge=1, description="Largest `limit` of a list")
    page_default: int = Field(default=50, ge=1, description="`limit` of a list when the request has none")

    schedule_workers: int = Field(
        default=2, ge=0, description="Processes that parse and schedule; 0 does it in threads of the service itself"
    )
    read_timeout_s: float = Field(
        default=4.0, gt=0, description="Longest time for a document to be read and checked, s"
    )
    schedule_timeout_s: float = Field(default=30.0, gt=0, description="Longest time for one schedule, s")
    schedule_memory_bytes: int = Field(
        default=4 * GIB, gt=0, description="Address space of one scheduling process, bytes"
    )
    schedule_queue: int = Field(default=64, ge=1, description="Schedule requests at work or waiting before 503")
    schedule_queue_per_token: int = Field(
        default=32, ge=1, description="Schedule requests of one token at work or waiting before 429"
    )
    schedule_short_stages: int = Field(
        default=64,
        ge=0,
        description="A document of so many stages or fewer is short work, which has a process of its own",
    )
    batch_limit: int = Field(default=64, ge=1, description="Most requests for schedules in one")
    schedule_cache: int = Field(default=4096, ge=0, description="Request bodies remembered with their answer's id")

    pool: str | None = Field(
        default=None,
        description="Dask scheduler whose workers do the jobs, dask://host:8786 or dask+tls://...; else this process",
    )
    artifacts: str | None = Field(
        default=None,
        description="Object store of uploads, results and libraries: a folder or an fsspec URL (s3://bucket/path)",
    )
    job_workers: int = Field(
        default=1, ge=0, description="Jobs at once; 0 leaves them to other services on the same store"
    )
    job_queue_limit: int = Field(default=1000, ge=1, description="Queued jobs before 429")
    job_queue_per_token: int = Field(default=200, ge=1, description="Queued jobs of one token before 429")
    job_queue_ttl_s: float = Field(default=DAY_S, gt=0, description="A job not started after this is `expired`, s")
    job_retention_s: float = Field(default=7 * DAY_S, gt=0, description="A finished job is forgotten after this, s")
    schedule_retention_s: float | None = Field(
        default=None,
        gt=0,
        description="A schedule that nobody has used for so long is deleted, s; none: it never is",
    )
    schedule_retention_count: int | None = Field(
        default=None, ge=0, description="Schedules that are kept; the least recently used are deleted first"
    )
    pipeline_retention_s: float | None = Field(
        default=None, gt=0, description="A stored pipeline without schedules is deleted this long after it was, s"
    )
    job_lease_s: float = Field(
        default=15.0, gt=0, description="A running job whose service is silent this long is requeued, s"
    )
    job_attempts: int = Field(default=3, ge=1, description="Times a job is started before a lost service fails it")
    drain_s: float = Field(
        default=30.0, ge=0, description="How long running jobs may go on after SIGTERM before they are requeued, s"
    )
    build_timeout_s: float = Field(default=120.0, gt=0, description="Longest C compilation, s")
    build_cache_bytes: int = Field(
        default=4 * GIB, gt=0, description="Libraries that are kept, bytes; the least recently used leave first"
    )
    schedules_per_token: int = Field(
        default=1_000_000, ge=1, description="Schedules that one token may have stored before `token_full`"
    )
    stored_bytes_per_token: int = Field(
        default=16 * GIB,
        ge=1,
        description="Bytes of schedules and documents that one token may have stored before `token_full`",
    )
    made_forms_bytes: int = Field(
        default=GIB, ge=0, description="Forms in the store that can be made again, bytes; the least recently used leave"
    )
    job_files_bytes: int = Field(
        default=16 * GIB,
        ge=0,
        description="Files of finished jobs, bytes; the least recently used leave first",
    )
    confinement: Literal["required", "none"] = Field(
        default="required",
        description="`none` builds and runs programs unconfined where nothing can confine them; `required` refuses",
    )
    run_timeout_s: float = Field(default=120.0, gt=0, description="Longest run of compiled code, s")
    run_memory_bytes: int = Field(default=4 * GIB, gt=0, description="Memory of a run, bytes")
    image_bytes: int = Field(
        default=512 * MIB, gt=0, description="Largest image of a run, decoded, in the type of its input, bytes"
    )
    run_repeats: int = Field(default=1000, ge=1, description="Largest `repeat` of a run")
    run_threads: int = Field(default=256, ge=1, description="Largest `threads` of a run")

    public_badges: bool = Field(default=False, description="Whether badges of projects are shown without a token")
    private_webhooks: bool = Field(
        default=False, description="Whether webhooks may lead to private addresses, and by plain HTTP"
    )

    event_poll_s: float = Field(default=0.2, gt=0, description="How often an event stream looks at its job, s")
    event_heartbeat_s: float = Field(default=15.0, gt=0, description="Time between heartbeats of an event stream, s")
    otlp_endpoint: str | None = Field(
        default=None, description="Collector of OpenTelemetry traces, OTLP over HTTP (http://host:4318)"
    )
    log_format: Literal["auto", "json", "console"] = Field(
        default="auto", description="`auto` writes JSON when standard error is not a terminal"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least level that is logged"
    )

    @model_validator(mode="before")
    @classmethod
    def _token_from_file(cls, given: dict[str, Any]) -> dict[str, Any]:
        """The admin token, out of the file that is named."""
        path = given.get("admin_token_file")
        if path is None:
            return given
        if given.get("admin_token") is not None:
            raise ValueError("admin_token and admin_token_file are both given: leave one out")
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeError) as error:
            raise ValueError(f"admin_token_file cannot be read: {error}") from None
        return given | {"admin_token": lines[0].strip() if lines else ""}

    @field_validator("host_platform")
    @classmethod
    def _readable_platform(cls, document: Path | None) -> Path | None:
        """The file is there and describes a machine."""
        if document is not None:
            try:
                host(document)
            except OSError as error:
                raise ValueError(f"{document} cannot be read: {error.strerror}") from None
            except PlatformError as error:
                raise ValueError(f"{document} is no platform: {error.problems[0]}") from None
        return document

    @field_validator("limits")
    @classmethod
    def _possible_limits(cls, limits: Limits) -> Limits:
        """More dims than the C interface has are never possible."""
        if limits.dims > Limits().dims:
            raise ValueError(f"dims may be at most {Limits().dims}")
        return limits

    @field_validator("pool")
    @classmethod
    def _known_pool(cls, url: str | None) -> str | None:
        if url is not None and not re.fullmatch(r"dask(\+tls)?://[^/]+:\d+", url):
            raise ValueError("is no address of a Dask scheduler: dask://host:8786, or dask+tls://host:8786")
        return url

    @field_validator("otlp_endpoint")
    @classmethod
    def _web_address(cls, url: str | None) -> str | None:
        if url is not None and not re.fullmatch(r"https?://[^/\s]+(/\S*)?", url):
            raise ValueError("is no address of a collector: http://host:4318")
        return url

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, url: str | None) -> str | None:
        """SQLite in memory is refused: its threads would not share one store."""
        if url is None:
            return None
        if not url.startswith(("sqlite:///", "postgresql")):
            raise ValueError("is not an SQLite file (sqlite:///...) or PostgreSQL (postgresql+psycopg://...) URL")
        if url.startswith("sqlite") and (":memory:" in url or "mode=memory" in url or url == "sqlite:///"):
            raise ValueError("an SQLite store must be a file")
        return url

    @property
    def runs_programs(self) -> bool:
        """True if compilers and what they make run in this service's processes, not in workers elsewhere."""
        return self.job_workers > 0 and self.pool is None

    @property
    def artifacts_url(self) -> str | None:
        """The URL of the object store: with a pool of other processes a folder in the data folder where none is named;
        None where all that jobs read and write stays in the data folder."""
        return self.artifacts or (None if self.pool is None else str(self.data_dir.absolute() / "artifacts"))

    @property
    def store_url(self) -> str:
        """The URL of the store, with the default filled in."""
        return self.database_url or f"sqlite:///{self.data_dir / 'tilesmith.db'}"


def is_loopback(host: str) -> bool:
    """True if every address that `host` stands for is reachable from this machine only."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None)
    except OSError:
        return False
    return bool(found) and all(ipaddress.ip_address(str(a[4][0]).partition("%")[0]).is_loopback for a in found)


def check_address(host: str, tokens: bool) -> None:
    """Raises RefusedAddress where `host` can be reached from elsewhere and no token has to be shown."""
    if tokens or is_loopback(host):
        return
    raise RefusedAddress(
        f"{host} can be reached from other machines and no token is set up: "
        "set TILESMITH_ADMIN_TOKEN, or listen on 127.0.0.1"
    )
