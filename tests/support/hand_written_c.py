"""Pipelines with C written by hand to the ABI of generated code: for tests of what compiles and runs it."""

from __future__ import annotations

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.ir.pipeline.expressions import Access, Binary, Cast, Const, Expr, ParamRef, Var
from tilesmith.scheduler.ir.pipeline.pipeline import Boundary, Input, Param, Pipeline, Stage
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32, UINT8, UINT16

HEADER = """#include <stdint.h>
typedef struct {
    void *data;
    int32_t dims;
    int32_t min[5], extent[5];
    int64_t stride[5];
} tilesmith_buffer;
"""

# twice(x, y) = gain * (image(x, y) + image(x + 1, y))
PAIRS = r"""
#include "tiny.h"
int32_t tilesmith_tiny(tilesmith_buffer *in, float gain, tilesmith_buffer *out)
{
    if (!in || !out)
        return 2;
    if (!in->data || !out->data || out->min[0] < in->min[0]
        || out->min[0] + out->extent[0] + 1 > in->min[0] + in->extent[0] || out->min[1] < in->min[1]
        || out->min[1] + out->extent[1] > in->min[1] + in->extent[1]) {
        in->min[0] = out->min[0];
        in->extent[0] = out->extent[0] + 1;
        in->min[1] = out->min[1];
        in->extent[1] = out->extent[1];
        return 1;
    }
    const float *source = in->data;
    float *target = out->data;
#pragma omp parallel for
    for (int32_t y = 0; y < out->extent[1]; y++)
        for (int32_t x = 0; x < out->extent[0]; x++) {
            int64_t at = (x + out->min[0] - in->min[0]) * in->stride[0];
            at += (y + out->min[1] - in->min[1]) * in->stride[1];
            target[x * out->stride[0] + y * out->stride[1]] = gain * (source[at] + source[at + in->stride[0]]);
        }
    return 0;
}
int32_t tilesmith_tiny_argv(void **a) { return tilesmith_tiny(a[0], *(float *)a[1], a[2]); }
"""

X, Y, C = Var("x"), Var("y"), Var("c")


def offset(v: Expr, by: int) -> Expr:
    return Binary("+", v, Const(by, INT32), INT32)


def pairs(boundary: Boundary | None = None, storage: tuple[str, str] = ("x", "y")) -> Pipeline:
    """The pipeline that PAIRS computes."""
    read = [Access("image", (offset(X, by), Y), 0, FLOAT32) for by in (0, 1)]
    value = Binary("*", ParamRef("gain", FLOAT32), Binary("+", read[0], read[1], FLOAT32), FLOAT32)
    return Pipeline(
        name="tiny",
        doc="",
        params=(Param("gain", FLOAT32, default=1.0, min=0.0, max=100.0),),
        inputs=(Input("image", FLOAT32, ("x", "y"), boundary, storage),),
        stages=(Stage("twice", ("x", "y"), (value,), (), None, storage),),
        outputs=("twice",),
        estimates=(("twice", ((0, 64), (0, 32))),),
    )


def source(code: str = PAIRS, flags: tuple[str, ...] = ("-std=gnu11",)) -> CSource:
    return CSource(code, HEADER, "tiny.h", "tilesmith_tiny", flags, ())


def body(statements: str, prelude: str = "") -> CSource:
    """A `tiny` that does `statements` with its buffers `in` and `out` and must return."""
    return source(
        f'#include "tiny.h"\n{prelude}\nint32_t tilesmith_tiny_argv(void **a)\n'
        f"{{ tilesmith_buffer *in = a[0], *out = a[2]; (void)in; (void)out;\n{statements}\n}}\n"
    )


# a = uint8(planes(x, y, 0)), b = (planes + 1, planes * 2): a tuple and two outputs, interleaved storage
TUPLES = r"""
#include "tiny.h"
#define AT(b, t, x, y, c) ((t *)(b)->data)[(x) * (b)->stride[0] + (y) * (b)->stride[1] + (c) * (b)->stride[2]]
int32_t tilesmith_tiny_argv(void **a)
{
    tilesmith_buffer *in = a[0], *first = a[1], *next = a[2], *twice = a[3];
    if (!in->data)
        return 1;
    for (int32_t c = 0; c < next->extent[2]; c++)
        for (int32_t y = 0; y < next->extent[1]; y++)
            for (int32_t x = 0; x < next->extent[0]; x++) {
                uint16_t v = AT(in, uint16_t, x, y, c);
                AT(next, uint16_t, x, y, c) = v + 1;
                AT(twice, uint16_t, x, y, c) = v * 2;
                if (c == 0)
                    ((uint8_t *)first->data)[x * first->stride[0] + y * first->stride[1]] = (uint8_t)v;
            }
    return 0;
}
"""


def tuples() -> Pipeline:
    """The pipeline that TUPLES computes: interleaved in memory, planar as an array."""
    read = Access("planes", (X, Y, C), 0, UINT16)
    first = Cast(Access("planes", (X, Y, Const(0, INT32)), 0, UINT16), UINT8)
    values = (Binary("+", read, Const(1, UINT16), UINT16), Binary("*", read, Const(2, UINT16), UINT16))
    dims, interleaved = ("x", "y", "c"), ("c", "x", "y")
    return Pipeline(
        name="tuples",
        doc="",
        params=(),
        inputs=(Input("planes", UINT16, dims, None, interleaved),),
        stages=(
            Stage("a", ("x", "y"), (first,), (), None, ("y", "x")),
            Stage("b", dims, values, (), None, interleaved),
        ),
        outputs=("a", "b"),
        estimates=(("a", ((0, 8), (0, 8))), ("b", ((0, 8), (0, 8), (0, 3)))),
    )
