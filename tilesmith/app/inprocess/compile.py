"""The way from whatever names a pipeline to a function of arrays."""

from __future__ import annotations

import time

from tilesmith.app.inprocess.compiled import CompiledPipeline
from tilesmith.app.inprocess.sources import pipeline_of, platform_of
from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.ir.pipeline.arguments import table_of


def compile(
    pipeline: object, platform: object = "host", options: Options | None = None, *, threads: int | None = None
) -> CompiledPipeline:
    """The pipeline as a function of arrays, scheduled for the platform.

    `pipeline`: a pipeline, a document (a mapping or text), the name of a shipped one, or a file, as a model of ONNX is;
    inputs of which the file has the values, weights, are given them unless a call says otherwise. `platform`: this
    machine (`host`), a name of the catalog, a file, a document, or a platform; code for another machine is made, not
    called. `threads` of a call, unless it says otherwise; None: as many as OpenMP has (`OMP_NUM_THREADS`, or all
    processors).

    Raises DocumentError, PlatformError, UnknownSource, ScheduleError.
    """
    found = pipeline_of(pipeline)
    record = compile_pipeline(found.pipeline, platform_of(platform), options, now=time.perf_counter)
    tables = {i.name: image.array for i in found.pipeline.inputs if (image := table_of(i)) is not None}
    return CompiledPipeline(record, threads, {**tables, **found.weights})
