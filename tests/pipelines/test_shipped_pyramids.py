"""The shipped pyramids and networks against direct computations with NumPy, in float64."""

import numpy as np
import pytest
from support.networks import vdsr, weights

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.semantics import random_float

pytestmark = pytest.mark.slow

SIZES = [(1, 1), (7, 3), (13, 20), (64, 41)]


def run(pipeline, arrays, region, low=(0, 0, 0), **params):
    """The only output over `region`; the images begin at `low`."""
    if isinstance(pipeline, str):
        pipeline = pipelines.load(pipeline)
    params = {p.name: p.default for p in pipeline.params} | params
    images = {i.name: Image(arrays[i.name], (*low, 0, 0)[: len(i.dims)]) for i in pipeline.inputs}
    (output,) = pipeline.outputs
    (result,) = interpret(pipeline, images, params, {output: region})[output]
    return result


class Grid:
    """A function of x and y, the last two axes, known on a part of the grid that begins at `x0`, `y0`."""

    def __init__(self, values, x0, y0):
        self.values, self.x0, self.y0 = values, x0, y0

    def xs(self):
        return np.arange(self.x0, self.x0 + self.values.shape[-1])

    def ys(self):
        return np.arange(self.y0, self.y0 + self.values.shape[-2])

    def at(self, xs, ys):
        """The values at every ys and xs, all of them known."""
        assert self.x0 <= xs.min() <= xs.max() < self.x0 + self.values.shape[-1]
        assert self.y0 <= ys.min() <= ys.max() < self.y0 + self.values.shape[-2]
        return self.values[..., (ys - self.y0)[:, None], xs - self.x0]


def edged(array, low, by):
    """`array`, which begins at `low`, continued by its edges."""
    wide = np.pad(array.astype(float), [(0, 0)] * (array.ndim - 2) + [(by, by)] * 2, mode="edge")
    return Grid(wide, low[0] - by, low[1] - by)


def together(*grids):
    """The values that are known of all images in the same places, and these places."""
    xs = np.arange(max(g.xs()[0] for g in grids), min(g.xs()[-1] for g in grids) + 1)
    ys = np.arange(max(g.ys()[0] for g in grids), min(g.ys()[-1] for g in grids) + 1)
    return *(g.at(xs, ys) for g in grids), xs[0], ys[0]


def down(grid, taps, first):
    """Every second point of a convolution whose taps lie at 2 x + first and on."""
    last = first + len(taps) - 1
    xs, ys = (np.arange(-((first - v[0]) // 2), (v[-1] - last) // 2 + 1) for v in (grid.xs(), grid.ys()))
    begin = 2 * xs[0] + first - grid.x0
    rows = sum(a * grid.values[..., begin + i :: 2][..., : len(xs)] for i, a in enumerate(taps))
    begin = 2 * ys[0] + first - grid.y0
    total = sum(a * rows[..., begin + j :: 2, :][..., : len(ys), :] for j, a in enumerate(taps))
    return Grid(total / sum(taps) ** 2, xs[0], ys[0])


def up(grid, even, odd):
    """Twice as many points; `even` and `odd` have the weights of x // 2 + offset, by offset."""
    offsets = sorted({*even, *odd})
    xs, ys = (np.arange(2 * (v[0] - offsets[0]), 2 * (v[-1] - offsets[-1]) + 2) for v in (grid.xs(), grid.ys()))
    total = 0
    for j in offsets:
        for i in offsets:
            wx = np.where(xs % 2, odd.get(i, 0), even.get(i, 0))
            wy = np.where(ys % 2, odd.get(j, 0), even.get(j, 0))
            total = total + wy[:, None] * wx * grid.at(xs // 2 + i, ys // 2 + j)
    return Grid(total, xs[0], ys[0])


LINEAR = {-1: 0.25, 0: 0.75}, {0: 0.75, 1: 0.25}
"""Between the centres of points: for even and odd x."""


@pytest.mark.parametrize(("w", "h"), SIZES)
class TestPyramids:
    def test_machado_blur(self, w, h):
        data = np.random.default_rng(1).random((1, h + 2, w + 2), dtype=np.float32)
        rows = (data[..., :-2] + data[..., 1:-1] + data[..., 2:]) / 3
        expected = (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / 3
        result = run("machado_blur", {"input": data}, ((6, w), (-2, h), (0, 1)), (5, -3, 0))
        assert np.allclose(result, expected, rtol=0, atol=1e-6)

    def test_machado_interpolation(self, w, h):
        data = np.random.default_rng(2).uniform(0.1, 1, (4, h, w)).astype(np.float32)
        result = run("machado_interpolation", {"input": data}, ((0, w), (0, h), (0, 3)))
        finest = edged(data, (0, 0), 128)
        levels = [Grid(finest.values * finest.values[3], finest.x0, finest.y0)]
        for level in range(1, 5):
            above = levels[-1]
            if level == 4:  # read no further than this
                xs, ys = np.clip(above.xs(), 0, w // 16), np.clip(above.ys(), 0, h // 16)
                above = Grid(above.at(xs, ys), above.x0, above.y0)
            levels.append(down(above, (1, 2, 1), -1))
        out = levels.pop()
        for level in reversed(levels):
            here, above, *at = together(level, up(out, {0: 1}, {0: 0.5, 1: 0.5}))
            out = Grid(here + (1 - here[3]) * above, *at)
        expected = out.at(np.arange(w), np.arange(h))
        assert np.allclose(result, (expected / expected[3])[:3], rtol=0, atol=1e-5)

    @pytest.mark.parametrize("low", [(0, 0), (-5, 3)])
    def test_pyramid_blend(self, w, h, low):
        rng = np.random.default_rng(3)
        mask = (np.add.outer(np.arange(h), np.arange(w)) % 17 < 9).astype(np.float32)
        given = {n: rng.random((3, h, w), dtype=np.float32) for n in ("image1", "image2")} | {"mask": mask}
        result = run("pyramid_blend", given, ((low[0], w), (low[1], h), (0, 3)), (*low, 0))
        pyramids = [[edged(given[n], low, 128)] for n in ("image1", "image2", "mask")]
        for pyramid in pyramids:
            for _ in range(3):
                pyramid.append(down(pyramid[-1], (1, 4, 6, 4, 1), -2))

        def finer(grid):
            return up(grid, {-1: 1 / 8, 0: 6 / 8, 1: 1 / 8}, {0: 0.5, 1: 0.5})

        one, two, m, *at = together(*(p[3] for p in pyramids))
        out = Grid(one * m + two * (1 - m), *at)
        for level in (2, 1, 0):
            coarser = [finer(p[level + 1]) for p in pyramids[:2]]
            one, two, m, one_up, two_up, out_up, *at = together(*(p[level] for p in pyramids), *coarser, finer(out))
            out = Grid(out_up + (one - one_up) * m + (two - two_up) * (1 - m), *at)
        expected = out.at(np.arange(low[0], low[0] + w), np.arange(low[1], low[1] + h))
        assert np.allclose(result, expected, rtol=0, atol=1e-5)

    def test_local_laplacian(self, w, h):
        levels, alpha, beta = 3, 0.3, 0.8
        data = np.random.default_rng(4).integers(0, 65536, (3, h, w)).astype(np.uint16)
        data = np.uint16(data // 4 + 12000 * (np.arange(w) > w // 2))
        region = ((0, w), (0, h), (0, 3))
        result = run("local_laplacian", {"input": data}, region, levels=levels, alpha=alpha, beta=beta)

        colours = edged(data, (0, 0), 512)
        colours.values /= 65535
        gray = np.tensordot([0.299, 0.587, 0.114], colours.values, 1)
        k = np.arange(levels)[:, None, None]
        place = np.clip((gray * (levels - 1) * 256).astype(int), 0, (levels - 1) * 256) / 256 - k
        curved = beta * (gray - k / (levels - 1)) + k / (levels - 1) + alpha * place * np.exp(-(place**2) / 2)
        gaussian, processed = ([Grid(v, colours.x0, colours.y0)] for v in (gray, curved))
        for pyramid in (gaussian, processed):
            for _ in range(7):
                pyramid.append(down(pyramid[-1], (1, 3, 3, 1), -1))
        out = None
        for level in range(7, -1, -1):
            if out is None:
                v, detail, *at = together(gaussian[level], processed[level])
                above = 0
            else:
                coarser = up(processed[level + 1], *LINEAR)
                v, fine, coarse, above, *at = together(gaussian[level], processed[level], coarser, up(out, *LINEAR))
                detail = fine - coarse
            v = v * (levels - 1)
            low = np.clip(v.astype(int), 0, levels - 2)
            here, next_ = (np.take_along_axis(detail, (low + n)[None], 0)[0] for n in (0, 1))
            out = Grid(above + (1 - (v - low)) * here + (v - low) * next_, *at)
        xs, ys = np.arange(w), np.arange(h)
        colours, gray = colours.at(xs, ys), Grid(gray, colours.x0, colours.y0).at(xs, ys)
        expected = np.clip(out.at(xs, ys) * (colours + 0.01) / (gray + 0.01), 0, 1) * 65535
        # Next to a whole number a value may be cut to either, an entry of the table that is looked up as well.
        difference = np.abs(result - np.floor(expected))
        assert np.mean(difference > 1) < 2e-3
        assert difference.max() <= 2 * 65535 * alpha / 256 + 1

    def test_lens_blur(self, w, h):
        slices, focus, scale, samples = 6, 2, 0.8, 7
        rng = np.random.default_rng(5)
        left = rng.integers(0, 256, (3, h, w)).astype(np.uint8)
        right = np.concatenate([np.roll(left[:, : h // 2], 8, -1), np.roll(left[:, h // 2 :], 2, -1)], 1)
        params = {"slices": slices, "focus_depth": focus, "blur_radius_scale": scale, "aperture_samples": samples}
        result = run("lens_blur", {"left": left, "right": right}, ((0, w), (0, h), (0, 3)), **params)

        reach = int(max(slices - focus, focus) * scale)
        margin = 2 * reach + 4
        xs, ys = np.arange(-margin, w + margin), np.arange(-margin, h + margin)
        column = np.clip(ys, 0, h - 1)[:, None]

        def away(shift):
            other = right[:, column, np.clip(xs + shift, 0, w - 1)].astype(float)
            return np.abs(left[:, column, np.clip(xs, 0, w - 1)] - other)

        cost = np.stack([(np.minimum(away(2 * z), away(2 * z + 1)) ** 2).sum(0) for z in range(slices)])
        confidence = (cost**2).mean(0) - cost.mean(0) ** 2
        push = [Grid(np.stack([cost * confidence, np.broadcast_to(confidence, cost.shape)]), xs[0], ys[0])]
        for level in range(1, 8):
            here = down(push[-1], (1, 3, 3, 1), -1)
            here = Grid(here.at(np.arange(max(w >> level, 1)), np.arange(max(h >> level, 1))), 0, 0)
            ends = [np.arange(-40, n + 40) for n in here.values.shape[:-3:-1]]  # seen beyond by its edges
            inside = [np.clip(v, 0, n - 1) for v, n in zip(ends, here.values.shape[:-3:-1], strict=True)]
            push.append(Grid(here.at(*inside), -40, -40))
        pull = push.pop()
        for here in reversed(push):
            above, own, *at = together(up(pull, *LINEAR), here)
            pull = Grid((above + own) / 2, *at)
        sums, weight = pull.values
        with np.errstate(invalid="ignore"):  # 0 / 0 where all costs are one
            depth = Grid(np.argmin(sums / weight, 0), pull.x0, pull.y0)

        blurs = Grid(np.abs(depth.values - focus) * scale, depth.x0, depth.y0)
        xs, ys = np.arange(w), np.arange(h)
        near = range(-reach, reach + 1)
        worst = np.max([blurs.at(xs + i, ys + j) for i in near for j in near], axis=0)
        total, count = left.astype(float), np.ones((h, w))
        for z in range(samples):
            i, j = (
                (((random_float((xs, ys[:, None], np.array(z), np.array(n))) - 0.5) * 2 * worst).astype(int))
                for n in (0, 1)
            )
            px, py = xs + i, ys[:, None] + j
            blur, d = (g.values[py - g.y0, px - g.x0] for g in (blurs, depth))
            r = i * i + j * j
            taken = ((r < blurs.at(xs, ys) ** 2) | (d < depth.at(xs, ys))) & (r < blur**2)
            total = total + taken * left[:, np.clip(py, 0, h - 1), np.clip(px, 0, w - 1)]
            count = count + taken
        different = np.abs(result - total / count / 255) > 1e-5
        assert different.mean() < 5e-3  # where two costs are all but equal


class TestNetwork:
    @pytest.mark.parametrize(("w", "h"), SIZES)
    @pytest.mark.parametrize(("layers", "channels"), [(2, 3), (4, 5)])
    def test_shallow_ones(self, w, h, layers, channels):
        self.check(load(vdsr(layers, channels)), layers, channels, w, h)

    @pytest.mark.parametrize(("w", "h"), [(1, 1), (9, 6)])
    def test_the_whole(self, w, h):
        self.check(pipelines.load("vdsr"), 20, 64, w, h)

    def check(self, pipeline, layers, channels, w, h):
        from scipy.signal import correlate  # all of SciPy's statistics come with it: only where it is called

        given = weights(layers, channels, 6)
        image = np.random.default_rng(7).random((h, w), dtype=np.float32)
        region = ((-2, w), (3, h))
        images = given | {"image": image}
        found = {
            i.name: Image(images[i.name], (-2, 3) if i.name == "image" else (0,) * len(i.dims)) for i in pipeline.inputs
        }
        (result,) = interpret(pipeline, found, {"last_bias": 0.25}, {"output": region})["output"]
        planes = image[None].astype(float)
        kernels = [given["first_weights"][:, None], *given["weights"][: layers - 2]]
        for kernel, biases in zip(kernels, given["biases"], strict=True):
            planes = np.pad(planes, ((0, 0), (1, 1), (1, 1)))
            planes = np.stack([correlate(planes, k, "valid")[0] + b for k, b in zip(kernel, biases, strict=True)])
            planes = np.maximum(planes, 0)
        detail = correlate(np.pad(planes, ((0, 0), (1, 1), (1, 1))), given["last_weights"], "valid")[0] + 0.25
        assert np.allclose(result, image + detail, rtol=0, atol=1e-4 * np.abs(detail).max())
        assert np.abs(detail).max() > 0.01
