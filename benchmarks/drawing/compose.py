"""Random pipelines put together of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from benchmarks.drawing import dense, pointwise, pyramids, stencils, totals
from benchmarks.drawing.canvas import BOUNDARIES, C, Canvas, Picture
from benchmarks.drawing.work import work
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.frontends.python import frontend
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

SIZES = (
    (4000, 3000), (3840, 2160), (2592, 1968), (1536, 2560), (2048, 2048), (1920, 1080), (1280, 720), (1024, 1024),
    (800, 600), (640, 480),
)  # fmt: skip
"""Widths whose rows are a multiple of a page, and others."""
MOST_WORK = 6e9
"""Beyond it a smaller size is taken: with every stage at root a core works at it for a tenth of a second or two."""
STAGES = (3, 40)
OUTPUTS = 3

Block = Callable[[Canvas, Picture], Picture]
BLOCKS: tuple[tuple[Block, int], ...] = (
    (pointwise.curve, 8), (pointwise.table, 4), (pointwise.matrix, 5), (pointwise.over_channels, 3),
    (pointwise.saturation, 2), (pointwise.split_tone, 2), (pointwise.transposed, 1),
    (stencils.gaussian, 8), (stencils.box, 6), (stencils.chain, 3), (stencils.convolution, 3), (stencils.edges, 5),
    (stencils.corners, 3), (stencils.sharpened, 5), (stencils.morphology, 3), (stencils.median, 3),
    (stencils.bilateral, 2), (stencils.diffusion, 2), (stencils.census, 2), (stencils.warped, 2),
    (stencils.local_contrast, 2), (stencils.demosaiced, 1),
    (pyramids.smooth, 3), (pyramids.details, 2), (pyramids.shrunk, 2), (pyramids.denoised, 2),
    (pyramids.butterflies, 2),
    (totals.equalised, 2), (totals.integral_box, 2), (totals.recursive, 2), (totals.normalised, 2),
)  # fmt: skip


def drawn(seed: int, size: tuple[int, int] | None = None) -> Pipeline:
    """The random pipeline of that seed, at a size that is drawn with it and has at most MOST_WORK, or at `size`."""
    random = Random(f"pipeline {seed}")
    first = random.randrange(len(SIZES) - 3)
    for attempt in range(100):
        for width, height in SIZES[first:] if size is None else (size,):
            found = _composed(f"drawn_{seed}", f"{seed} {attempt}", width, height)
            if found is not None and (size is not None or work(found) <= MOST_WORK):
                return found
    raise ValueError(f"nothing small enough is drawn from {seed}")


def _composed(name: str, key: str, width: int, height: int) -> Pipeline | None:
    """The pipeline drawn from that key; None where it has too few stages or too many. Its choices do not depend on the
    size."""
    random = Random(key)
    canvas = Canvas(random, width, height, boundary=random.choice(BOUNDARIES))
    family = random.choices((_photograph, _wavelets, dense.network, dense.products), (80, 8, 8, 4))[0]
    if family is not _photograph and canvas.boundary is None:
        canvas.boundary = frontend.repeat_edge
    outputs = family(canvas)
    document = frontend.document(name, [p.source for p in outputs if isinstance(p.source, frontend.Stage)], {})
    used = {entry["name"] for entry in (*document["inputs"], *document["stages"])}
    for p in outputs:
        canvas.estimates[p.source] = canvas.region(p)
    known = {source if isinstance(source, str) else source.name: region for source, region in canvas.estimates.items()}
    document["estimates"] = {n: [list(span) for span in region] for n, region in known.items() if n in used}
    least, most = STAGES
    return load(document) if least <= len(document["stages"]) <= most else None


def _photograph(canvas: Canvas) -> list[Picture]:
    """Block after block from one picture or two; what nothing has read in the end goes out."""
    r = canvas.random
    type = r.choice(("uint8", "uint8", "uint8", "uint16", "uint16", "float32", "float32", "float32", "int16"))
    channels = r.choice((1, 1, 1, 3, 3, 3, 3, 2, 4))
    interleaved = r.random() < 0.3
    pool = [_begun(canvas, type, channels, interleaved) for _ in range(r.choice((1, 1, 1, 2)))]
    read: set[str] = set()
    stages = r.choice((4, 6, 8, 12, 16, 20, 26, 34))
    while canvas.stages < stages:
        p = pool[-1] if r.random() < 0.7 else r.choice(pool)
        others = [q for q in pool if q.like(p) and q.type == p.type and q.source.name != p.source.name]
        if others and r.random() < 0.25:
            q = r.choice(others)
            found = r.choice((pointwise.combined, pointwise.combined, pointwise.masked))(canvas, p, q)
            read.add(q.source.name)
        else:
            found = _block(canvas)(canvas, p)
        if not p.is_float and r.random() < 0.15:
            found = pointwise.as_float(canvas, found)
        read.add(p.source.name)
        pool.append(found)
    leaves = [p for p in pool if p.source.name not in read and isinstance(p.source, frontend.Stage)]
    return [_ended(canvas, p, type, interleaved) for p in _merged(canvas, leaves)]


def _begun(canvas: Canvas, type: str, channels: int, interleaved: bool) -> Picture:
    p = canvas.image(type, channels, interleaved)
    if type != "int16":
        return p
    return canvas.like(p, "real", frontend.float32(p.at()) * (0.5 / 32768) + 0.5, type="float32")


def _block(canvas: Canvas) -> Block:
    blocks, weights = zip(*BLOCKS, strict=True)
    chosen: Block = canvas.random.choices(blocks, weights)[0]
    return chosen


def _merged(canvas: Canvas, leaves: Sequence[Picture]) -> list[Picture]:
    """At most OUTPUTS of them: the last ones of one shape are combined, others are let go."""
    kept: list[Picture] = []
    for p in reversed(leaves):
        like = [n for n, q in enumerate(kept) if q.like(p) and q.type == p.type]
        if like and canvas.random.random() < 0.7:
            kept[like[0]] = pointwise.combined(canvas, kept[like[0]], p)
        elif len(kept) < OUTPUTS:
            kept.append(p)
    return kept


def _ended(canvas: Canvas, p: Picture, type: str, interleaved: bool) -> Picture:
    """An output: of bytes again where the image was, interleaved if it was."""
    if p.is_float and type in ("uint8", "uint16") and canvas.random.random() < 0.7:
        p = pointwise.as_integers(canvas, p, type)
    if not interleaved or p.channels == 1:
        return p
    stage = canvas.stage("output", p.dims, p.at(), storage=(C, *p.dims[:2]))
    return Picture(stage, p.type, p.channels, p.scale)


def _wavelets(canvas: Canvas) -> list[Picture]:
    """Some steps of a wavelet, every band an output, the lowest one split again."""
    r = canvas.random
    p = canvas.image(r.choice(("uint8", "int16", "int32", "float32", "float32")), r.choice((1, 1, 3)))
    step = r.choice((pyramids.haar, pyramids.lifted))
    outputs: list[Picture] = []
    for _ in range(r.choice((1, 2, 3))):
        p, *bands = step(canvas, p)
        outputs += bands
    return [*outputs, p]
