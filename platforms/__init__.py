"""Machines: descriptions, the catalog, and the host itself."""

from platforms.catalog import catalog_names, get, load, load_text
from platforms.errors import PlatformError, PlatformProblem
from platforms.model import Cache, CpuPlatform, Platform, parse, to_document
from platforms.toolchain import Compiler

__all__ = [
    "Cache",
    "Compiler",
    "CpuPlatform",
    "Platform",
    "PlatformError",
    "PlatformProblem",
    "catalog_names",
    "get",
    "load",
    "load_text",
    "parse",
    "to_document",
]
