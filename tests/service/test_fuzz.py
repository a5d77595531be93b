"""The whole API under requests that schemathesis makes: every answer is as the OpenAPI document says."""

from __future__ import annotations

import pytest
from support import fuzz_api

pytestmark = pytest.mark.slow


def test_every_answer_is_as_described():
    assert fuzz_api.main(["--seconds", "10", "--examples", "1", "--seed", "1", "--no-color"]) == 0
