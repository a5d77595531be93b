"""Backends by name and by kind of platform."""

from __future__ import annotations

import pytest
from support.machines import machine
from support.opencl import device

from tilesmith.scheduler.codegen.c.backend import CBackend
from tilesmith.scheduler.codegen.opencl.backend import OpenClBackend
from tilesmith.scheduler.codegen.registry import backend_for, register
from tilesmith.scheduler.errors import NoBackend


def test_the_first_of_the_platforms_kind_is_taken() -> None:
    assert backend_for(machine()) == CBackend()
    assert backend_for(device()) == OpenClBackend()
    assert backend_for(machine(), "c") == CBackend()


def test_a_backend_of_another_kind_is_refused() -> None:
    with pytest.raises(NoBackend, match=r"no backend 'opencl' generates code for platforms of kind 'cpu'.*backends: c"):
        backend_for(machine(), "opencl")


def test_a_name_is_taken_once() -> None:
    register(CBackend())  # the same again
    with pytest.raises(ValueError, match="'c' already"):
        register(CBackend(platform_kind="opencl"))
