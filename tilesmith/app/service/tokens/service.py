"""Bearer tokens: made once, shown once, kept as a hash, with scopes and an expiry, revocable.

A token has 256 random bits, so a plain SHA-256 of it cannot be reversed by guessing.
Tokens are in force from the moment that the first is made (or TILESMITH_ADMIN_TOKEN is set), and stay so when
the last one is revoked: revoking must never open the service.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import threading
import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from typing import get_args

import structlog
from sqlalchemy.exc import SQLAlchemyError

from tilesmith.app.service import holdings
from tilesmith.app.service.db import Database, now_us
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.settings import Settings
from tilesmith.app.service.times import instant, maybe_instant
from tilesmith.app.service.tokens import repository
from tilesmith.app.service.tokens.failures import Failures
from tilesmith.app.service.tokens.schemas import Scope, Token

SCOPES: tuple[Scope, ...] = get_args(Scope)
_RANKS: dict[str, int] = {scope: rank for rank, scope in enumerate(SCOPES)}
PREFIX = "tsm_"
USED_US = 3_600_000_000
"""The last use of a token is known to an hour: a write a request would cost more than the request."""

REMEMBERED = 1024
"""Tokens that were accepted: they are looked up even where their address has sent many unknown ones, so that one client
behind a proxy does not shut out the others."""
FRESH_S = 1.0
"""The time for which a token that was looked up is not looked up again."""

log = structlog.get_logger("tilesmith.tokens")


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token just made; `token` is the only copy of its text."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    token: str
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Holder:
    """The sender of a request: the name of the token, the highest of its scopes, and its id. Without tokens in force,
    anyone."""

    name: str | None
    scope: Scope
    id: str | None = None

    def require(self, scope: Scope) -> None:
        """Nothing where the scope is included; ApiError `forbidden`."""
        if _rank(self.scope) < _rank(scope):
            raise ApiError("forbidden", f"the token has no scope {scope}")


NOTHING = holdings.Holding()
ANYONE = Holder(None, "admin")
ADMIN = Holder("admin", "admin", "admin")


@dataclass(frozen=True, slots=True)
class _Accepted:
    """The holder of a token as the store had it last: until it expires, and until when (of the monotonic clock) it is
    taken to be so."""

    holder: Holder
    expires_us: int | None
    fresh_until: float


class Tokens:
    """Tokens and their scopes."""

    def __init__(self, db: Database, settings: Settings) -> None:
        self._db = db
        secret = settings.admin_token.get_secret_value() if settings.admin_token else ""
        self._admin = _digest(secret) if secret else None
        self._seen = self._admin is not None
        self._failures = Failures(settings.token_failures)
        self._accepted: OrderedDict[str, _Accepted] = OrderedDict()
        self._lock = threading.Lock()

    def in_force(self) -> bool:
        """True if requests need a token. Looks into the store until the answer is yes."""
        if not self._seen:
            self._seen = repository.exists(self._db)
        return self._seen

    def known_in_force(self) -> bool:
        """True if requests need a token, by what was last seen in the store: never waits."""
        return self._seen

    def create(self, name: str, scopes: tuple[Scope, ...], expires_at: datetime | None = None) -> NewToken:
        """A new token. `admin` includes `submit`, `submit` includes `read`."""
        made = NewToken(str(uuid.uuid4()), name, scopes, PREFIX + secrets.token_urlsafe(32), expires_at)
        expires_us = None if expires_at is None else int(1e6 * expires_at.timestamp())
        repository.add(self._db, made.id, name, _digest(made.token), " ".join(scopes), expires_us)
        self._seen = True
        return made

    def every(self) -> list[Token]:
        """All tokens without their texts, the oldest first, revoked ones included."""
        held = holdings.of_tokens(self._db)
        return [
            Token(
                id=row.id,
                name=row.name,
                scopes=tuple(row.scopes.split()),
                created_at=instant(row.created_us),
                expires_at=maybe_instant(row.expires_us),
                last_used_at=maybe_instant(row.used_us),
                revoked_at=maybe_instant(row.revoked_us),
                schedules=held.get(row.id, NOTHING).schedules,
                stored_bytes=held.get(row.id, NOTHING).bytes,
            )
            for row in repository.every(self._db)
        ]

    def revoke(self, token_id: str) -> None:
        """The token is refused from now on, by other services on the store within FRESH_S. ApiError
        `token_not_found`."""
        if not repository.revoke(self._db, token_id):
            raise ApiError("token_not_found", "there is no token of this id")
        with self._lock:
            for digest in [d for d, accepted in self._accepted.items() if accepted.holder.id == token_id]:
                del self._accepted[digest]

    def remembered(self, token: str | None) -> Holder | None:
        """The holder of the token, if it is known without a look into the store: never waits."""
        if token is None:
            return None
        digest = _digest(token)
        if self._is_admin(digest):
            return ADMIN
        found = self._accepted.get(digest)
        if found is None or found.fresh_until <= time.monotonic() or _is_over(found.expires_us, now_us()):
            return None
        return found.holder

    def authenticate(self, token: str | None, client: str = "") -> Holder:
        """The holder of the token, from that address; ApiError `unauthorized` or `too_many_failures`."""
        if token is None:
            if self.in_force():
                raise unauthorized("send the header Authorization: Bearer <token>")
            return ANYONE
        digest = _digest(token)
        if self._is_admin(digest):
            return ADMIN
        wait_s = 0.0 if digest in self._accepted else self._failures.wait_s(client)
        if wait_s > 0:
            headers = {"Retry-After": str(math.ceil(wait_s))}
            raise ApiError("too_many_failures", "too many unknown tokens came from this address", headers=headers)
        held, now = repository.find(self._db, digest), now_us()
        if held is None or _is_over(held.expires_us, now):
            if not self.in_force():
                return ANYONE
            self._failures.add(client)
            known = held is not None
            raise unauthorized("the token has expired" if known else "the token is not known or was revoked")
        if held.used_us is None or now - held.used_us >= USED_US:
            self._used(held.id, now)
        holder = Holder(held.name, max(held.scopes.split(), key=_rank), held.id)
        self._accept(digest, _Accepted(holder, held.expires_us, time.monotonic() + FRESH_S))
        return holder

    def _is_admin(self, digest: str) -> bool:
        return self._admin is not None and hmac.compare_digest(digest, self._admin)

    def _accept(self, digest: str, accepted: _Accepted) -> None:
        with self._lock:
            self._accepted[digest] = accepted
            self._accepted.move_to_end(digest)
            if len(self._accepted) > REMEMBERED:
                self._accepted.popitem(last=False)

    def _used(self, token_id: str, now: int) -> None:
        try:
            repository.use(self._db, token_id, now)
        except SQLAlchemyError as error:  # a store that cannot be written is no reason to refuse who only reads
            log.warning("the use of a token was not recorded", error=str(error))


def unauthorized(detail: str, challenge: str = "Bearer") -> ApiError:
    return ApiError("unauthorized", detail, headers={"WWW-Authenticate": challenge})


def _is_over(expires_us: int | None, now: int) -> bool:
    return expires_us is not None and expires_us <= now


def _rank(scope: str) -> int:
    return _RANKS[scope]


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
