"""The helper functions of kernels: a program has those that it uses."""

from __future__ import annotations

import re

TYPES = """\
typedef long int64_t; /* of indices */
"""

_INDICES = {
    "ts_min": "long ts_min(long a, long b) { return a < b ? a : b; }\n",
    "ts_max": "long ts_max(long a, long b) { return a > b ? a : b; }\n",
    "ts_last_vector": """\
/* Where the last vector of a row starts: at `fits`, or a step before `first` where not even one fits. */
long ts_last_vector(long first, long fits, long step) {
    return fits < first ? first - step : fits;
}
""",
    "ts_floor_div": """\
/* Quotient and remainder: the remainder is never negative, both are 0 where the divisor is. */
long ts_floor_div(long a, long b) {
    if (b == 0 || b == -1) return b == 0 ? 0 : (long)(0 - (ulong)a);
    const long q = a / b;
    return a - q * b >= 0 ? q : b > 0 ? q - 1 : q + 1;
}
""",
    "ts_remainder": """\
long ts_remainder(long a, long b) {
    if (b == 0 || b == -1) return 0;
    const long r = a % b;
    return r >= 0 ? r : b > 0 ? r + b : r - b;
}
""",
}

_OF_INTEGERS = {
    "div": """\
T ts_div_T(T a, T b) {
    if (b == 0) return 0;
    if (SIGNED && b == (T)-1) return (T)(0 - (ulong)a);
    const T q = (T)(a / b);
    return (T)(a - q * b) >= 0 ? q : b > 0 ? q - 1 : q + 1;
}
""",
    "mod": """\
T ts_mod_T(T a, T b) {
    if (b == 0 || (SIGNED && b == (T)-1)) return 0;
    const T r = (T)(a % b);
    return (T)(r >= 0 ? r : b > 0 ? r + b : r - b);
}
""",
    "shift": """\
/* a << n; a negative n shifts right. */
T ts_shift_T(T a, long n) {
    if (n >= 0) return n < BITS ? (T)((ulong)a << n) : 0;
    return n > -BITS ? (T)(a >> -n) : SIGNED && a < 0 ? (T)-1 : 0;
}
""",
    "up": """\
/* a times 2^n, as the nearest T. */
T ts_up_T(T a, long n) {
    for (; n > 0 && a != 0; n--) {
        if (a > LAST / 2 || a < FIRST / 2) return a > 0 ? LAST : FIRST;
        a = (T)(a * 2);
    }
    return a;
}
""",
    "rounding_shift": """\
/* floor(a / 2^n + 1/2) as the nearest T; a negative n multiplies. */
T ts_rounding_shift_T(T a, long n) {
    if (n <= 0) return ts_up_T(a, -n);
    if (n >= BITS) return !SIGNED && n == BITS ? (T)(a >> (BITS - 1)) : 0;
    return (T)((a >> n) + ((a >> (n - 1)) & 1));
}
""",
    "mul_shift": """\
/* floor(a b / 2^n) as the nearest T; a negative n multiplies. */
T ts_mul_shift_T(T a, T b, long n) {
    W high = mul_hi((W)a, (W)b);
    ulong low = (ulong)a * (ulong)b;
    if (n > 127) n = 127;
    if (n >= 64) {
        low = (ulong)(high >> (n - 64));
        high = SIGNED && high < 0 ? (W)-1 : 0;
    } else if (n > 0) {
        low = low >> n | (ulong)high << (64 - n);
        high >>= n;
    }
    const W rest = SIGNED && (low >> 63) ? (W)-1 : 0; /* what the upper half is where 64 bits suffice */
    if (high != rest) return SIGNED && high < 0 ? FIRST : LAST;
    const W product = (W)low;
    if (product > LAST || product < FIRST) return product > LAST ? LAST : FIRST;
    return ts_up_T((T)product, n < 0 ? -n : 0);
}
""",
}

_CLAMPED = """\
/* The vector at `at` of a row, of which the elements from `first` to `last` exist. */
TN ts_clamped_TN(global const T *row, long at, long first, long last) {
    if (at >= first && at + (N - 1) <= last) return vloadN(0, row + at);
    T lanes[N];
#pragma unroll 1
    for (int n = 0; n < N; n++) lanes[n] = row[at + n < first ? first : at + n > last ? last : at + n];
    return vloadN(0, lanes);
}
"""

_MIX = """\
/* One step of the hash behind random(): MurmurHash3's finaliser of h ^ a. */
uintN ts_mixN(uintN h, uintN a) {
    h ^= a;
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    return h ^ (h >> 16);
}
"""

_OPAQUE = """\
/* The same, as compilers cannot know: it has been rounded, whatever is computed of it. */
T ts_opaque_T(T a) {
    volatile T rounded = a;
    return rounded;
}
"""

_LERP = """\
/* The integer nearest to (a (top - w) + b w) / top, top odd: no ties. The product has two words; by a `top` of 64 bits
   its quotient is the upper one, but for what the sum of both has more. */
ulong ts_lerp(ulong a, ulong b, int is_signed, ulong w, ulong top) {
    const int up = is_signed ? (long)b > (long)a : b > a;
    const ulong apart = up ? b - a : a - b;
    ulong step, rest;
    if (top == 0xFFFFFFFFFFFFFFFFul) {
        const ulong high = mul_hi(apart, w), low = apart * w;
        step = high;
        rest = high + low;
        if (rest < low) {
            rest += 1;
            step += 1;
        }
        if (rest == top) {
            rest = 0;
            step += 1;
        }
    } else {
        step = apart * w / top;
        rest = apart * w % top;
    }
    step += rest > top / 2;
    return up ? a + step : a - step;
}
"""


def _integers() -> dict[str, str]:
    """The functions of integers, of every type."""
    found = {}
    for bits, name in ((8, "char"), (16, "short"), (32, "int"), (64, "long")):
        for kind in ("", "u"):
            t = kind + name
            first = "0" if kind else f"{_LIMITS[name]}_MIN"
            last = f"{kind.upper()}{_LIMITS[name]}_MAX"
            words = {"SIGNED": str(int(not kind)), "BITS": str(bits), "FIRST": first, "LAST": last, "W": f"{kind}long"}
            for f, text in _OF_INTEGERS.items():
                for word, meaning in words.items():
                    text = re.sub(rf"\b{word}\b", meaning, text)
                found[f"ts_{f}_{t}"] = re.sub(r"\bT\b", t, text.replace("_T(", f"_{t}("))
    return found


def _clamped_loads() -> dict[str, str]:
    """Clamped loads of vectors, of every type."""
    found = {}
    for t in (*(sign + name for name in _LIMITS for sign in ("", "u")), "float", "double"):
        for n in (2, 4, 8, 16):
            text = re.sub(r"\bTN\b", f"{t}{n}", _CLAMPED.replace("_TN(", f"_{t}{n}(").replace("vloadN", f"vload{n}"))
            found[f"ts_clamped_{t}{n}"] = re.sub(r"\bN\b", str(n), re.sub(r"\bT\b", t, text))
    return found


_LIMITS = {"char": "CHAR", "short": "SHRT", "int": "INT", "long": "LONG"}
HELPERS = {
    **_INDICES,
    **_integers(),
    **_clamped_loads(),
    **{f"ts_mix{n}": _MIX.replace("N", n) for n in ("", "2", "4", "8", "16")},
    **{
        f"ts_opaque_{t}": re.sub(r"\bT\b", t, _OPAQUE.replace("_T(", f"_{t}("))
        for t in (f"{kind}{n}" for kind in ("float", "double") for n in ("", "2", "4", "8", "16"))
    },
    "ts_lerp": _LERP,
}


def helpers_used(code: str) -> str:
    """The helper functions that `code` mentions, and those that these do, in a fixed order."""
    used: set[str] = set()
    while code:
        found = {name for name in re.findall(r"\bts_[a-z0-9_]+", code) if name in HELPERS} - used
        used |= found
        code = "".join(HELPERS[name] for name in found)
    return "\n".join(text for name, text in HELPERS.items() if name in used)
