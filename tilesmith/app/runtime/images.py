"""Files to arrays and back: .npy, PNG, TIFF and JPEG as the inputs and outputs of a pipeline want them.

An array's axes are the reverse of the dims: dims [x, y, c] is shape (C, H, W). What a file is, is read
from its first bytes, never from its name; how an output is written, from the suffix of its name.
"""

from __future__ import annotations

import re
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tilesmith.app.runtime.axes import channel_dim, misplaced_channels, transposed
from tilesmith.scheduler.errors import TilesmithError
from tilesmith.scheduler.ir.pipeline.pipeline import Input
from tilesmith.scheduler.ir.pipeline.types import ScalarType

Array = np.ndarray[Any, np.dtype[Any]]
Format = Literal["npy", "png", "tiff", "jpeg"]
Readable = Format | Literal["npz"]

MAX_PIXELS = 1 << 27  # width x height of one image file: 134 million, so that a small file cannot claim all memory
MOST_BYTES = 1 << 31  # of the samples of one image file, as they are and in the type that is wanted
SUFFIXES: dict[str, Format] = {
    ".npy": "npy",
    ".png": "png",
    ".tif": "tiff",
    ".tiff": "tiff",
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
}
Most = tuple[int, int]
"""The most samples of a file, and the most bytes of them."""
_PNG_CHANNELS = {0: 1, 2: 3, 3: 4, 4: 2, 6: 4}  # by the colour type of the header; a palette becomes RGBA
_ADDRESS = re.compile(" at 0x[0-9a-f]+")  # of an object, in what Python says of it
COLOURS = {1: "gray", 2: "gray and alpha", 3: "RGB", 4: "RGBA"}
CONVERT = "add --convert to have it converted"
UNREADABLE = (
    OSError,
    ValueError,
    SyntaxError,
    TypeError,
    LookupError,
    EOFError,
    ArithmeticError,
    AttributeError,
    struct.error,
    tokenize.TokenError,
    zlib.error,
    zipfile.BadZipFile,
)
"""Exceptions that the image libraries raise on broken files; their own classes derive from these (pypng's from
Exception). NumPy reads headers of arrays as Python."""


class ImageError(TilesmithError):
    """A file is not the image that an input wants, or an output cannot be written as one."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Raster:
    """A decoded image file: samples of shape (H, W, channels), bool, uint8, uint16 or float."""

    samples: Array

    @property
    def channels(self) -> int:
        return int(self.samples.shape[2])

    @property
    def colour(self) -> str:
        return COLOURS.get(self.channels, f"{self.channels} channels")

    @property
    def depth(self) -> str:
        if self.samples.dtype.kind == "f":
            return f"{self.samples.dtype.itemsize * 8}-bit float"
        return "1 bit" if self.samples.dtype == np.bool_ else f"{self.samples.dtype.itemsize * 8} bit"


def read(
    path: Path, wanted: Input, channels: int | None = None, convert: bool = False, most_bytes: int = MOST_BYTES
) -> Array:
    """The array of `path` as the input `wanted`: axes the reverse of its dims, its type.

    `channels` is how many planes an image must have, where that is known; of .npy files it tells H,W,C from C,H,W.
    `convert` changes depth (8 <-> 16 bit, scaled), gray <-> colour and alpha instead of refusing. A picture that would
    have more than `most_bytes`, by its header, is not decoded.
    Raises ImageError, naming what the file has, what the input wants, and the remedy.
    """
    kind = _format_of(path)
    with _decoding(path):
        if kind == "npy":
            return _fitting(path, np.load(path, mmap_mode="r", allow_pickle=False), wanted, channels)
        if kind == "npz":
            return _fitting(path, _member(path, wanted.name), wanted, channels)
    _check_dims(path, wanted)
    decoded = raster(path, most_bytes, wanted.type.bytes)
    if convert:
        decoded = _converted(decoded, wanted, channels if channel_dim(wanted.dims) is not None else 1)
    return _planes(path, decoded, wanted, channels)


def raster(path: Path, most_bytes: int = MOST_BYTES, sample_bytes: int = 1) -> Raster:
    """The samples of a picture: PNG, TIFF or JPEG. Raises ImageError, for an array file too, and for one of more than
    `most_bytes`, where a sample has at least `sample_bytes`."""
    kind = _format_of(path)
    if kind in ("npy", "npz"):
        raise ImageError("image_format", f"{path} is an array, and no picture")
    with _decoding(path):
        most = most_bytes // sample_bytes, most_bytes
        return _png(path, most) if kind == "png" else _tiff(path, most) if kind == "tiff" else _pillow(path, most)


def format_to_write(path: Path) -> Format:
    """The format that the name of an output asks for; ImageError where it asks for none that we write."""
    try:
        return SUFFIXES[path.suffix.lower()]
    except KeyError:
        message = (
            f"{path}: outputs are written as {', '.join(SUFFIXES)}, not as {path.suffix or 'a file without suffix'}"
        )
        raise ImageError("image_format", message) from None


def check_writable(path: Path, dims: tuple[str, ...], type_: ScalarType) -> None:
    """Raises ImageError where an output of these dims and type cannot be written to `path`, before any work is done."""
    kind = format_to_write(path)
    if path.is_dir() or not path.parent.is_dir():
        problem = "is a directory" if path.is_dir() else f"there is no directory {path.parent}"
        raise ImageError("image_path", f"{path}: {problem}")
    if kind == "npy":
        return
    if len(dims) not in (2, 3):
        raise ImageError("image_dims", f"{path}: {_dims(dims)} is not a picture", "write it as .npy")
    if not (type_.is_float or type_.name in ("bool", "uint8", "uint16")):
        raise ImageError(
            "image_depth", f"{path}: pictures hold uint8, uint16 or floats, not {type_}", "write it as .npy"
        )
    if kind == "jpeg" and type_.name == "uint16":
        raise ImageError("image_depth", f"{path}: JPEG holds 8 bits, the output is uint16", "write it as .png or .tif")


def write(path: Path, array: Array, dims: tuple[str, ...], stretch: bool = False) -> None:
    """Writes an output, axes the reverse of `dims`, in the format of the name of `path`.

    Pictures: floats are clipped to 0..1 and written with 8 bits (16 in TIFF), integers as they are. `stretch` maps
    the 1st to the 99th percentile to the full range first, for results that are no picture by themselves.
    """
    kind = format_to_write(path)
    if kind == "npy":
        with path.open("wb") as file:
            np.save(file, array, allow_pickle=False)
        return
    samples = array.transpose(tuple(len(dims) - 1 - dims.index(d) for d in _height_width_channels(dims)))
    samples = samples.reshape((*samples.shape[:2], -1))
    if samples.shape[2] not in COLOURS or (kind == "jpeg" and samples.shape[2] in (2, 4)):
        message = f"{path}: {samples.shape[2]} channels cannot be written as {kind.upper()}"
        raise ImageError("image_channels", message, "write it as .npy")
    samples = np.ascontiguousarray(_quantised(samples, stretch, np.dtype(np.uint16 if kind == "tiff" else np.uint8)))
    if kind == "tiff":
        _write_tiff(path, samples)
    elif samples.dtype == np.uint16:
        _write_png16(path, samples)
    else:
        _write_pillow(path, samples)


# --- what a file is, and decoding it ---------------------------------------------------------------


def _format_of(path: Path) -> Readable:
    if path.is_dir():
        raise ImageError("image_path", f"{path} is a directory, not an image")
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except FileNotFoundError:
        raise ImageError("image_path", f"{path}: no such file") from None
    except OSError as error:
        raise ImageError("image_path", f"{path}: {error.strerror or error}") from None
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if head.startswith(b"PK\x03\x04"):
        return "npz"
    if head == b"\x89PNG\r\n\x1a\n":
        return "png"
    if head[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        return "tiff"
    if head.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    raise ImageError(
        "image_format", f"{path} is not a .npy, .npz, PNG, TIFF or JPEG file" + ("" if head else ": it is empty")
    )


@contextmanager
def _decoding(path: Path) -> Iterator[None]:
    """The boundary to the image libraries: what they raise on a broken file becomes an ImageError."""
    import png
    import tifffile
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries, about damaged metadata
            yield
    except ImageError:
        raise
    except Image.DecompressionBombError as error:
        raise ImageError("image_too_large", f"{path}: {error}") from None
    except MemoryError:
        raise ImageError("image_too_large", f"{path} claims more memory than there is", "pass a part of it") from None
    except NotImplementedError as error:
        raise ImageError("image_format", f"{path} cannot be decoded here: {error}", "pass it as .npy") from None
    except (png.Error, tifffile.TiffFileError, *UNREADABLE) as error:
        detail = _ADDRESS.sub("", " ".join(str(error).split())) or type(error).__name__
        raise ImageError("image_unreadable", f"{path} is damaged or cut short: {detail}") from None


def _check_size(path: Path, size: tuple[int, int, int], sample_bytes: int, most: Most) -> None:
    """ImageError where a file claims too much. `size` is its width, height and channels."""
    width, height, channels = size
    if width * height == 0:
        raise ImageError("image_dims", f"{path} is an empty picture, of {width} x {height} pixels")
    if width * height > MAX_PIXELS:
        message = f"{path} claims {width} x {height} pixels; more than {MAX_PIXELS:,} are not read"
        raise ImageError("image_too_large", message, "pass it as .npy")
    samples = width * height * channels
    if samples > most[0] or samples * sample_bytes > most[1]:
        message = f"{path} claims {width} x {height} pixels of {channels} channels; that is more than is decoded"
        raise ImageError("image_too_large", message, "pass a part of it")


def _member(path: Path, name: str) -> Array:
    """The array of that name in an archive. Compressed ones are refused: little of them may claim all memory."""
    with zipfile.ZipFile(path) as archive:
        member = f"{name}.npy"
        if member not in archive.namelist():
            raise ImageError("image_format", f"{path} has no array {name!r}")
        if archive.getinfo(member).compress_type != zipfile.ZIP_STORED:
            raise ImageError("image_format", f"{path}: the array {name!r} is compressed", "write it by numpy.savez")
        with archive.open(member) as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def _fitting(path: Path, array: Array, wanted: Input, channels: int | None) -> Array:
    """The array as the input wants it. Raises ImageError where it is none."""
    if array.ndim != len(wanted.dims):
        message = f"{path} is an array of shape {array.shape}, but input {wanted.name!r} wants {_dims(wanted.dims)}"
        hint = f"an array's axes are the dims reversed: ({', '.join(reversed(wanted.dims))})"
        raise ImageError("image_dims", message, hint)
    if array.dtype.newbyteorder("=") != wanted.type.numpy:
        message = f"{path} is an array of {array.dtype}, but input {wanted.name!r} wants {wanted.type}"
        raise ImageError("image_depth", message, _cast(array, wanted.type))
    if array.size == 0:
        raise ImageError("image_dims", f"{path} is an empty array, of shape {array.shape}")
    axes = misplaced_channels(array.shape, wanted.dims, channels)
    if axes is not None:
        message = f"{path} is an array of shape {array.shape}, but input {wanted.name!r} wants {_dims(wanted.dims)}"
        order = f"its axes are ({', '.join(reversed(wanted.dims))})"
        raise ImageError("image_dims", message, f"{order}: save array{transposed(axes)}")
    return np.asarray(array, dtype=wanted.type.numpy)


def _cast(array: Array, type_: ScalarType) -> str:
    """The conversion that makes an array one of another type; floats of 0..1 are no integers until they are scaled."""
    if array.dtype.kind == "f" and type_.kind in ("int", "uint") and array.size and float(np.max(array)) <= 1:
        return f"its floats are 0..1: save (array * {type_.max}).round().astype('{type_}')"
    return f"save it with array.astype('{type_}')"


def _png(path: Path, most: Most) -> Raster:
    """A PNG; those of 16 bits a sample by pypng, since Pillow reads their colours with 8."""
    import png

    with path.open("rb") as file:
        head = file.read(26)
        if len(head) < 26:
            raise ValueError("the header is incomplete")
        width, height, bits, colour = struct.unpack(">IIBB", head[16:26])
        if bits != 16:
            return _pillow(path, most)
        planes = _PNG_CHANNELS.get(colour, 4)
        _check_size(path, (width, height, planes), 2, most)
        file.seek(0)
        width, height, rows, info = png.Reader(file=file).asDirect()
        samples = np.empty((height, width * info["planes"]), np.uint16)
        for place, row in zip(samples, rows, strict=True):
            place[:] = row
    return Raster(samples.reshape(height, width, info["planes"]))


def _tiff(path: Path, most: Most) -> Raster:
    """The first page of a TIFF; 8 bits a sample by Pillow, which decodes every compression, others by tifffile."""
    import tifffile

    with tifffile.TiffFile(path) as file:
        page = file.pages.first
        if page.dtype is None or page.bitspersample in (1, 8):
            return _pillow(path, most)
        _check_size(path, (page.imagewidth, page.imagelength, page.samplesperpixel), page.dtype.itemsize, most)
        if page.photometric not in (tifffile.PHOTOMETRIC.MINISBLACK, tifffile.PHOTOMETRIC.RGB):
            raise ImageError(
                "image_format", f"{path} holds neither gray nor RGB, but {tifffile.PHOTOMETRIC(page.photometric).name}"
            )
        if page.imagedepth != 1:
            message = f"{path} is a volume, of {page.imagedepth} pictures"
            raise ImageError("image_dims", message, "pass one of them, or all as .npy")
        samples: Array = page.asarray()
        if samples.ndim == 2:
            samples = samples[:, :, np.newaxis]
        elif page.planarconfig == tifffile.PLANARCONFIG.SEPARATE:
            samples = samples.transpose(1, 2, 0)
    return Raster(samples)


def _pillow(path: Path, most: Most) -> Raster:
    from PIL import Image, ImageOps

    with Image.open(path) as file:
        _check_size(path, (file.width, file.height, 4 if file.mode in ("P", "PA") else len(file.getbands())), 1, most)
        image: Image.Image = file
        if image.mode in ("P", "PA"):
            image = image.convert("RGBA" if "transparency" in image.info or image.mode == "PA" else "RGB")
        if image.mode not in ("1", "L", "LA", "RGB", "RGBA"):
            raise ImageError("image_format", f"{path} holds neither gray nor RGB, but {image.mode}")
        samples = np.asarray(ImageOps.exif_transpose(image))
    return Raster(samples.reshape((*samples.shape[:2], -1)))


# --- a raster as an input ------------------------------------------------------------------------


def _dims(dims: tuple[str, ...]) -> str:
    return f"dims [{', '.join(dims)}]"


def _height_width_channels(dims: tuple[str, ...]) -> tuple[str, ...]:
    """The dims in the order of a raster's axes: the first that is no channel runs across, the second down."""
    channel = channel_dim(dims)
    across, down = (d for d in dims if d != channel)
    return (down, across) if channel is None else (down, across, channel)


def _check_dims(path: Path, wanted: Input) -> None:
    if len(wanted.dims) not in (2, 3):
        message = f"{path} is a picture, but input {wanted.name!r} wants {_dims(wanted.dims)}"
        raise ImageError("image_dims", message, "pass it as .npy")


def _converted(raster: Raster, wanted: Input, channels: int | None) -> Raster:
    """`raster` with the depth and the channels that are wanted, as far as there is an obvious way."""
    samples = raster.samples
    if samples.dtype == np.bool_ and wanted.type.name != "bool":
        samples = samples.astype(np.uint8) * np.uint8(255)
    if wanted.type.name == "uint16" and samples.dtype == np.uint8:
        samples = samples.astype(np.uint16) * np.uint16(257)
    elif wanted.type.name == "uint8" and samples.dtype == np.uint16:
        samples = ((samples.astype(np.uint32) + 128) // 257).astype(np.uint8)
    return replace(raster, samples=_recoloured(samples, channels))


def _recoloured(samples: Array, channels: int | None) -> Array:
    """Gray to colour by repeating, colour to gray by the luma of Rec. 601, alpha dropped or opaque."""
    have = samples.shape[2]
    if channels is None or channels == have or channels not in COLOURS or have not in COLOURS:
        return samples
    colours = samples[:, :, : have - (have in (2, 4))]
    if channels < 3 and colours.shape[2] == 3:
        with np.errstate(all="ignore"):  # floats may be anything
            luma = colours @ np.array([0.299, 0.587, 0.114])
            colours = (luma if samples.dtype.kind == "f" else np.rint(luma)).astype(samples.dtype)[:, :, np.newaxis]
    elif channels >= 3 and colours.shape[2] == 1:
        colours = np.repeat(colours, 3, axis=2)
    if channels in (1, 3):
        return colours
    opaque = 1 if samples.dtype.kind in "fb" else np.iinfo(samples.dtype).max
    alpha = samples[:, :, -1:] if have in (2, 4) else np.full_like(samples[:, :, :1], opaque)
    return np.concatenate([colours, alpha], axis=2)


def _planes(path: Path, raster: Raster, wanted: Input, channels: int | None) -> Array:
    """`raster` as an array of the input's type, with axes the reverse of its dims."""
    channel = channel_dim(wanted.dims)
    expected = 1 if channel is None else channels
    if expected is not None and raster.channels != expected:
        names = f" ({raster.colour})" if raster.channels in COLOURS else ""
        message = (
            f"{path} has {raster.channels} channel{'s' * (raster.channels != 1)}{names}, "
            f"but input {wanted.name!r} wants {expected} ({_dims(wanted.dims)})"
        )
        convertible = raster.channels in COLOURS and expected in COLOURS
        raise ImageError("image_channels", message, CONVERT if convertible else "pass it as .npy")
    samples = _typed(path, raster, wanted)
    axes = _height_width_channels(wanted.dims)
    if channel is None:
        samples = samples[:, :, 0]
    return samples.transpose(tuple(axes.index(d) for d in reversed(wanted.dims)))


def _typed(path: Path, raster: Raster, wanted: Input) -> Array:
    """The samples in the input's type: floats from 0..1, integers as they are where the depth fits."""
    samples, type_ = raster.samples, wanted.type
    if type_.is_float:
        if samples.dtype.kind in "fb":
            return samples.astype(type_.numpy)
        if samples.dtype in (np.uint8, np.uint16):
            scale = type_.numpy.type(np.iinfo(samples.dtype).max)
            return np.asarray(samples.astype(type_.numpy) / scale)
    elif samples.dtype == type_.numpy:
        return samples
    elif type_.is_integer and type_.name not in ("int8", "uint8", "int16", "uint16") and samples.dtype.kind == "u":
        return samples.astype(type_.numpy)  # wider than any file: the values as they are
    bits = {"uint8": "8 bits", "uint16": "16 bits", "bool": "1 bit"}.get(type_.name, "an array file (.npy)")
    message = f"{path} has {raster.depth} a sample, but input {wanted.name!r} is {type_} and wants {bits}"
    if samples.dtype.kind == "f" and type_.is_integer:
        raise ImageError("image_depth", message, f"scale its floats to 0..{type_.max}, and pass them as .npy")
    convertible = type_.name in ("uint8", "uint16") and samples.dtype.kind in "ub"
    raise ImageError("image_depth", message, CONVERT if convertible else "pass it as .npy")


# --- writing -------------------------------------------------------------------------------------


def _quantised(samples: Array, stretch: bool, depth: np.dtype[Any]) -> Array:
    """Samples as a picture holds them: uint8 or uint16. Floats that are no number become black."""
    if samples.dtype == np.bool_:
        return samples.astype(np.uint8) * np.uint8(255)
    if samples.dtype.kind != "f":
        if not stretch:
            return samples
        depth = samples.dtype
    with np.errstate(invalid="ignore"):  # signalling NaNs say so as they are converted
        values = np.nan_to_num(samples.astype(np.float64), nan=0.0)
    if stretch:
        low, high = np.percentile(values, (1, 99))
        values = (values - low) / max(high - low, np.finfo(np.float64).tiny)
    top = np.iinfo(depth).max
    return np.rint(np.clip(values, 0.0, 1.0) * top).astype(depth)


def _write_pillow(path: Path, samples: Array) -> None:
    from PIL import Image

    image = Image.fromarray(samples[:, :, 0] if samples.shape[2] == 1 else samples)
    image.save(path, quality=95)  # of JPEG; PNG knows no quality and ignores it


def _write_png16(path: Path, samples: Array) -> None:
    import png

    height, width, channels = samples.shape
    writer = png.Writer(width, height, greyscale=channels < 3, alpha=channels in (2, 4), bitdepth=16)
    with path.open("wb") as file:
        writer.write_packed(file, (row.tobytes() for row in samples.astype(">u2").reshape(height, -1)))


def _write_tiff(path: Path, samples: Array) -> None:
    import tifffile

    channels = samples.shape[2]
    tifffile.imwrite(
        path,
        samples if channels > 1 else samples[:, :, 0],
        photometric="rgb" if channels >= 3 else "minisblack",
        planarconfig="contig" if channels > 1 else None,
        extrasamples=["unassalpha"] if channels in (2, 4) else None,
        metadata=None,
    )
