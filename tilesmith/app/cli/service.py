"""`serve`: the service, until it is told to stop."""

from __future__ import annotations

import socket

from tilesmith.app.cli.report import UsageError
from tilesmith.app.cli.sources import detected
from tilesmith.app.service.configuration import BadSettings, Complaint, read_settings
from tilesmith.app.service.settings import RefusedAddress


def serve(
    host: str | None, port: int | None, database: str | None, calibrate: bool, plugins: tuple[str, ...] = ()
) -> None:
    """Runs the service; UsageError where a setting is wrong, the address is refused, or the port is taken."""
    given = {"host": host, "port": port, "database_url": database, "calibrate": None if calibrate else False}
    added = {"plugins": plugins} if plugins else {}
    try:
        settings = read_settings(**{name: value for name, value in given.items() if value is not None}, **added)
    except BadSettings as error:
        raise UsageError(*map(problem, error.complaints)) from None
    detected()
    _check_free(settings.host, settings.port)

    from tilesmith.app.service.db import LaterTables, StoreUnusable
    from tilesmith.app.service.main import serve as serve_until_stopped

    try:
        serve_until_stopped(settings=settings)
    except RefusedAddress as error:
        raise UsageError((str(error), None)) from None
    except LaterTables as error:
        remedy = "install that version, or restore the backup from before its first start"
        raise UsageError((str(error), remedy)) from None
    except StoreUnusable as error:
        raise UsageError(
            (str(error), "is its server up, or its disk full or read-only? Ask `tilesmith doctor`")
        ) from None


def problem(complaint: Complaint) -> tuple[str, str]:
    """The message, with the option that sets it where there is one, and the remedy."""
    option = {"host": "--host", "port": "--port", "database_url": "--database"}.get(complaint.setting)
    named = complaint.variable if option is None else f"{option} ({complaint.variable})"
    return f"{named}: {complaint.message}", complaint.remedy


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
