"""A service in a thread of the test's own process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from tilesmith.app.service.connections import bounded


class Server(uvicorn.Server):
    """A server in a thread that says when it listens, and ends as soon as it is told to: uvicorn looks every 0.1 s."""

    def __init__(self, app: Any) -> None:
        http = bounded(app.state.context.settings)
        config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, access_log=False, ws="none", http=http)
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        self.loop, self.told = asyncio.get_running_loop(), asyncio.Event()
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.told.wait()

    def stop(self) -> None:
        self.should_exit = True
        self.loop.call_soon_threadsafe(self.told.set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}"


@contextmanager
def running(app: Any) -> Iterator[str]:
    """Serves the application; its URL."""
    server = Server(app)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        assert server.ready.wait(30)
        yield server.url
    finally:
        server.stop()
        thread.join(30)
