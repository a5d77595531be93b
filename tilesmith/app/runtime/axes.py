"""Axes of arrays that are images: rows first, as NumPy's, and the channels where the dims of the pipeline have them."""

from __future__ import annotations

CHANNEL_DIMS = ("c", "ch", "chan", "channel", "channels", "color", "colour")
MOST_CHANNELS = 4
"""Channels of a picture, at most: an axis with no more elements may be one of channels, whatever its place."""


def channel_dim(dims: tuple[str, ...]) -> str | None:
    """The dim of three that counts channels: the one named so, otherwise the last; None for gray images."""
    if len(dims) < 3:
        return None
    return next((d for d in dims if d.lower() in CHANNEL_DIMS), dims[-1])


def misplaced_channels(
    shape: tuple[int, ...], dims: tuple[str, ...], channels: int | None = None
) -> tuple[int, int, int] | None:
    """The order of axes that mends an array of `shape` with its channels elsewhere than `dims` have them, as H,W,C is
    for dims [x, y, c]; None where they are in their place, or nothing can be said.

    `channels` is the number of them that the pipeline is planned for, None where that is not known.
    """
    channel = channel_dim(dims)
    if channel is None or len(dims) != 3 or len(shape) != 3:
        return None
    place = 2 - dims.index(channel)
    plausible = range(1, MOST_CHANNELS + 1) if channels is None else (channels,)
    others = [axis for axis in range(3) if axis != place and shape[axis] in plausible]
    if shape[place] <= MOST_CHANNELS or len(others) != 1 or max(plausible) > MOST_CHANNELS:
        return None
    order = [axis for axis in range(3) if axis != others[0]]
    order.insert(place, others[0])
    return order[0], order[1], order[2]


def transposed(order: tuple[int, ...]) -> str:
    """The call that brings an array's axes into this order, as NumPy's users write it."""
    return f".transpose({', '.join(map(str, order))})"
