"""Machines: descriptions, the catalog, and the host itself."""

from platforms.base import Cache, Platform, VectorUnit
from platforms.catalog import catalog_names, get, load
from platforms.cpu.model import CpuPlatform
from platforms.documents import load_text, parse, to_document
from platforms.errors import PlatformError, PlatformProblem
from platforms.opencl.model import OpenClPlatform
from platforms.toolchain import Compiler

__all__ = [
    "Cache",
    "Compiler",
    "CpuPlatform",
    "OpenClPlatform",
    "Platform",
    "PlatformError",
    "PlatformProblem",
    "VectorUnit",
    "catalog_names",
    "get",
    "load",
    "load_text",
    "parse",
    "to_document",
]
