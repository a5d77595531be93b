"""Operations on windows that move over the spatial axes of N, C, ... tensors: convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np

from tilesmith.scheduler.frontends.tensors.graph import Graph, memory_order
from tilesmith.scheduler.frontends.tensors.sizes import Shape, Size, fixed
from tilesmith.scheduler.frontends.tensors.tensor import Constant, Pointwise, Refused, Tensor, affine, axes
from tilesmith.scheduler.ir.pipeline.types import TYPES

_WIDEST = 1 << 16  # of a window, in elements


@dataclass(frozen=True, slots=True)
class Window:
    """A window along one axis: `before` and `after` are the elements of padding at both ends."""

    size: int
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0

    def __post_init__(self) -> None:
        if min(self.size, self.stride, self.dilation) < 1 or max(astuple(self)) > _WIDEST:
            raise Refused(f"a window of {self.size} elements, stride {self.stride} and dilation {self.dilation}")

    @property
    def reach(self) -> int:
        """The elements from the first to the last that it covers."""
        return (self.size - 1) * self.dilation + 1

    def steps(self, size: Size, ceil: bool = False) -> Size:
        """The places that it takes along an axis of that size; `ceil`: also one that the end cuts off, if it does not
        begin in the padding."""
        room = size + (self.before + self.after - self.reach)
        found = (room + (self.stride - 1 if ceil else 0)) // self.stride + 1
        if ceil and (found.estimate - 1) * self.stride >= size.estimate + self.before:
            found = found - 1
        if found.estimate < 1:
            raise Refused(f"a window of {self.reach} elements over {size.estimate}")
        return found

    def taps(self, dim: str) -> tuple[str, str]:
        """The index that an element of the window at `dim` has, and the element of the window; see `loop`."""
        tap = f"r{dim}" if self.size > 1 else "0"
        return affine((dim, self.stride), (tap if self.size > 1 else 0, self.dilation), (-self.before, 1)), tap

    def loop(self, dim: str) -> str:
        """The loop over the elements of the window, "" over one."""
        return f" for r{dim} in range({self.size})" if self.size > 1 else ""

    @property
    def padded(self) -> bool:
        return self.before > 0 or self.after > 0


def same(size: Size, window: Window, upper: bool) -> Window:
    """The window with the padding for which there are `size / stride` places, rounded up; the odd element is at the end
    where `upper`. Refused where that depends on a size that is not known."""
    if window.stride > 1 and not size.known:
        raise Refused("padding that follows from a size that is not known", "fix the sizes of the model's inputs")
    places = -(-size.estimate // window.stride)
    total = max((places - 1) * window.stride + window.reach - size.estimate, 0)
    first = total // 2 if upper else total - total // 2
    return Window(window.size, window.stride, window.dilation, first, total - first)


def _spatial(x: Tensor, windows: Sequence[Window], what: str) -> tuple[str, ...]:
    if len(x.shape) != len(windows) + 2:
        raise Refused(f"{what} over {len(windows)} axes of a tensor of {len(x.shape)}")
    return axes(len(x.shape))[2:]


def convolution(
    graph: Graph, x: Tensor, weights: Tensor, bias: Tensor | None, windows: Sequence[Window], groups: int = 1
) -> Tensor:
    """The convolution of N, C, ... with weights O, C / groups, ..."""
    dims = _spatial(x, windows, "a convolution")
    made, read = weights.shape[0].estimate, weights.shape[1].estimate
    if not all(s.known for s in weights.shape) or x.shape[1].estimate != read * groups or made % groups:
        raise Refused(f"weights of {made} x {read} channels in {groups} groups for {x.shape[1].estimate} channels")
    source = graph.bounded(x, "constant") if any(w.padded for w in windows) else graph.named(x)
    spatial = tuple(w.steps(s) for w, s in zip(windows, x.shape[2:], strict=True))
    shape = (x.shape[0], fixed(made), *spatial)
    weights = _kernel(graph, weights, shape, 0)
    taps = [w.taps(d) for w, d in zip(windows, dims, strict=True)]
    image, of = axes(len(x.shape))[:2]
    channel = affine((_group(of, made // groups, groups), read), ("ri" if read > 1 else 0, 1))
    product = (
        f"{graph.read(source, [image, channel, *(index for index, _ in taps)])}"
        f" * {graph.read(weights, [of, 'ri' if read > 1 else '0', *(tap for _, tap in taps)])}"
    )
    loops = _loops(shape, read, [w.loop(d) for w, d in zip(windows, dims, strict=True)])
    return _biased(graph, x.type, shape, _sum(product, loops), bias)


def _kernel(graph: Graph, weights: Tensor, shape: Shape, made: int) -> Tensor:
    """The weights in the order in which a result of that shape reads them; `made` is their axis of its channels."""
    rank = len(weights.shape)
    order = (made, 1 - made, *range(rank - 1, 1, -1))
    if memory_order(shape)[0] != 1:
        return weights
    if isinstance(weights, Constant):
        return replace(weights, order=order)
    return graph.stage("kernel", weights.type, weights.shape, graph.read(weights, axes(rank)), order)


def _loops(shape: Shape, read: int, taps: Sequence[str]) -> str:
    """The loops of a convolution: what lies side by side in memory is innermost."""
    channels, window = f" for ri in range({read})" if read > 1 else "", "".join(taps)
    return window + channels if memory_order(shape)[0] == 1 else channels + window


def _group(channel: str, channels: int, groups: int) -> str | int:
    return 0 if groups == 1 else channel if channels == 1 else f"({channel} // {channels})"


def _sum(product: str, loops: str) -> str:
    return f"sum({product}{loops})" if loops else product


def _biased(graph: Graph, type: str, shape: Shape, total: str, bias: Tensor | None) -> Tensor:
    return Pointwise(
        total if bias is None else f"{graph.read(bias, [axes(len(shape))[1]])} + {total}", type, shape, "convolution"
    )


def transposed_convolution(
    graph: Graph,
    x: Tensor,
    weights: Tensor,
    bias: Tensor | None,
    windows: Sequence[Window],
    groups: int = 1,
    extra: Sequence[int] = (),
) -> Tensor:
    """The transposed convolution of N, C, ... with weights C, O / groups, ...; `extra` elements are added at the end of
    each axis. Each phase of the stride has a window of its own, the elements that meet it."""
    dims = _spatial(x, windows, "a transposed convolution")
    read, made = weights.shape[0].estimate // groups, weights.shape[1].estimate
    if not all(s.known for s in weights.shape) or x.shape[1].estimate != read * groups:
        raise Refused(f"weights of {weights.shape[0].estimate} channels for {x.shape[1].estimate}")
    added = [*extra, *(0 for _ in windows)]
    spatial = tuple(
        (s - 1) * w.stride + (w.reach - w.before - w.after + e)
        for w, s, e in zip(windows, x.shape[2:], added, strict=False)
    )
    shape = (x.shape[0], fixed(made * groups), *spatial)
    kernel = _kernel(graph, _whole_phases(weights, windows), shape, 1)
    source = graph.bounded(x, "constant")
    phases = [_phase(w, d) for w, d in zip(windows, dims, strict=True)]
    image, of = axes(len(x.shape))[:2]
    group = _group(of, made, groups)
    channel = affine((group, read), ("ri" if read > 1 else 0, 1))
    product = (
        f"{graph.read(source, [image, channel, *(p[0] for p in phases)])}"
        f" * {graph.read(kernel, [channel, of if groups == 1 else f'{of} % {made}', *(p[1] for p in phases)])}"
    )
    loops = _loops(shape, read, [p[2] for p in phases])
    return _biased(graph, x.type, shape, _sum(product, loops), bias)


def _whole_phases(weights: Tensor, windows: Sequence[Window]) -> Tensor:
    """The weights with zeros behind them, so that every phase of the stride has as many. Refused where they are not
    known, or dilated with a stride."""
    if any(w.dilation > 1 and w.stride > 1 for w in windows):
        raise Refused("a transposed convolution with stride and dilation")
    missing = [-w.size % w.stride for w in windows]
    if not any(missing):
        return weights
    if not isinstance(weights, Constant):
        raise Refused("a stride that does not divide the kernel, whose weights are no constants")
    return Constant(np.pad(weights.array, [(0, 0), (0, 0), *((0, m) for m in missing)]), weights.hint)


def _phase(w: Window, dim: str) -> tuple[str, str, str]:
    """Index, element of the kernel, and loop along one axis."""
    count = -(-w.size // w.stride)
    tap = f"r{dim}" if count > 1 else "0"
    at = affine((dim, 1), (w.before, 1))
    if w.stride == 1:
        return affine((dim, 1), (w.before, 1)) + (f" - {tap} * {w.dilation}" if count > 1 else ""), tap, w.loop(dim)
    index = f"({at}) // {w.stride}" + (f" - {tap}" if count > 1 else "")
    element = f"({at}) % {w.stride}" + (f" + {tap} * {w.stride}" if count > 1 else "")
    return index, element, f" for {tap} in range({count})" if count > 1 else ""


def max_pool(graph: Graph, x: Tensor, windows: Sequence[Window], ceil: bool = False) -> Tensor:
    """The largest element of each window; padding is below all."""
    dims = _spatial(x, windows, "a pool")
    lowest = repr(float(np.finfo(x.type).min)) if x.type.startswith("float") else str(TYPES[x.type].min)
    source = graph.bounded(x, "constant", lowest) if ceil or any(w.padded for w in windows) else graph.named(x)
    text, loops = _window(graph, source, windows, dims)
    return Pointwise(f"max({text}{loops})" if loops else text, x.type, _pooled(x, windows, ceil), "max_pool")


def average_pool(
    graph: Graph, x: Tensor, windows: Sequence[Window], ceil: bool = False, count_padding: bool = False
) -> Tensor:
    """The mean of each window; of padding too where `count_padding`, but never of what lies beyond that."""
    dims = _spatial(x, windows, "a pool")
    padded = ceil or any(w.padded for w in windows)
    text, loops = _window(graph, graph.bounded(x, "constant") if padded else graph.named(x), windows, dims)
    counts = [_count(w, d, s, ceil, count_padding) for w, d, s in zip(windows, dims, x.shape[2:], strict=True)]
    return Pointwise(f"{_sum(text, loops)} / ({' * '.join(counts)})", x.type, _pooled(x, windows, ceil), "average_pool")


def _window(graph: Graph, source: Tensor, windows: Sequence[Window], dims: Sequence[str]) -> tuple[str, str]:
    indices = [w.taps(d)[0] for w, d in zip(windows, dims, strict=True)]
    return graph.read(source, [*axes(len(source.shape))[:2], *indices]), "".join(
        w.loop(d) for w, d in zip(windows, dims, strict=True)
    )


def _pooled(x: Tensor, windows: Sequence[Window], ceil: bool) -> Shape:
    return (*x.shape[:2], *(w.steps(s, ceil) for w, s in zip(windows, x.shape[2:], strict=True)))


def _count(w: Window, dim: str, size: Size, ceil: bool, count_padding: bool) -> str:
    """The number of elements along one axis that a mean is of, as a float."""
    if not (ceil or (w.padded and not count_padding)):
        return f"{float(w.size)}"
    low, high = (-w.before, size + w.after) if count_padding else (0, size)
    start = affine((dim, w.stride), (-w.before, 1))
    if w.dilation > 1:
        at = affine((start, 1), (f"k{dim}", w.dilation))
        return f"sum(1.0 for k{dim} in range({w.size}) if {at} >= {low} and {at} < {high})"
    return f"float32(min({affine((start, 1), (w.size, 1))}, {high}) - max({start}, {low}))"
