"""Motion between two frames."""

from __future__ import annotations

from benchmarks.corpus.registry import Made, Sized, case
from benchmarks.corpus.words import column, cv2, gaussian, gray, k, row, separable, stage, window, x, y
from tilesmith.language import (
    Image,
    Range,
    Stage,
    Term,
    absd,
    argmin,
    clamp,
    floor,
    int16,
    int32,
    lerp,
    rsum,
    select,
    sqrt,
    uint8,
    uint16,
)


def _derivatives(a: Image, b: Image | Stage) -> tuple[Stage, Stage, Stage]:
    ix = stage("ix", (a[x + 1, y] - a[x - 1, y] + b[x + 1, y] - b[x - 1, y]) * 0.25)
    iy = stage("iy", (a[x, y + 1] - a[x, y - 1] + b[x, y + 1] - b[x, y - 1]) * 0.25)
    return ix, iy, stage("it", b[x, y] - a[x, y])


@case()
def lucas_kanade() -> Made:
    """Lucas and Kanade's flow with windows of 9 x 9."""
    a, b = gray("a"), gray("b")
    ix, iy, it = _derivatives(a, b)
    names = {"xx": (ix, ix), "xy": (ix, iy), "yy": (iy, iy), "xt": (ix, it), "yt": (iy, it)}
    s = {}
    for name, (u, v) in names.items():
        s[name] = separable(f"s{name}", stage(f"p{name}", u[x, y] * v[x, y]), [1] * 9)
    det = stage("det", 1.0 / (s["xx"][x, y] * s["yy"][x, y] - s["xy"][x, y] ** 2 + 1e-4))
    du = (s["xy"][x, y] * s["yt"][x, y] - s["yy"][x, y] * s["xt"][x, y]) * det[x, y]
    dv = (s["xy"][x, y] * s["xt"][x, y] - s["xx"][x, y] * s["yt"][x, y]) * det[x, y]
    return stage("u", du), stage("v", dv)


@case(x=1280, y=720)
def horn_schunck() -> Made:
    """Eight steps of Horn and Schunck's flow."""
    a, b = gray("a"), gray("b")
    ix, iy, it = _derivatives(a, b)
    norm = stage("norm", 1.0 / (0.01 + ix[x, y] ** 2 + iy[x, y] ** 2))
    mean = [[1 / 12, 1 / 6, 1 / 12], [1 / 6, 0, 1 / 6], [1 / 12, 1 / 6, 1 / 12]]
    u = stage("u0", -ix[x, y] * it[x, y] * norm[x, y])
    v = stage("v0", -iy[x, y] * it[x, y] * norm[x, y])
    for step in range(1, 8):
        mu, mv = stage(f"mu{step}", window(u, mean)), stage(f"mv{step}", window(v, mean))
        off = stage(f"off{step}", (ix[x, y] * mu[x, y] + iy[x, y] * mv[x, y] + it[x, y]) * norm[x, y])
        u = stage(f"u{step}", mu[x, y] - ix[x, y] * off[x, y])
        v = stage(f"v{step}", mv[x, y] - iy[x, y] * off[x, y])
    return u, v


@case(x=160, y=90, k=81)
def block_matching() -> Made:
    """For each block of 8 x 8 the displacement up to 4 with the least sum of absolute differences."""
    a, b = gray("a", uint8), gray("b", uint8)
    p, q, r = Range("p", 0, 8), Range("q", 0, 8), Range("r", 0, 81)
    there = b[8 * x + p + k % 9 - 4, 8 * y + q + k // 9 - 4]
    cost = stage("cost", rsum(int32(absd(a[8 * x + p, 8 * y + q], there)), q, p), x, y, k)
    best = stage("best", argmin(cost[x, y, r], r))
    found = stage("dx", int16(best[x, y][0] % 9 - 4)), stage("dy", int16(best[x, y][0] // 9 - 4))
    return (*found, Sized(a, 8), Sized(b, 8))


@case()
def polynomial_expansion() -> Made:
    """The local quadratic of each pixel, as Farnebäck's flow begins: six separable moments of 7 x 7."""
    a, g = gray(), gaussian(1.5, 3)
    g1, g2 = [w * (d - 3) for d, w in enumerate(g)], [w * (d - 3) ** 2 for d, w in enumerate(g)]
    r0, r1, r2 = (stage(f"r{d}", row(a, w)) for d, w in enumerate((g, g1, g2)))
    return (
        stage("b1", column(r0, g)), stage("bx", column(r1, g)), stage("by", column(r0, g1)),
        stage("bxx", column(r2, g)), stage("bxy", column(r1, g1)), stage("byy", column(r0, g2)),
    )  # fmt: skip


def _sampled(f: Image | Stage, at_x: Term, at_y: Term, reach: int) -> Term:
    """The value between pixels, up to `reach` from the point."""
    fx, fy = floor(at_x), floor(at_y)
    left = clamp(int32(fx), -reach, reach)
    up = clamp(int32(fy), -reach, reach)
    one = lerp(f[x + left, y + up], f[x + left + 1, y + up], clamp(at_x - fx, 0.0, 1.0))
    two = lerp(f[x + left, y + up + 1], f[x + left + 1, y + up + 1], clamp(at_x - fx, 0.0, 1.0))
    return lerp(one, two, clamp(at_y - fy, 0.0, 1.0))


@case()
def warp_by_flow() -> Made:
    """A frame sampled where a flow says, and its difference to another."""
    a, b, u, v = gray("a"), gray("b"), gray("u"), gray("v")
    warped = stage("warped", _sampled(b, u[x, y] * 16.0 - 8.0, v[x, y] * 16.0 - 8.0, 16))
    return stage("apart", abs(warped[x, y] - a[x, y]))


@case(x=1280, y=720)
def tv_l1_step() -> Made:
    """A step of the flow of TV-L1: the threshold, the divergence of the dual, and the dual anew."""
    names = ("u", "v", "rho", "gx", "gy", "pu1", "pu2", "pv1", "pv2")
    u, v, rho, gx, gy, pu1, pu2, pv1, pv2 = (gray(name) for name in names)
    size = stage("size", gx[x, y] ** 2 + gy[x, y] ** 2 + 1e-6)
    part = stage("part", clamp(-rho[x, y] / size[x, y], -0.15, 0.15))
    results = []
    for name, f, g, p1, p2 in (("u", u, gx, pu1, pu2), ("v", v, gy, pv1, pv2)):
        div = p1[x, y] - p1[x - 1, y] + p2[x, y] - p2[x, y - 1]
        new = stage(f"{name}_new", f[x, y] + part[x, y] * g[x, y] + 0.3 * div)
        dx, dy = stage(f"{name}dx", new[x + 1, y] - new[x, y]), stage(f"{name}dy", new[x, y + 1] - new[x, y])
        scale = stage(f"{name}scale", 1.0 / (1.0 + 0.8 * sqrt(dx[x, y] ** 2 + dy[x, y] ** 2)))
        results += [new, stage(f"{name}q1", (p1[x, y] + 0.8 * dx[x, y]) * scale[x, y])]
        results.append(stage(f"{name}q2", (p2[x, y] + 0.8 * dy[x, y]) * scale[x, y]))
    return tuple(results)


@case()
def motion_compensated_mean() -> Made:
    """The mean of three frames where they are alike, the middle one elsewhere."""
    a, b, d = gray("a", uint8), gray("b", uint8), gray("d", uint8)
    found = []
    for name, f in (("one", a), ("other", d)):
        apart = stage(f"apart_{name}", uint16(absd(f[x, y], b[x, y])))
        near = separable(f"near_{name}", apart, [1] * 5)
        found.append(stage(f"use_{name}", select(near[x, y] < 400, f[x, y], b[x, y])))
    return stage("mean", uint8((uint16(found[0][x, y]) + 2 * uint16(b[x, y]) + uint16(found[1][x, y]) + 2) >> 2))


@case(lambda a, b: cv2.absdiff(a, b))
def frame_difference() -> Made:
    """The absolute difference of two frames of bytes."""
    a, b = gray("a", uint8), gray("b", uint8)
    return stage("apart", absd(a[x, y], b[x, y]))
