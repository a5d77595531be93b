"""tilesmith: schedules image-processing pipelines for a machine, and makes fast C of them. What is listed here, in
`tilesmith.language` and in `tilesmith.strategies` is public; all else may change.

Names are imported when they are first asked for: who needs one part, as the command does, does not load the others.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # checkers of types know it by its name; to load `typing` takes as long as to start Python
if TYPE_CHECKING:
    from tilesmith.app.client import AsyncClient, Client, ServiceError
    from tilesmith.app.inprocess.compile import compile
    from tilesmith.app.inprocess.compiled import CompiledPipeline
    from tilesmith.app.inprocess.tracing import TracedPipeline, pipeline
    from tilesmith.app.runtime.build_cache import CacheWarning
    from tilesmith.app.runtime.errors import CompileError, RunError
    from tilesmith.platforms import Platform as Platform
    from tilesmith.platforms import load as platform
    from tilesmith.scheduler.compiler import Compiled, Options, generate
    from tilesmith.scheduler.errors import DocumentError, ScheduleError, StrategyRefused, TilesmithError
    from tilesmith.scheduler.frontends.document.document import load_text as pipeline_of_text
    from tilesmith.scheduler.frontends.fx.reader import from_fx
    from tilesmith.scheduler.frontends.importer import ImportedPipeline, ImportFailed
    from tilesmith.scheduler.frontends.onnx.importer import from_onnx
    from tilesmith.scheduler.ir.pipeline.arguments import ArgumentError, RegionError
    from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
    from tilesmith.scheduler.pipelines import load as shipped_pipeline

__all__ = [
    "ArgumentError",
    "AsyncClient",
    "CacheWarning",
    "Client",
    "CompileError",
    "Compiled",
    "CompiledPipeline",
    "DocumentError",
    "ImportFailed",
    "ImportedPipeline",
    "Options",
    "Pipeline",
    "Platform",
    "RegionError",
    "RunError",
    "ScheduleError",
    "ServiceError",
    "StrategyRefused",
    "TilesmithError",
    "TracedPipeline",
    "compile",
    "from_fx",
    "from_onnx",
    "generate",
    "pipeline",
    "pipeline_of_text",
    "platform",
    "shipped_pipeline",
]

_COMPILER, _ERRORS = "tilesmith.scheduler.compiler", "tilesmith.scheduler.errors"
_ARGUMENTS, _INPROCESS = "tilesmith.scheduler.ir.pipeline.arguments", "tilesmith.app.inprocess"
_RUN_ERRORS, _IMPORTER = "tilesmith.app.runtime.errors", "tilesmith.scheduler.frontends.importer"
_FOUND_IN = {
    "ArgumentError": (_ARGUMENTS, "ArgumentError"),
    "AsyncClient": ("tilesmith.app.client", "AsyncClient"),
    "CacheWarning": ("tilesmith.app.runtime.build_cache", "CacheWarning"),
    "Client": ("tilesmith.app.client", "Client"),
    "CompileError": (_RUN_ERRORS, "CompileError"),
    "Compiled": (_COMPILER, "Compiled"),
    "CompiledPipeline": (f"{_INPROCESS}.compiled", "CompiledPipeline"),
    "DocumentError": (_ERRORS, "DocumentError"),
    "ImportFailed": (_IMPORTER, "ImportFailed"),
    "ImportedPipeline": (_IMPORTER, "ImportedPipeline"),
    "Options": (_COMPILER, "Options"),
    "Pipeline": ("tilesmith.scheduler.ir.pipeline.pipeline", "Pipeline"),
    "Platform": ("tilesmith.platforms", "Platform"),
    "RegionError": (_ARGUMENTS, "RegionError"),
    "RunError": (_RUN_ERRORS, "RunError"),
    "ScheduleError": (_ERRORS, "ScheduleError"),
    "ServiceError": ("tilesmith.app.client", "ServiceError"),
    "StrategyRefused": (_ERRORS, "StrategyRefused"),
    "TilesmithError": (_ERRORS, "TilesmithError"),
    "TracedPipeline": (f"{_INPROCESS}.tracing", "TracedPipeline"),
    "compile": (f"{_INPROCESS}.compile", "compile"),
    "from_fx": ("tilesmith.scheduler.frontends.fx.reader", "from_fx"),
    "from_onnx": ("tilesmith.scheduler.frontends.onnx.importer", "from_onnx"),
    "generate": (_COMPILER, "generate"),
    "pipeline": (f"{_INPROCESS}.tracing", "pipeline"),
    "pipeline_of_text": ("tilesmith.scheduler.frontends.document.document", "load_text"),
    "platform": ("tilesmith.platforms", "load"),
    "shipped_pipeline": ("tilesmith.scheduler.pipelines", "load"),
}


def __getattr__(name: str) -> object:
    if name not in _FOUND_IN:
        raise AttributeError(f"module 'tilesmith' has no attribute '{name}'")
    module, attribute = _FOUND_IN[name]
    found = globals()[name] = getattr(import_module(module), attribute)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
