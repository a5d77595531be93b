"""Decoding of strangers' image files: in a confined process, one file after the other, to an array in a file."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tilesmith.app.runtime.confinement import Confinement
from tilesmith.app.runtime.decoder import ARRAY, PREVIEW
from tilesmith.app.runtime.errors import LOST, RunError
from tilesmith.app.runtime.images import Array, ImageError
from tilesmith.app.runtime.sandbox import Limits, execute
from tilesmith.scheduler.ir.pipeline.pipeline import Input

_PACKAGE = Path(__file__).parents[2]
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); sys.dont_write_bytecode = True; "
    "from tilesmith.app.runtime.decoder import main; main()"
)
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_OWN_BYTES = 512 << 20
"""Memory of Python with NumPy and the image libraries."""
_COPIES = 4
"""Forms that an image has at once on its way to an array: the file's rows, samples, those scaled, those of the type."""
_SPARE_BYTES = 16 << 20  # of a preview, of headers


def decoded(
    path: Path,
    wanted: Input,
    folder: Path,
    *,
    channels: int | None = None,
    convert: bool = False,
    most_bytes: int,
    wall_s: float,
    preview: Path | None = None,
) -> Array:
    """The array of `path` as `images.read` has it, mapped from a file in `folder`, an empty one. Nothing of the file is
    read by this process. `preview` gets a small picture of the array where that is a picture.

    Raises ImageError, RunError `not_confined` and `worker_lost`, Cancelled.
    """
    asked: dict[str, Any] = {"path": str(path), "name": wanted.name, "type": wanted.type.name, "dims": wanted.dims}
    asked |= {"channels": channels, "convert": convert, "most_bytes": most_bytes, "preview": preview is not None}
    done = execute(
        (sys.executable, "-I", "-c", _START, str(_PACKAGE.parent)),
        cwd=folder,
        limits=Limits(
            wall_s=wall_s,
            cpu_s=int(wall_s) + 1,
            memory_bytes=_COPIES * most_bytes + _OWN_BYTES,
            file_bytes=most_bytes + _SPARE_BYTES,
            files_bytes=most_bytes + _SPARE_BYTES,
        ),
        environment=_ENVIRONMENT,
        stdin=json.dumps(asked).encode(),
        confinement=Confinement((folder,), (path, _PACKAGE, Path(sys.prefix), Path(sys.base_prefix))),
    )
    if done.timed_out:
        raise ImageError("image_too_large", f"{path} was decoded for {wall_s:g} s without an end")
    if done.exceeded is not None:
        raise ImageError("image_too_large", f"{path} needs more memory than an image may have")
    if done.signal == signal.SIGKILL:
        raise RunError(LOST, "the program that decodes images was killed from outside, not for want of memory")
    try:
        said = json.loads(done.stdout)
    except ValueError:
        raise ImageError("image_unreadable", f"{path} ended the program that decodes it") from None
    if said:
        raise ImageError(said["code"], said["message"], said["hint"])
    if preview is not None and (folder / PREVIEW).exists():
        shutil.move(folder / PREVIEW, preview)
    try:
        array: Array = np.load(folder / ARRAY, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        raise ImageError("image_unreadable", f"{path} ended the program that decodes it") from None
    return array
