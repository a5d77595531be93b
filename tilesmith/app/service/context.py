"""Context of endpoints, one an application, and the scopes that they ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from tilesmith.app.service.db import Database
from tilesmith.app.service.jobs.runner import JobRunner
from tilesmith.app.service.jobs.service import Jobs
from tilesmith.app.service.metrics import Metrics
from tilesmith.app.service.pipelines.service import Pipelines
from tilesmith.app.service.platforms.service import Platforms
from tilesmith.app.service.schedules.engine import Engine
from tilesmith.app.service.schedules.service import Schedules
from tilesmith.app.service.settings import Settings
from tilesmith.app.service.strategies.service import Strategies
from tilesmith.app.service.tokens.schemas import Scope
from tilesmith.app.service.tokens.service import Tokens


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


def _holder_of(scope: Scope) -> Callable[..., None]:
    def check(services: Services, bearer: Bearer) -> None:
        services.tokens.check(bearer.credentials if bearer else None, scope)

    return check


Read: Any = Depends(_holder_of("read"))
Submit: Any = Depends(_holder_of("submit"))
Admin: Any = Depends(_holder_of("admin"))
