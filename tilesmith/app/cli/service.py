"""`serve`: the service, until it is told to stop."""

from __future__ import annotations

import socket

from pydantic import ValidationError

from tilesmith.app.cli.report import UsageError
from tilesmith.app.cli.sources import detected
from tilesmith.app.service.settings import RefusedAddress, Settings


def serve(
    host: str | None, port: int | None, database: str | None, calibrate: bool, plugins: tuple[str, ...] = ()
) -> None:
    """Runs the service; UsageError where a setting is wrong, the address is refused, or the port is taken."""
    given = {"host": host, "port": port, "database_url": database, "calibrate": None if calibrate else False}
    added = {"plugins": plugins} if plugins else {}
    try:
        settings = Settings(**{name: value for name, value in given.items() if value is not None}, **added)  # type: ignore[arg-type]
    except ValidationError as error:
        raise UsageError(*(_complaint(str(e["loc"][0]), e["msg"]) for e in error.errors())) from None
    detected()
    _check_free(settings.host, settings.port)

    from tilesmith.app.service.main import serve as serve_until_stopped

    try:
        serve_until_stopped(settings=settings)
    except RefusedAddress as error:
        raise UsageError((str(error), None)) from None


def _complaint(setting: str, message: str) -> tuple[str, str]:
    option = {"host": "--host", "port": "--port", "database_url": "--database"}.get(setting)
    variable = f"TILESMITH_{setting.upper()}"
    return (
        f"{option or variable}: {message.removeprefix('Value error, ').lower()}",
        f"{variable} in the environment sets it too",
    )


def _check_free(host: str, port: int) -> None:
    """UsageError where nobody can listen at the address, before anything else is started."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            (f"cannot listen on {host}:{port}: {reason.lower()}", "choose another --port or --host")
        ) from None
