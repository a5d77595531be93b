"""Machines: descriptions, the catalog, and the host itself."""

from tilesmith.platforms.base import Cache, Platform, VectorUnit
from tilesmith.platforms.catalog import catalog_names, get, load
from tilesmith.platforms.cpu.model import CpuPlatform
from tilesmith.platforms.documents import load_text, parse, to_document
from tilesmith.platforms.errors import PlatformError, PlatformProblem
from tilesmith.platforms.opencl.model import OpenClPlatform
from tilesmith.platforms.toolchain import Compiler

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
