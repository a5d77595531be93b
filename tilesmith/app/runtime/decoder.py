"""The program that decodes one image file, run apart by `decoding`: a JSON object on standard input, one on standard
output, the array and a small picture of it in files.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tilesmith.app.runtime import images, previews
from tilesmith.scheduler.ir.pipeline.pipeline import Input
from tilesmith.scheduler.ir.pipeline.types import TYPES

ARRAY, PREVIEW = "decoded.npy", "preview.png"
"""Files that are written, in the working directory; the second where the array is a picture, and one is asked for."""


def main() -> None:
    """Decode, and say so, or why not."""
    try:
        answer = decode(json.load(sys.stdin))
    except images.ImageError as error:
        answer = {"code": error.code, "message": str(error), "hint": error.hint}
    except MemoryError:
        answer = {"code": "image_too_large", "message": "it needs more memory than an image may have", "hint": None}
    sys.stdout.write(json.dumps(answer))


def decode(asked: dict[str, Any]) -> dict[str, Any]:
    """Nothing said once the files are written; raises ImageError."""
    dims = tuple(asked["dims"])
    wanted = Input(asked["name"], TYPES[asked["type"]], dims, None, dims)
    array = images.read(Path(asked["path"]), wanted, asked["channels"], asked["convert"], asked["most_bytes"])
    if array.nbytes > asked["most_bytes"]:
        raise images.ImageError("image_too_large", f"{asked['path']} has {array.nbytes} bytes", "pass a part of it")
    written = np.lib.format.open_memmap(ARRAY, "w+", array.dtype, array.shape)
    written[...] = array  # in C order, which np.save would not keep to
    written.flush()
    if asked["preview"] and previews.is_picture(array, dims):
        Path(PREVIEW).write_bytes(previews.png(array, dims, stretch=False))
    return {}
