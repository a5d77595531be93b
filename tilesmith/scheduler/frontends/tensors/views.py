"""Tensors whose elements are elements of others: permuted, cut, joined, repeated, continued beyond their ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilesmith.scheduler.frontends.tensors.graph import Graph, number
from tilesmith.scheduler.frontends.tensors.pointwise import broadcast
from tilesmith.scheduler.frontends.tensors.sizes import ONE, Shape, Size, fixed, product
from tilesmith.scheduler.frontends.tensors.tensor import Pointwise, Refused, Tensor, affine, axes


def _view(graph: Graph, x: Tensor, shape: Shape, indices: Sequence[str], hint: str) -> Tensor:
    return Pointwise(graph.read(graph.named(x), indices), x.type, shape, hint)


def transpose(graph: Graph, x: Tensor, order: Sequence[int]) -> Tensor:
    """The axes in another order, as NumPy's transpose."""
    dims = axes(len(x.shape))
    indices = [dims[order.index(axis)] for axis in range(len(x.shape))]
    return _view(graph, x, tuple(x.shape[axis] for axis in order), indices, "transpose")


def expand(graph: Graph, x: Tensor, shape: Shape) -> Tensor:
    """The tensor broadcast to a shape."""
    whole = broadcast([x.shape, shape])
    return x if whole == x.shape else graph.pointwise(x.type, whole, [x], lambda v: v)


def reshape(graph: Graph, x: Tensor, shape: Shape) -> Tensor:
    """The elements in their order in another shape: axes that are split or merged are told apart, and every group of
    them is numbered through."""
    if shape == x.shape:
        return x
    dims, indices = axes(len(shape)), [""] * len(x.shape)
    for own, new in _groups(x.shape, shape):
        flat = _flat([dims[a] for a in new], [shape[a] for a in new])
        for axis, text in zip(own, _unflat(flat, [x.shape[a] for a in own], len(new)), strict=True):
            indices[axis] = text
    return _view(graph, x, shape, indices, "reshape")


def _groups(own: Shape, new: Shape) -> Iterator[tuple[list[int], list[int]]]:
    """The least runs of axes of both shapes with the same number of elements. Refused where there are none."""
    i = j = 0
    while i < len(own) or j < len(new):
        left, right = [*range(i, min(i + 1, len(own)))], [*range(j, min(j + 1, len(new)))]
        i, j = i + len(left), j + len(right)
        while (a := product(own[k] for k in left)) != (b := product(new[k] for k in right)):
            shorter = a.estimate < b.estimate if a.estimate != b.estimate else not a.known
            if i < len(own) and (shorter or j == len(new)):
                left, i = [*left, i], i + 1
            elif j < len(new):
                right, j = [*right, j], j + 1
            elif a.known and b.known:
                raise Refused(f"{_shown(own)} elements in the shape {_shown(new)}")
            else:
                break  # the model says so of sizes that are not known
        while not left and j < len(new) and new[j] == ONE:
            j += 1
        yield left, right


def _shown(shape: Shape) -> str:
    return " x ".join(str(s) for s in shape) or "1"


def _flat(dims: Sequence[str], sizes: Sequence[Size]) -> str:
    """The number of the element among all, the last axis fastest."""
    text = ""
    for dim, size in zip(dims, sizes, strict=True):
        if size == ONE:
            continue
        text = f"({text}) * {size} + {dim}" if text else dim
    return text or "0"


def _unflat(flat: str, sizes: Sequence[Size], merged: int) -> list[str]:
    """The indices of the element of that number."""
    wide = [k for k, size in enumerate(sizes) if size != ONE]
    found = ["0"] * len(sizes)
    inner = ONE
    for k in reversed(wide):
        outer = f"({flat})" if inner == ONE else f"({flat}) // {inner}"
        found[k] = flat if len(wide) == 1 else outer if k == wide[0] else f"({outer}) % {sizes[k]}"
        inner = sizes[k] if inner == ONE else inner * sizes[k]
    return found


def slices(graph: Graph, x: Tensor, cuts: Sequence[tuple[int, int, int | None, int]]) -> Tensor:
    """Parts of axes: (axis, start, end, step) each, as Python counts. Refused where an end depends on a size that is
    not known."""
    shape, indices = list(x.shape), list(axes(len(x.shape)))
    for axis, start, end, step in cuts:
        axis %= len(shape)
        size = shape[axis]
        if not size.known:
            if start >= 0 and end is not None and end > 1 << 30 and step == 1:
                shape[axis] = size - start
                indices[axis] = affine((indices[axis], 1), (start, 1))
                continue
            raise Refused(f"a part of an axis of {size} elements", "fix the sizes of the model's inputs")
        chosen = range(size.estimate)[start:end:step]
        if not chosen:
            raise Refused("a part without elements")
        shape[axis] = fixed(len(chosen))
        indices[axis] = affine((indices[axis], step), (chosen[0], 1))
    return _view(graph, x, tuple(shape), indices, "slice")


def take(graph: Graph, x: Tensor, axis: int, chosen: Sequence[int], drop: bool = False) -> Tensor:
    """The elements of an axis that are named; `drop`: of one, the axis leaves."""
    axis %= len(x.shape)
    size = x.shape[axis]
    if not size.known or len(chosen) > 64:
        raise Refused(f"{len(chosen)} elements of an axis of {size}")
    places = [int(k) % size.estimate for k in chosen]
    shape = (*x.shape[:axis], *(() if drop else (fixed(len(places)),)), *x.shape[axis + 1 :])
    dims = list(axes(len(shape)))
    text = str(places[0]) if len(places) == 1 else f"mux({dims[axis]}, {', '.join(map(str, places))})"
    return _view(graph, x, shape, [*dims[:axis], text, *dims[axis + (not drop) :]], "take")


def concatenate(graph: Graph, parts: Sequence[Tensor], axis: int) -> Tensor:
    """Tensors one behind the other along an axis."""
    if len(parts) == 1:
        return parts[0]
    rank = len(parts[0].shape)
    axis %= rank
    dims, end = axes(rank), fixed(0)
    texts, ends = [], []
    for part in parts:
        size = part.shape[axis]
        inside = f"clamp({affine((dims[axis], 1))} - {end}, 0, {size - 1})"
        texts.append(graph.read(part, [*dims[:axis], inside, *dims[axis + 1 :]]))
        end = end + size
        ends.append(end)
    rest = [broadcast([(p.shape[a],) for p in parts])[0] for a in range(rank) if a != axis]
    shape = (*rest[:axis], end, *rest[axis:])
    return Pointwise(_chosen(dims[axis], texts, ends), parts[0].type, shape, "concatenate")


def _chosen(dim: str, texts: Sequence[str], ends: Sequence[Size]) -> str:
    """The text whose part `dim` lies in, by halves."""
    if len(texts) == 1:
        return texts[0]
    half = len(texts) // 2
    first, second = _chosen(dim, texts[:half], ends[:half]), _chosen(dim, texts[half:], ends[half:])
    return f"select({dim} < {ends[half - 1]}, {first}, {second})"


def tile(graph: Graph, x: Tensor, repeats: Sequence[int]) -> Tensor:
    """The tensor repeated along its axes."""
    dims = axes(len(x.shape))
    indices = [d if n == 1 else f"{d} % {s}" for d, n, s in zip(dims, repeats, x.shape, strict=True)]
    return _view(graph, x, tuple(s * n for s, n in zip(x.shape, repeats, strict=True)), indices, "tile")


PADDING = {"constant": "constant", "edge": "repeat_edge", "reflect": "mirror_interior", "wrap": "repeat_image"}


def pad(graph: Graph, x: Tensor, ends: Sequence[tuple[int, int]], mode: str, value: float = 0.0) -> Tensor:
    """The tensor with elements before and after each axis; negative numbers cut."""
    if mode not in PADDING:
        raise Refused(f"padding of mode {mode}")
    source = graph.bounded(x, PADDING[mode], number(value, x.type))
    indices = [affine((d, 1), (-before, 1)) for d, (before, _) in zip(axes(len(x.shape)), ends, strict=True)]
    shape = tuple(s + (before + after) for s, (before, after) in zip(x.shape, ends, strict=True))
    return _view(graph, source, shape, indices, "pad")


def depth_to_space(graph: Graph, x: Tensor, block: int, columns_first: bool = False) -> Tensor:
    """Blocks of channels as blocks of pixels; `columns_first`: neighbours of a channel make a block (CRD, the pixel
    shuffle)."""
    channels = _channels(x, block * block)
    group = affine((f"y % {block}", block), (f"x % {block}", 1))
    channel = affine(("c", block * block), (group, 1)) if columns_first else f"({group}) * {channels} + c"
    shape = (x.shape[0], fixed(channels), x.shape[2] * block, x.shape[3] * block)
    return _view(graph, x, shape, ["n", channel, f"y // {block}", f"x // {block}"], "depth_to_space")


def space_to_depth(graph: Graph, x: Tensor, block: int) -> Tensor:
    """Blocks of pixels as blocks of channels."""
    channels = _channels(x, 1)
    place = f"c // {channels}"
    shape = (x.shape[0], fixed(channels * block * block), x.shape[2] // block, x.shape[3] // block)
    rows, columns = (
        affine(("y", block), (f"({place}) // {block}", 1)),
        affine(("x", block), (f"({place}) % {block}", 1)),
    )
    return _view(graph, x, shape, ["n", f"c % {channels}", rows, columns], "space_to_depth")


def _channels(x: Tensor, parts: int) -> int:
    if len(x.shape) != 4 or not x.shape[1].known or x.shape[1].estimate % parts:
        raise Refused(f"blocks of {parts} channels of a tensor {_shown(x.shape)}")
    return x.shape[1].estimate // parts
