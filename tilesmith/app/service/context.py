"""Context of endpoints, one an application, and the scopes that they ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBasic, HTTPBasicCredentials, HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param

from tilesmith.app.service.baselines.service import Baselines
from tilesmith.app.service.connections import client_of
from tilesmith.app.service.db import Database
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.jobs.runner import JobRunner
from tilesmith.app.service.jobs.service import Jobs
from tilesmith.app.service.metrics import Metrics
from tilesmith.app.service.pipelines.service import Pipelines
from tilesmith.app.service.platforms.service import Platforms
from tilesmith.app.service.retention import Retention
from tilesmith.app.service.schedules.engine import TOKEN, Engine, asker
from tilesmith.app.service.schedules.service import Schedules
from tilesmith.app.service.settings import Settings
from tilesmith.app.service.strategies.service import Strategies
from tilesmith.app.service.tokens.schemas import Scope
from tilesmith.app.service.tokens.service import Holder, Tokens, unauthorized
from tilesmith.app.service.tracing import Tracing
from tilesmith.app.service.webhooks.service import Webhooks


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of one service."""

    settings: Settings
    db: Database
    metrics: Metrics
    tokens: Tokens
    engine: Engine
    pipelines: Pipelines
    platforms: Platforms
    strategies: Strategies
    schedules: Schedules
    jobs: Jobs
    runner: JobRunner
    baselines: Baselines
    webhooks: Webhooks
    tracing: Tracing
    retention: Retention


def context(request: Request) -> Context:
    """The Context of the application that serves `request`."""
    found = request.app.state.context
    assert isinstance(found, Context)
    return found


async def _services(request: Request) -> Context:
    return context(request)


Services = Annotated[Context, Depends(_services)]

_bearer = HTTPBearer(auto_error=False, description="A token; not needed while none has been made")
Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
_basic = HTTPBasic(auto_error=False, description="A token as the password, for browsers")
Basic = Annotated[HTTPBasicCredentials | None, Depends(_basic)]
CHALLENGE = 'Basic realm="tilesmith: a token as the password", Bearer'
"""Asked of who has no token: programs send it as a bearer's, browsers ask their user for a password."""


def bearer_token(request: Request) -> str | None:
    """The token that `request` shows as a bearer's, as the dependency of endpoints finds it."""
    scheme, token = get_authorization_scheme_param(request.headers.get("authorization"))
    return token if token and scheme.lower() == "bearer" else None


async def authenticated(request: Request, token: str | None) -> Holder:
    """The holder of `token`, shown with `request`; ApiError `unauthorized` or `too_many_failures`. The store is asked
    once."""
    known: dict[str | None, Holder] = request.scope.setdefault("state", {}).setdefault("holders", {})
    holder = known.get(token)
    if holder is None:
        tokens = context(request).tokens
        holder = tokens.remembered(token)
        if holder is None:
            client = client_of(request.scope.get("client"))
            holder = await asyncio.to_thread(tokens.authenticate, token, client)
        known[token] = holder
    asker.set(f"{TOKEN}{holder.id}" if holder.id is not None else client_of(request.scope.get("client")))
    return holder


def _holder_of(scope: Scope) -> Callable[..., Awaitable[Holder]]:
    async def check(request: Request, bearer: Bearer) -> Holder:
        holder = await authenticated(request, bearer.credentials if bearer else None)
        holder.require(scope)
        return holder

    return check


def in_browsers(scope: Scope) -> Callable[..., Awaitable[Holder]]:
    """The check of what browsers fetch, too: a bearer's token, or one as the password of a browser's own question."""

    async def check(request: Request, bearer: Bearer, basic: Basic) -> Holder:
        token = bearer.credentials if bearer else basic.password if basic else None
        try:
            holder = await authenticated(request, token)
        except ApiError as error:
            if error.code == "unauthorized":
                raise unauthorized(error.detail, CHALLENGE) from None
            raise
        holder.require(scope)
        return holder

    return check


async def before_body(request: Request) -> None:
    """Refuses a request of who shows no token that is known, by whichever scheme. ApiError `unauthorized`,
    `too_many_failures`."""
    challenge = "Bearer" if request.scope["path"].startswith("/v1/") else CHALLENGE
    bearer = bearer_token(request)
    try:
        basic = None if bearer is not None else await _basic(request)
        await authenticated(request, bearer if bearer is not None else basic.password if basic else None)
    except ApiError as error:
        if error.code == "unauthorized":
            raise unauthorized(error.detail, challenge) from None
        raise
    except HTTPException:
        raise unauthorized("the header Authorization cannot be read", challenge) from None


async def _token_name(request: Request, bearer: Bearer) -> str | None:
    return (await authenticated(request, bearer.credentials if bearer else None)).name


TokenName = Annotated[str | None, Depends(_token_name)]
"""The name of the token that a request shows."""

Read: Any = Depends(in_browsers("read"))
Submit: Any = Depends(_holder_of("submit"))
Admin: Any = Depends(_holder_of("admin"))
