"""Python packages that some tests need, as `tools.py` has it for programs."""

from __future__ import annotations

import importlib.util
import os

import pytest


def require_module(name: str) -> None:
    """Skips the test module that calls it where the package `name` is missing; where CI_REQUIRE_TOOLS=1 that fails."""
    found = importlib.util.find_spec(name)
    if found is not None and found.origin is not None:  # a folder of that name is no package
        return
    message = f"the package {name} is not installed"
    if os.environ.get("CI_REQUIRE_TOOLS") == "1":
        pytest.fail(message)
    pytest.skip(message, allow_module_level=True)
