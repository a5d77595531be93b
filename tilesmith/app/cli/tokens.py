"""`tokens`: made, listed and revoked, at a service or, for the first one, in its store on this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from tilesmith.app.cli.options import AsJson
from tilesmith.app.cli.report import UsageError, reporting

if TYPE_CHECKING:
    from tilesmith.app.service.tokens.service import Tokens

TOKEN = "TILESMITH_TOKEN"

tokens_app = typer.Typer(help="The tokens of a service.", no_args_is_help=True, rich_markup_mode=None)

Server = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", envvar="TILESMITH_SERVER", help="The service; else its store, here."),
]
Database = Annotated[str | None, typer.Option("--database", metavar="URL", help="The store, where it is no default.")]


class _Holder(Protocol):
    """Tokens, at a service or in its store."""

    def create_token(self, name: str, scopes: Sequence[str], expires_at: datetime | None) -> Mapping[str, Any]: ...

    def tokens(self) -> Mapping[str, Any]: ...

    def revoke_token(self, token_id: str) -> None: ...


class _Local:
    """Tokens in the store of a service, on this machine: who can write the store needs no token."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def create_token(self, name: str, scopes: Sequence[str], expires_at: datetime | None) -> dict[str, Any]:
        from tilesmith.app.service.tokens.schemas import TokenRequest

        asked = TokenRequest.model_validate({"name": name, "scopes": scopes, "expires_at": expires_at})
        return asdict(self._tokens.create(asked.name, asked.scopes, asked.expires_at))

    def tokens(self) -> dict[str, Any]:
        return {"items": [token.model_dump(mode="json") for token in self._tokens.every()]}

    def revoke_token(self, token_id: str) -> None:
        self._tokens.revoke(token_id)


@tokens_app.command("create")
@reporting
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who holds it.")],
    scope: Annotated[str, typer.Option("--scope", metavar="SCOPE", help="read, submit or admin.")] = "submit",
    days: Annotated[int | None, typer.Option("--days", min=1, max=36500, help="It expires after so many.")] = None,
    server: Server = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make a token, and print it: nobody can read it again."""
    expires = None if days is None else datetime.now(UTC) + timedelta(days=days)
    with _store(server, database) as store:
        made = store.create_token(name, [scope], expires)
    typer.echo(json.dumps(made, indent=2, default=str) if as_json else made["token"])


@tokens_app.command("list")
@reporting
def every(server: Server = None, database: Database = None, as_json: AsJson = False) -> None:
    """List the tokens: name, scope, state, last use, what it has stored."""
    with _store(server, database) as store:
        found = store.tokens()["items"]
    if as_json:
        typer.echo(json.dumps(found, indent=2, default=str))
        return
    for token in found:
        used = _day(token["last_used_at"]) or "never"
        holds = f"{token.get('schedules', 0):,} schedules, {token.get('stored_bytes', 0) / 2**20:,.1f} MiB"
        typer.echo(
            f"{token['id']}  {' '.join(token['scopes']):<7} {_state(token):<20} used {used:<10}  {holds:<24}  "
            f"{token['name']}"
        )


@tokens_app.command("revoke")
@reporting
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `tokens list` has it.")],
    server: Server = None,
    database: Database = None,
) -> None:
    """Revoke a token: it is refused from now on."""
    with _store(server, database) as store:
        store.revoke_token(token_id)


@contextmanager
def _store(server: str | None, database: str | None) -> Iterator[_Holder]:
    """The tokens of the service, or of its store; UsageError where they cannot be had, or something is wrong."""
    from pydantic import ValidationError

    if server is not None and database is not None:
        raise UsageError(("--server and --database do not go together: a service has a store", None))
    try:
        with _at_service(server) if server is not None else _in_store(database) as found:
            yield found
    except ValidationError as error:
        raise UsageError(*((f"{e['loc'][0]}: {e['msg'].lower()}", None) for e in error.errors())) from None


@contextmanager
def _at_service(server: str) -> Iterator[_Holder]:
    import httpx

    from tilesmith.app.client import Client, ServiceError

    try:
        with Client(server, os.environ.get(TOKEN)) as client:
            yield client
    except ServiceError as error:
        hint = f"{TOKEN} in the environment is the token, of scope admin" if error.status in (401, 403) else None
        raise UsageError((str(error), hint)) from None
    except httpx.HTTPError as error:
        raise UsageError((f"{server} cannot be asked: {error}", "is --server right, and does it run?")) from None


@contextmanager
def _in_store(database: str | None) -> Iterator[_Holder]:
    from sqlalchemy.exc import SQLAlchemyError

    from tilesmith.app.service.db import Database, upgrade, why
    from tilesmith.app.service.errors import ApiError
    from tilesmith.app.service.settings import Settings
    from tilesmith.app.service.tokens.service import Tokens

    settings = Settings() if database is None else Settings(database_url=database)
    db = Database(settings.store_url, settings.database_busy_ms)
    try:
        upgrade(db)
        yield _Local(Tokens(db, settings))
    except ApiError as error:
        raise UsageError((str(error.detail), None)) from None
    except SQLAlchemyError as error:
        raise UsageError((why(db, error), None)) from None
    finally:
        db.close()


def _state(token: dict[str, Any]) -> str:
    if token["revoked_at"]:
        return "revoked"
    if token["expires_at"] is None:
        return "does not expire"
    over = datetime.fromisoformat(str(token["expires_at"])) <= datetime.now(UTC)
    return f"expire{'d' if over else 's'} {_day(token['expires_at'])}"


def _day(at: object) -> str:
    return str(at)[:10] if at else ""
