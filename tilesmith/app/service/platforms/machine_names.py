"""Names of kinds of machines: of what the operating system says of a machine, not of what was measured of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_NOISE = re.compile(r"\((r|tm|c)\)|\b(cpu|processor|with radeon graphics)\b", re.IGNORECASE)
_REST = re.compile(r"[^a-z0-9.]+")


def machine_name(platform: Mapping[str, Any]) -> str:
    """The name of the kind of machine that a platform's document describes: its model, threads and vector bits, such as
    `intel-xeon-platinum-8481c-4x512`. Machines of one model with as many threads are of one kind."""
    model = _REST.sub("-", _NOISE.sub(" ", str(platform.get("description", ""))).lower()).strip("-.")
    size = f"{platform.get('threads', 0)}x{8 * int(platform.get('vector_bytes', 0))}"
    return f"{model[:52].strip('-.') or 'machine'}-{size}"
