"""Structured logs: one line an event, JSON unless standard error is a terminal, the request id in every line."""

from __future__ import annotations

import logging
import sys
from typing import Literal, TextIO

import structlog
from structlog.processors import NAME_TO_LEVEL
from structlog.typing import EventDict, Processor, WrappedLogger


class _StandardError(logging.StreamHandler[TextIO]):
    """A handler that writes to standard error as it is when a line comes: one that was put in its place for a while may
    be closed before the last thread has ended."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:
        """Standard error."""
        return sys.stderr

    @stream.setter
    def stream(self, _: TextIO) -> None:
        raise AttributeError("the stream is standard error")


class _Lines:
    """A logger that writes each event as a line to standard error: what goes through the standard library's takes
    twice as long, and requests have a line each."""

    def __init__(self, name: str = "tilesmith") -> None:
        self.name = name

    def msg(self, line: str) -> None:
        sys.stderr.write(line + "\n")

    debug = info = warning = error = critical = msg


def _from_level_on(level: str) -> Processor:
    """The processor that drops events below a level."""
    least = NAME_TO_LEVEL[level]

    def check(_logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        if NAME_TO_LEVEL[method] < least:
            raise structlog.DropEvent
        return event

    return check


def configure(form: Literal["auto", "json", "console"] = "auto", level: str = "info") -> None:
    """Sends our events and those of the standard library (uvicorn, alembic) to standard error in one form."""
    console = form == "console" or (form == "auto" and sys.stderr.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[Processor]
    if console:
        renderer = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            exception_formatter=structlog.dev.plain_traceback,  # the rich one prints locals: tokens, documents
        )
        last = [renderer]
    else:
        last = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[_from_level_on(level), *shared, *last],
        logger_factory=_Lines,
        wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET),
        cache_logger_on_first_use=False,
    )
    foreign = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last]
    handler = _StandardError()
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=foreign))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers[:] = []
        logging.getLogger(name).propagate = name != "uvicorn.access"
    logging.getLogger("alembic").setLevel("WARNING")
    logging.getLogger("sse_starlette").setLevel("WARNING")


def take_over(package: str, level: str) -> None:
    """Has the loggers of a package that set up their own write as all others do, from that level on."""
    for name in [package, *(n for n in logging.root.manager.loggerDict if n.startswith(f"{package}."))]:
        logger = logging.getLogger(name)
        logger.handlers[:] = []
        logger.propagate = True
        logger.setLevel(level if name == package else logging.NOTSET)
