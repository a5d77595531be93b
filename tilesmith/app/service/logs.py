"""Structured logs: one line an event, JSON unless standard error is a terminal, the request id in every line."""

from __future__ import annotations

import logging
import sys
from typing import Literal, TextIO

import structlog
from structlog.typing import Processor


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


def configure(form: Literal["auto", "json", "console"] = "auto", level: str = "info") -> None:
    """Sends our events and those of the standard library (uvicorn, alembic) to standard error in one form."""
    console = form == "console" or (form == "auto" and sys.stderr.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    last: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if console:
        last.append(
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(),
                exception_formatter=structlog.dev.plain_traceback,  # the rich one prints locals: tokens, documents
            )
        )
    else:
        last += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    handler = _StandardError()
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=last))
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
