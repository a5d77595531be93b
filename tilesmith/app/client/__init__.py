"""Clients of the service: ask for schedules, fetch their forms, start jobs and wait for them.

`Client` waits for each answer, `AsyncClient` is for event loops. Both say the same requests, read the same answers and
try again by the same policy, each in a module of its own; what differs is how they wait.
"""

from __future__ import annotations

from tilesmith.app.client.answers import Busy, Json, ServiceError
from tilesmith.app.client.asynchronous import AsyncClient
from tilesmith.app.client.sync import Client

__all__ = ["AsyncClient", "Busy", "Client", "Json", "ServiceError"]
