"""Small pipelines of stages with updates, built from expressions directly."""

from support.small_pipelines import E, F, clamp, exp, pipeline, stage, x, y

from tilesmith.scheduler.ir.pipeline.expressions import Cast, Const, RVar, Var
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Update
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32

i, r, s, z = (E(Var(n)) for n in "irsz")


def variable(name: str, lo: int, extent: int | E) -> RVar:
    return RVar(name, Const(lo, INT32), extent.e if isinstance(extent, E) else Const(extent, INT32))


def update(at: tuple[E, ...], value: E, *domain: RVar) -> Update:
    return Update(domain, None, tuple(a.e for a in at), (value.e,))


def level(e: E) -> E:
    """A place that data decides: 0 to 7."""
    return clamp(E(Cast((e * 8.0).e, INT32)), 0, 7)


def histograms(size: tuple[int, int] = (24, 18)) -> Pipeline:
    """A histogram of every 4x4 points over 8 levels (z is not pure), read at its neighbours."""
    at = level(F("input")(x * 4 + r, y * 4 + s))
    count = update((x, y, at), F("hist")(x, y, at) + 1.0, variable("r", 0, 4), variable("s", 0, 4))
    hist = stage("hist", "xyz", E(Const(0.0, FLOAT32)), (count,))
    out = stage("out", "xy", F("hist")(x, y, 3) + F("hist")(x, y + 1, level(F("input")(x, y))))
    return pipeline("histograms", [hist, out], {"out": size})


def scans(size: tuple[int, int] = (21, 17)) -> Pipeline:
    """Sums down the columns (y is not pure), read at two rows."""
    down = update((x, r), F("sums")(x, r) + F("sums")(x, r - 1) * 0.5, variable("r", 1, size[1]))
    sums = stage("sums", "xy", exp(F("input")(x, y)), (down,))
    out = stage("out", "xy", F("sums")(x, y) * F("sums")(x + 1, y + 1))
    return pipeline("scans", [sums, out], {"out": size})
