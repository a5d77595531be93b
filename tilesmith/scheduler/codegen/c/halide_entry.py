"""A second entry of generated C, in the words of Halide: a function of `halide_buffer_t`, as Halide's ahead-of-time
compiler makes it.

The struct is declared as `HalideRuntime.h` of Halide 21 has it, unless that was included. The codes that are returned
are its `halide_error_code_t`.
"""

from __future__ import annotations

from dataclasses import replace

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.codegen.c.entry import parameters
from tilesmith.scheduler.ir.loop.program import Program
from tilesmith.scheduler.ir.loop.signature import Argument
from tilesmith.scheduler.ir.pipeline.types import BOOL, ScalarType

TYPES = """\
#if !defined(HALIDE_HALIDERUNTIME_H) && !defined(TILESMITH_HALIDE_BUFFER)
#define TILESMITH_HALIDE_BUFFER
/* As HalideRuntime.h declares them: who includes that, does so ahead of this file. */
struct halide_type_t {
    uint8_t code; /* 0: int, 1: uint, 2: float */
    uint8_t bits;
    uint16_t lanes;
};
typedef struct halide_dimension_t {
    int32_t min, extent, stride; /* strides in elements */
    uint32_t flags;
} halide_dimension_t;
typedef struct halide_buffer_t {
    uint64_t device;
    const struct halide_device_interface_t *device_interface;
    uint8_t *host; /* the element at the mins; NULL, without a device: a bounds query */
    uint64_t flags; /* 1: the host's memory is newer, 2: the device's is */
    struct halide_type_t type;
    int32_t dimensions;
    halide_dimension_t *dim;
    void *padding;
} halide_buffer_t;
#endif
"""

SUPPORT = """\
/* Halide's buffers as ours. The codes are those of halide_error_code_t. */

static int ts_asks(const struct halide_buffer_t *b) { return !b->host && !b->device; }

static int ts_from_halide(const struct halide_buffer_t *b, tilesmith_buffer *own, int dims, int code, int bits) {
    if (!b) return -12; /* buffer_argument_is_null */
    if (b->dimensions != dims || (dims && !b->dim)) return -43; /* bad_dimensions */
    if (!ts_asks(b)) {
        if ((int)b->type.code != code || b->type.bits != bits || b->type.lanes != 1) return -3; /* bad_type */
        if (!b->host) return -34; /* host_is_null */
        if (b->flags & 2) return -44; /* device_dirty_with_no_device_support */
    }
    own->data = b->host;
    own->dims = dims;
    for (int d = 0; d < dims; d++) {
        if (b->dim[d].extent < 0) return -28; /* buffer_extents_negative */
        own->min[d] = b->dim[d].min;
        own->extent[d] = b->dim[d].extent;
        own->stride[d] = b->dim[d].stride;
    }
    return 0;
}

/* What a bounds query has found: the region, dense in the order of storage, and the type. */
static void ts_to_halide(struct halide_buffer_t *b, const tilesmith_buffer *own, const int *order, int code, int bits) {
    if (!ts_asks(b)) return;
    int32_t stride = 1;
    for (int n = 0; n < own->dims; n++) {
        const int d = order[n];
        b->dim[d].min = own->min[d];
        b->dim[d].extent = own->extent[d];
        b->dim[d].stride = stride;
        b->dim[d].flags = 0;
        stride *= own->extent[d];
    }
    *(uint8_t *)&b->type = (uint8_t)code;
    b->type.bits = (uint8_t)bits;
    b->type.lanes = 1;
}
"""


def with_halide_entry(source: CSource, program: Program) -> CSource:
    """The C with one more function, `tilesmith_<pipeline>_halide`, and its declaration in the header."""
    signature = _signature(program, source.entry)
    guard = f"TILESMITH_{program.name.upper()}_HALIDE_H"
    declaration = [
        "",
        f"#ifndef {guard}",
        f"#define {guard}",
        TYPES.rstrip(),
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "/* The same of Halide's buffers: 0, or a code of halide_error_code_t. */",
        f"{signature};",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "#endif",
        "",
    ]
    code = "\n".join([source.code.rstrip(), "", SUPPORT, *_function(program, source.entry, signature), ""])
    return replace(source, code=code, header=source.header + "\n".join(declaration))


def _signature(program: Program, entry: str) -> str:
    own = {t.c_name for t in program.tables}
    parts = [
        f"struct halide_buffer_t *{name}" if t.endswith("*") else f"{t} {name}"
        for t, name in parameters(program)
        if name not in own
    ]
    return f"int {entry}_halide({', '.join(parts)})"


def _function(program: Program, entry: str, signature: str) -> list[str]:
    tables = {t.c_name for t in program.tables}
    passed = [a for a in program.arguments if a.c_name not in tables]
    images = {a.c_name: n for n, a in enumerate(passed)}
    lines = [f"{signature} {{", f"    tilesmith_buffer own[{max(1, len(images))}];", "    int status;"]
    for n, a in enumerate(passed):
        code, bits = _type(a.type)
        lines.append(f"    status = ts_from_halide({a.c_name}, &own[{n}], {len(a.dims)}, {code}, {bits});")
        lines.append("    if (status) return status;")
    asked = " || ".join(f"ts_asks({name})" for name in images) or "0"
    arguments = ", ".join(
        "0" if n in tables else f"&own[{images[n]}]" if t.endswith("*") else n for t, n in parameters(program)
    )
    lines += [
        f"    const int query = {asked};",
        f"    status = {entry}({arguments});",
        "    if (status == TILESMITH_E_REGION && query) {",
        *(f"        {_told(a, n)}" for n, a in enumerate(passed)),
        "        return 0;",
        "    }",
        *(f"    if (status == TILESMITH_OK) {a.c_name}->flags |= 1;" for a in program.arguments if a.output),
        "    switch (status) {",
        "    case TILESMITH_OK: return 0;",
        "    case TILESMITH_E_REGION: return -4; /* access_out_of_bounds */",
        "    case TILESMITH_E_MEMORY: return -11; /* out_of_memory */",
        "    default: return -1; /* generic_error: a param out of its range, an extent of 0, ... */",
        "    }",
        "}",
    ]
    return lines


def _told(a: Argument, n: int) -> str:
    code, bits = _type(a.type)
    order = ", ".join(str(a.dims.index(d)) for d in a.storage) or "0"
    return f"ts_to_halide({a.c_name}, &own[{n}], (const int[]){{{order}}}, {code}, {bits});"


def _type(t: ScalarType) -> tuple[int, int]:
    """Halide's code and bits of an element."""
    if t == BOOL:
        return 1, 1
    return {"int": 0, "uint": 1, "float": 2}[t.kind], t.bits
