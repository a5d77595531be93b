"""`worker`: does jobs of services that share a Dask scheduler."""

from __future__ import annotations

from importlib.util import find_spec

from tilesmith.app.cli.report import UsageError
from tilesmith.app.cli.service import problem
from tilesmith.app.service.configuration import BadSettings, read_settings


def work(scheduler: str | None, threads: int, calibrate: bool, plugins: tuple[str, ...] = ()) -> None:
    """Runs a worker; UsageError where a setting is wrong or the scheduler does not answer, RunError `not_confined`."""
    if find_spec("distributed") is None:
        raise UsageError(("distributed is not installed", "pip install 'tilesmith[dask]'"))
    given = {"pool": _as_setting(scheduler), "calibrate": None if calibrate else False, "plugins": plugins or None}
    try:
        settings = read_settings(**{name: value for name, value in given.items() if value is not None})
    except BadSettings as error:
        raise UsageError(*map(problem, error.complaints)) from None
    if settings.pool is None:
        raise UsageError(("no scheduler is named", "--scheduler tcp://host:8786, or TILESMITH_POOL=dask://host:8786"))

    from tilesmith.app.service import worker

    try:
        worker.work(settings, threads)
    except (TimeoutError, OSError) as error:
        raise UsageError((f"the scheduler {settings.pool} does not answer: {error}", "does it run there?")) from None


def _as_setting(scheduler: str | None) -> str | None:
    """The address as Dask has it, as the setting has it."""
    if scheduler is None:
        return None
    scheme, separator, place = scheduler.partition("://")
    return f"{ {'tcp': 'dask', 'tls': 'dask+tls'}.get(scheme, scheme) }{separator}{place}"
