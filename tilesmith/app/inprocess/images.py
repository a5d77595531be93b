"""Images that callers pass, as arrays that a pipeline can read in place.

Arrays of NumPy, and what understands DLPack, the buffer protocol or NumPy's own (tensors, memoryviews, pictures of
Pillow), are not copied, unless their elements lie where the C cannot read them. Lists become arrays of the input's
type.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from tilesmith.app.runtime.axes import channel_dim, misplaced_channels, transposed
from tilesmith.scheduler.ir.pipeline.arguments import ArgumentError
from tilesmith.scheduler.ir.pipeline.pipeline import Input

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def image_array(value: object, wanted: Input, dtype: np.dtype[Any]) -> Array:
    """The array of an image that was passed as the input `wanted`, whose elements are of `dtype`. Raises ArgumentError,
    with the remedy."""
    if type(value) is np.ndarray and value.dtype is dtype and value.flags.aligned:
        return value
    what = f"input {wanted.name!r}"
    array = _of_numbers(value, wanted) if isinstance(value, list | tuple) else as_array(value, what)
    if array.dtype != dtype:
        if array.dtype.newbyteorder("=") != dtype:
            raise ArgumentError(f"{what} is {wanted.type}, not {array.dtype}: pass {_converted(array.dtype, wanted)}")
        array = array.astype(dtype)
    return array if array.flags.aligned else array.copy()


def as_array(value: object, what: str) -> Array:
    """Whatever holds numbers in memory as an array of NumPy's own class, not copied. Raises ArgumentError for what does
    not, or not in the memory of this process."""
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentError(f"{what} is a masked array, whose mask would be lost: pass its .filled(value)")
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value, what)
    try:
        array = np.asarray(value)
    except Exception as error:  # whatever the object's own conversion raises
        raise ArgumentError(f"{what} cannot be read as an array: {error}") from None
    if array.dtype == np.object_:
        raise ArgumentError(f"{what} is a {type(value).__name__}, not an image: pass an array")
    return array


def output_array(value: object, what: str) -> Array:
    """The array of memory that results are to be written into. Raises ArgumentError for what is none."""
    try:
        shared = isinstance(value, np.ndarray) or hasattr(value, "__dlpack__") or memoryview(value) is not None  # type: ignore[arg-type]  # tried
    except TypeError:
        shared = False
    if not shared:
        raise ArgumentError(f"{what} is a {type(value).__name__}: pass an array that it can be written into")
    return as_array(value, what)


def _from_dlpack(value: Any, what: str) -> Array:
    try:
        return np.asarray(np.from_dlpack(value))
    except Exception as error:  # BufferError of a device, RuntimeError of a tensor with a gradient, and the like
        remedy = "pass it in the memory of this process (of a tensor: .detach().cpu())"
        raise ArgumentError(f"{what} cannot be read by DLPack: {' '.join(str(error).split())}; {remedy}") from None


def _of_numbers(value: list[Any] | tuple[Any, ...], wanted: Input) -> Array:
    """A list, or one of lists, of numbers that the input's type has."""
    what = f"input {wanted.name!r}"
    try:
        written = np.array(value)
        array = written.astype(wanted.type.numpy)
    except (ValueError, TypeError, OverflowError) as error:
        raise ArgumentError(f"{what} is a list that is no array: {error}") from None
    kept = wanted.type.is_float or bool(np.all(array == written))
    if written.dtype.kind not in "buif" or not kept:
        raise ArgumentError(f"{what} is a list with other numbers than {wanted.type} has")
    return array


def _converted(have: np.dtype[Any], wanted: Input) -> str:
    """The call that makes the input's type of an array, scaled where a picture's range would change."""
    name, to = wanted.name, wanted.type.numpy
    if wanted.type.is_float and have.kind == "u":
        return f"{name}.astype(np.{to}) / {np.iinfo(have).max} for values from 0 to 1, or {name}.astype(np.{to})"
    if wanted.type.kind == "uint" and have.kind == "f":
        scaled = f"({name} * {np.iinfo(to).max}).round().astype(np.{to})"
        return f"{scaled} for values from 0 to 1, or {name}.astype(np.{to})"
    return f"{name}.astype(np.{'bool_' if to == np.bool_ else to})"


def check_shape(shape: tuple[int, ...], wanted: Input, channels: int | None, all_read: bool) -> None:
    """Raises ArgumentError, with the remedy, for an image of `shape` that is not the input's: its rank, its channels.

    `channels` is how many the pipeline is planned for, None where that is not known. `all_read`: it reads so many, and
    no others, whatever region is asked for."""
    what, axes = f"input {wanted.name!r}", f"({', '.join(reversed(wanted.dims))})"
    if len(shape) != len(wanted.dims):
        remedy = _of_rank(shape, wanted, channels)
        raise ArgumentError(f"{what} has the axes {axes}, this array has the shape {shape}{remedy}")
    if 0 in shape:
        raise ArgumentError(f"{what} is empty: the array has the shape {shape}")
    order = misplaced_channels(shape, wanted.dims, channels)
    if order is not None:
        mended = f"{wanted.name}{transposed(order)}"
        raise ArgumentError(f"{what} has the axes {axes}, this array has the shape {shape}: pass {mended}")
    dim = channel_dim(wanted.dims)
    if dim is None or channels is None or not all_read:
        return
    axis = len(shape) - 1 - wanted.dims.index(dim)
    if shape[axis] != channels:
        fewer = f"{wanted.name}[{', '.join([*[':'] * axis, f':{channels}'])}]"
        remedy = f"pass {fewer}" if shape[axis] > channels else "pass a picture of so many"
        raise ArgumentError(f"{what} has {channels} channels on axis {axis}, not {shape[axis]}: {remedy}")


def _of_rank(shape: tuple[int, ...], wanted: Input, channels: int | None) -> str:
    """The end of the sentence about an array of another rank: what makes it one of the input's."""
    name, rank = wanted.name, len(wanted.dims)
    if len(shape) == rank + 1 == 3:
        pick = f"{name}[..., 0]" if shape[-1] <= 4 else f"{name}[0]"
        return f": pass one channel, as {pick}, or a gray picture"
    if len(shape) == rank - 1 == 2 and channel_dim(wanted.dims) == wanted.dims[-1]:
        return f": pass np.stack([{name}] * {channels or 3})"
    return f": call it once for each {name}" if len(shape) == rank + 1 else ""


def check_output(array: Array, what: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raises ArgumentError, with the remedy, where results of `shape` and `dtype` cannot be written into `array`."""
    if array.dtype != dtype:
        raise ArgumentError(f"{what} is {dtype}, the array is {array.dtype}: pass np.empty({shape}, np.{dtype})")
    if array.shape != shape:
        raise ArgumentError(f"{what} has the shape {shape}, the array has {array.shape}: pass one of that shape")
    flags = array.flags
    if not flags.writeable:
        raise ArgumentError(f"{what} is an array that is read-only: pass one that can be written")
    if not (flags.c_contiguous or (flags.aligned and _apart(array))):
        raise ArgumentError(f"{what} is an array whose elements overlap or are not aligned: pass one of its own memory")


def _apart(array: Array) -> bool:
    """True if strides alone show that no two elements share memory."""
    end = array.itemsize
    for stride, extent in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if stride < end:
            return False
        end = stride * (extent - 1) + end
    return True


def check_apart(outputs: list[tuple[str, Array]], inputs: list[tuple[str, Array]]) -> None:
    """Raises ArgumentError where an output shares memory with an input or another output."""
    for n, (what, array) in enumerate(outputs):
        for other, one in (*inputs, *outputs[:n]):
            if np.shares_memory(array, one):
                remedy = "nothing is computed in place: pass another array, or a copy"
                raise ArgumentError(f"{what} shares memory with {other}, and {remedy}")
