"""The algebra that compilers have, as rules of the same form as those of users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilesmith.scheduler.rewrites.expression_rules.rule import Exactness, Example, RuleText


def _rule(
    name: str,
    drawing: str,
    example: str,
    type: str = "float32",
    exact: Exactness = "exact",
    where: Sequence[str] = (),
) -> RuleText:
    match, _, result = (side.strip() for side in drawing.partition("->"))
    before, _, after = (side.strip() for side in example.partition("->"))
    return RuleText(name, match, result, exact, tuple(where), Example(before, after, type))


_INTEGERS = ("type(?a) is integer",)
_POWER = ("?k is constant", "?k > 1", "?k & (?k - 1) == 0")
_WIDER = ("type(?T) is type(?a)", "type(?U) is integer", "type(?U) holds type(?a)", "bits(?U) > bits(?a)")

SUMS: Final = (
    _rule("factor_common", "?a * ?k + ?b * ?k -> (?a + ?b) * ?k", "u * 3 + v * 3 -> (u + v) * 3", exact="rounding"),
    _rule("factor_difference", "?a * ?k - ?b * ?k -> (?a - ?b) * ?k", "u * w - v * w -> (u - v) * w", exact="rounding"),
    _rule("factor_quotient", "?a / ?k + ?b / ?k -> (?a + ?b) / ?k", "u / w + v / w -> (u + v) / w", exact="rounding"),
    _rule("distribute", "(?a + ?b) * ?k -> ?a * ?k + ?b * ?k", "(u + v) * 3 -> u * 3 + v * 3", exact="rounding"),
    _rule(
        "distribute_difference", "(?a - ?b) * ?k -> ?a * ?k - ?b * ?k", "(u - v) * w -> u * w - v * w", exact="rounding"
    ),
    _rule("associate_sum", "?a + (?b + ?c) -> ?a + ?b + ?c", "u + (v + w) -> u + v + w", exact="rounding"),
    _rule("associate_product", "?a * (?b * ?c) -> ?a * ?b * ?c", "u * (v * w) -> u * v * w", exact="rounding"),
    _rule("nest_sum", "?a + ?b + ?c -> ?a + (?b + ?c)", "u + v + w -> u + (v + w)", exact="rounding"),
    _rule("nest_product", "?a * ?b * ?c -> ?a * (?b * ?c)", "u * v * w -> u * (v * w)", exact="rounding"),
    _rule("add_difference", "?a + (?b - ?c) -> ?a + ?b - ?c", "u + (v - w) -> u + v - w", exact="rounding"),
    _rule("subtract_sum", "?a - (?b + ?c) -> ?a - ?b - ?c", "u - (v + w) -> u - v - w", exact="rounding"),
    _rule("commute_sum", "?a + ?b -> ?b + ?a", "u + v -> v + u"),
    _rule("commute_product", "?a * ?b -> ?b * ?a", "u * v -> v * u"),
    _rule("add_zero", "?a + 0 -> ?a", "u + 0 -> u", exact="rounding"),
    _rule("subtract_zero", "?a - 0 -> ?a", "u - 0 -> u"),
    _rule("subtract_from_zero", "0 - ?a -> -?a", "0 - u -> -u", "int16", exact="rounding"),
    _rule("subtract_self", "?a - ?a -> 0", "u - u -> 0", exact="rounding"),
    _rule("add_negative", "?a + -?b -> ?a - ?b", "u + -v -> u - v"),
    _rule("subtract_negative", "?a - -?b -> ?a + ?b", "u - -v -> u + v"),
    _rule("negate_twice", "--?a -> ?a", "--u -> u"),
    _rule("negate_difference", "-(?a - ?b) -> ?b - ?a", "-(u - v) -> v - u", exact="rounding"),
    _rule("double", "?a + ?a -> ?a * 2", "u + u -> u * 2"),
    _rule("cancel_addend", "?a + ?b - ?b -> ?a", "u + v - v -> u", "uint8", exact="rounding"),
    _rule("cancel_subtrahend", "?a - ?b + ?b -> ?a", "u - v + v -> u", "uint8", exact="rounding"),
)

PRODUCTS: Final = (
    _rule("multiply_by_one", "?a * 1 -> ?a", "u * 1 -> u"),
    _rule("multiply_by_zero", "?a * 0 -> 0", "u * 0 -> 0", "uint8", where=_INTEGERS),
    _rule("multiply_by_minus_one", "?a * -1 -> -?a", "u * -1 -> -u"),
    _rule("multiply_negative", "?a * -?b -> -(?a * ?b)", "u * -v -> -(u * v)"),
    _rule("multiply_negatives", "-?a * -?b -> ?a * ?b", "-u * -v -> u * v"),
    _rule("square", "?a ** 2 -> ?a * ?a", "u ** 2 -> u * u"),
    _rule("cube", "?a ** 3 -> ?a * (?a * ?a)", "u ** 3 -> u * (u * u)"),
    _rule("fourth_power", "?a ** 4 -> ?a * ?a * (?a * ?a)", "u ** 4 -> u * u * (u * u)"),
    _rule("divide_by_one", "?a / 1 -> ?a", "u / 1 -> u"),
    _rule("floor_divide_by_one", "?a // 1 -> ?a", "u // 1 -> u", "int32", where=_INTEGERS),
    _rule("remainder_of_one", "?a % 1 -> 0", "u % 1 -> 0", "int32", where=_INTEGERS),
    _rule("remainder_twice", "?a % ?k % ?k -> ?a % ?k", "u % v % v -> u % v", "int32", where=_INTEGERS),
    _rule(
        "divide_twice",
        "?a // ?j // ?k -> ?a // (?j * ?k)",
        "u // 3 // 5 -> u // 15",
        "int32",
        where=(
            *_INTEGERS,
            "?j is constant",
            "?k is constant",
            "?j > 0",
            "?k > 0",
            "?j * ?k // ?k == ?j",
            "?j * ?k > 0",
        ),
    ),
    _rule("divide_quotient", "?a / ?b / ?c -> ?a / (?b * ?c)", "u / v / w -> u / (v * w)", exact="rounding"),
    _rule("divide_by_quotient", "?a / (?b / ?c) -> ?a * ?c / ?b", "u / (v / w) -> u * w / v", exact="rounding"),
    _rule("divide_by_two", "?a / 2 -> ?a * 0.5", "u / 2 -> u * 0.5"),
    _rule(
        "divide_by_constant",
        "?a / ?k -> ?a * (1 / ?k)",
        "u / 8 -> u * 0.125",
        exact="rounding",
        where=("?k is constant", "?k != 0"),
    ),
    _rule("multiply_reciprocal", "?a * (1 / ?b) -> ?a / ?b", "u * (1 / v) -> u / v", exact="rounding"),
    _rule("multiply_quotient", "?a * (?b / ?c) -> ?a * ?b / ?c", "u * (v / w) -> u * v / w", exact="rounding"),
    _rule("cancel_divisor", "?a / ?b * ?b -> ?a", "u / v * v -> u", exact="rounding"),
    _rule("cancel_factor", "?a * ?b / ?b -> ?a", "u * v / v -> u", exact="rounding"),
)

BITS: Final = (
    _rule("multiply_to_shift", "?a * ?k -> ?a << log2(?k)", "u * 8 -> u << 3", "int32", where=(*_INTEGERS, *_POWER)),
    _rule("divide_to_shift", "?a // ?k -> ?a >> log2(?k)", "u // 8 -> u >> 3", "int32", where=(*_INTEGERS, *_POWER)),
    _rule("remainder_to_mask", "?a % ?k -> ?a & (?k - 1)", "u % 8 -> u & 7", "int32", where=(*_INTEGERS, *_POWER)),
    _rule("shift_left_by_zero", "?a << 0 -> ?a", "u << 0 -> u", "uint8"),
    _rule("shift_right_by_zero", "?a >> 0 -> ?a", "u >> 0 -> u", "uint8"),
    _rule("and_zero", "?a & 0 -> 0", "u & 0 -> 0", "uint8"),
    _rule("and_all", "?a & -1 -> ?a", "u & -1 -> u", "int16"),
    _rule("and_itself", "?a & ?a -> ?a", "u & u -> u", "uint8"),
    _rule("and_twice", "?a & ?b & ?c -> ?a & (?b & ?c)", "u & 7 & 12 -> u & 4", "uint8"),
    _rule("or_zero", "?a | 0 -> ?a", "u | 0 -> u", "uint8"),
    _rule("or_itself", "?a | ?a -> ?a", "u | u -> u", "uint8"),
    _rule("xor_zero", "?a ^ 0 -> ?a", "u ^ 0 -> u", "uint8"),
    _rule("xor_itself", "?a ^ ?a -> 0", "u ^ u -> 0", "uint8"),
    _rule("invert_twice", "~~?a -> ?a", "~~u -> u", "uint8"),
    _rule("negate_inverted", "~-?a -> ?a - 1", "~-u -> u - 1", "int16"),
)

CHOICES: Final = (
    _rule("select_true", "select(True, ?a, ?b) -> ?a", "select(True, u, v) -> u"),
    _rule("select_false", "select(False, ?a, ?b) -> ?b", "select(False, u, v) -> v"),
    _rule("select_same", "select(?c, ?a, ?a) -> ?a", "select(u < v, w, w) -> w"),
    _rule(
        "select_not", "select(not ?c, ?a, ?b) -> select(?c, ?b, ?a)", "select(not u < v, u, v) -> select(u < v, v, u)"
    ),
    _rule("select_bool", "select(?c, True, False) -> ?c", "select(u < v, True, False) -> u < v"),
    _rule(
        "select_again",
        "select(?c, select(?c, ?a, ?b), ?d) -> select(?c, ?a, ?d)",
        "select(u < v, select(u < v, u, v), w) -> select(u < v, u, w)",
    ),
    _rule(
        "select_else",
        "select(?c, ?a, select(?c, ?b, ?d)) -> select(?c, ?a, ?d)",
        "select(u < v, u, select(u < v, v, w)) -> select(u < v, u, w)",
    ),
    _rule("select_least", "select(?a < ?b, ?a, ?b) -> min(?a, ?b)", "select(u < v, u, v) -> min(u, v)"),
    _rule("select_greatest", "select(?a > ?b, ?a, ?b) -> max(?a, ?b)", "select(u > v, u, v) -> max(u, v)"),
    _rule(
        "select_magnitude", "select(?a < 0, -?a, ?a) -> abs(?a)", "select(u < 0, -u, u) -> abs(u)", "int16", "rounding"
    ),
    _rule(
        "select_common_addend",
        "select(?c, ?a + ?k, ?b + ?k) -> select(?c, ?a, ?b) + ?k",
        "select(u < v, u + 1, v + 1) -> select(u < v, u, v) + 1",
    ),
    _rule(
        "select_common_factor",
        "select(?c, ?a * ?k, ?b * ?k) -> select(?c, ?a, ?b) * ?k",
        "select(u < v, u * 3, v * 3) -> select(u < v, u, v) * 3",
    ),
    _rule("min_itself", "min(?a, ?a) -> ?a", "min(u, u) -> u"),
    _rule("max_itself", "max(?a, ?a) -> ?a", "max(u, u) -> u"),
    _rule("min_first", "min(?a, ?b) -> ?a", "min(uint16(u), 300) -> uint16(u)", "uint8", where=("?a < ?b",)),
    _rule("min_second", "min(?a, ?b) -> ?b", "min(uint16(u), 255) -> uint16(u)", "uint8", where=("?b <= ?a",)),
    _rule("max_first", "max(?a, ?b) -> ?a", "max(int16(u), -1) -> int16(u)", "uint8", where=("?a > ?b",)),
    _rule("max_second", "max(?a, ?b) -> ?b", "max(-2, int16(u)) -> int16(u)", "uint8", where=("?b >= ?a",)),
    _rule("min_of_max", "min(?a, max(?a, ?b)) -> ?a", "min(u, max(u, v)) -> u", "int32", where=_INTEGERS),
    _rule("max_of_min", "max(?a, min(?a, ?b)) -> ?a", "max(u, min(u, v)) -> u", "int32", where=_INTEGERS),
    _rule(
        "associate_min",
        "min(?a, min(?b, ?c)) -> min(min(?a, ?b), ?c)",
        "min(u, min(v, w)) -> min(min(u, v), w)",
        "int32",
        where=_INTEGERS,
    ),
    _rule(
        "associate_max",
        "max(?a, max(?b, ?c)) -> max(max(?a, ?b), ?c)",
        "max(u, max(v, w)) -> max(max(u, v), w)",
        "int32",
        where=_INTEGERS,
    ),
    _rule(
        "min_common_addend",
        "min(?a + ?k, ?b + ?k) -> min(?a, ?b) + ?k",
        "min(u + w, v + w) -> min(u, v) + w",
        exact="rounding",
        where=("type(?a) is float",),
    ),
    _rule("clamp_to_min_max", "clamp(?v, ?l, ?h) -> max(min(?v, ?h), ?l)", "clamp(u, 0, 1) -> max(min(u, 1), 0)"),
    _rule("min_max_to_clamp", "max(min(?v, ?h), ?l) -> clamp(?v, ?l, ?h)", "max(min(u, 1), 0) -> clamp(u, 0, 1)"),
    _rule(
        "clamp_twice",
        "clamp(clamp(?v, ?l, ?h), ?l, ?h) -> clamp(?v, ?l, ?h)",
        "clamp(clamp(u, 0, 1), 0, 1) -> clamp(u, 0, 1)",
    ),
    _rule(
        "clamp_between",
        "clamp(?v, ?l, ?h) -> ?v",
        "clamp(int16(u), 0, 255) -> int16(u)",
        "uint8",
        where=("type(?v) is integer", "?l <= ?v", "?v <= ?h"),
    ),
    _rule(
        "clamp_inside",
        "clamp(?v, ?l, ?h) -> ?v",
        "clamp(float32(u), -1, 256) -> float32(u)",
        "uint8",
        where=("?l < ?v", "?v < ?h"),
    ),
    _rule(
        "magnitude_of_positive", "abs(?a) -> ?a", "abs(float32(u) + 1) -> float32(u) + 1", "uint8", where=("?a > 0",)
    ),
    _rule(
        "magnitude_of_natural",
        "abs(?a) -> ?a",
        "abs(int16(u)) -> int16(u)",
        "uint8",
        where=(*_INTEGERS, "?a >= 0"),
    ),
    _rule("magnitude_twice", "abs(abs(?a)) -> abs(?a)", "abs(abs(u)) -> abs(u)"),
    _rule("magnitude_of_negative", "abs(-?a) -> abs(?a)", "abs(-u) -> abs(u)", where=("type(?a) is not unsigned",)),
    _rule(
        "magnitude_of_product",
        "abs(?a) * abs(?b) -> abs(?a * ?b)",
        "abs(u) * abs(v) -> abs(u * v)",
        where=("type(?a) is float",),
    ),
    _rule(
        "difference_of_floats", "abs(?a - ?b) -> absd(?a, ?b)", "abs(u - v) -> absd(u, v)", where=("type(?a) is float",)
    ),
    _rule(
        "difference_of_ends",
        "max(?a, ?b) - min(?a, ?b) -> absd(?a, ?b)",
        "max(u, v) - min(u, v) -> absd(u, v)",
        "uint8",
        where=_INTEGERS,
    ),
)

CONDITIONS: Final = (
    _rule("flip_greater", "?a > ?b -> ?b < ?a", "u > v -> v < u"),
    _rule("flip_greater_or_equal", "?a >= ?b -> ?b <= ?a", "u >= v -> v <= u"),
    _rule("not_less", "not ?a < ?b -> ?a >= ?b", "not u < v -> u >= v", "int32", where=_INTEGERS),
    _rule("not_less_or_equal", "not ?a <= ?b -> ?a > ?b", "not u <= v -> u > v", "int32", where=_INTEGERS),
    _rule("not_greater", "not ?a > ?b -> ?a <= ?b", "not u > v -> u <= v", "int32", where=_INTEGERS),
    _rule("not_greater_or_equal", "not ?a >= ?b -> ?a < ?b", "not u >= v -> u < v", "int32", where=_INTEGERS),
    _rule("not_equal", "not ?a == ?b -> ?a != ?b", "not u == v -> u != v"),
    _rule("not_unequal", "not ?a != ?b -> ?a == ?b", "not u != v -> u == v"),
    _rule("less_than_itself", "?a < ?a -> False", "u < u -> False"),
    _rule("at_most_itself", "?a <= ?a -> True", "u <= u -> True", "int32", where=_INTEGERS),
    _rule("equal_to_itself", "?a == ?a -> True", "u == u -> True", "int32", where=("type(?a) is not float",)),
    _rule("unequal_to_itself", "?a != ?a -> False", "u != u -> False", "int32", where=("type(?a) is not float",)),
    _rule("difference_is_zero", "?a - ?b == 0 -> ?a == ?b", "u - v == 0 -> u == v", "int32", where=_INTEGERS),
    _rule("surely_less", "?a < ?b -> True", "int16(u) < 256 -> True", "uint8", where=("?a < ?b",)),
    _rule("surely_not_less", "?a < ?b -> False", "int16(u) < 0 -> False", "uint8", where=("?a >= ?b",)),
    _rule("surely_at_most", "?a <= ?b -> True", "int16(u) <= 255 -> True", "uint8", where=("?a <= ?b",)),
    _rule("surely_not_at_most", "?a <= ?b -> False", "int16(u) <= -1 -> False", "uint8", where=("?a > ?b",)),
    _rule("surely_unequal", "?a == ?b -> False", "int16(u) == 256 -> False", "uint8", where=("?a < ?b or ?a > ?b",)),
    _rule("and_true", "?c and True -> ?c", "u < v and True -> u < v"),
    _rule("and_false", "?c and False -> False", "u < v and False -> False"),
    _rule("and_same", "?c and ?c -> ?c", "u < v and u < v -> u < v"),
    _rule("and_opposite", "?c and not ?c -> False", "u < v and not u < v -> False"),
    _rule("and_absorbed", "?c and (?c or ?d) -> ?c", "u < v and (u < v or v < w) -> u < v"),
    _rule(
        "associate_and",
        "?a and (?b and ?c) -> ?a and ?b and ?c",
        "u < v and (v < w and u < w) -> u < v and v < w and u < w",
    ),
    _rule("or_true", "?c or True -> True", "u < v or True -> True"),
    _rule("or_false", "?c or False -> ?c", "u < v or False -> u < v"),
    _rule("or_same", "?c or ?c -> ?c", "u < v or u < v -> u < v"),
    _rule("or_opposite", "?c or not ?c -> True", "u < v or not u < v -> True"),
    _rule("or_absorbed", "?c or (?c and ?d) -> ?c", "u < v or (u < v and v < w) -> u < v"),
    _rule("associate_or", "?a or (?b or ?c) -> ?a or ?b or ?c", "u < v or (v < w or u < w) -> u < v or v < w or u < w"),
    _rule("not_twice", "not not ?c -> ?c", "not not u < v -> u < v"),
    _rule("not_and", "not (?c and ?d) -> not ?c or not ?d", "not (u < v and v < w) -> not u < v or not v < w"),
    _rule("not_or", "not (?c or ?d) -> not ?c and not ?d", "not (u < v or v < w) -> not u < v and not v < w"),
    _rule(
        "factor_or",
        "?a and ?b or ?a and ?c -> ?a and (?b or ?c)",
        "u < v and v < w or u < v and u < w -> u < v and (v < w or u < w)",
    ),
)

CONVERSIONS: Final = (
    _rule(
        "convert_once",
        "?T(?U(?a)) -> ?T(?a)",
        "int32(int16(u)) -> int32(u)",
        "uint8",
        where=("type(?U) is integer", "type(?U) holds type(?a)"),
    ),
    _rule(
        "convert_float_once",
        "?T(?U(?a)) -> ?T(?a)",
        "uint8(float64(u)) -> uint8(u)",
        where=("type(?a) is float", "type(?U) holds type(?a)"),
    ),
    _rule(
        "convert_there_and_back",
        "?T(?U(?a)) -> ?a",
        "uint16(float32(u)) -> u",
        "uint16",
        where=("type(?T) is type(?a)", "type(?U) holds type(?a)"),
    ),
    _rule(
        "narrow_sum",
        "?T(?a + ?b) -> ?T(?a) + ?T(?b)",
        "uint8(u + v) -> uint8(u) + uint8(v)",
        "int32",
        where=(*_INTEGERS, "type(?T) is integer", "bits(?T) <= bits(?a)"),
    ),
    _rule(
        "narrow_difference",
        "?T(?a - ?b) -> ?T(?a) - ?T(?b)",
        "uint8(u - v) -> uint8(u) - uint8(v)",
        "int32",
        where=(*_INTEGERS, "type(?T) is integer", "bits(?T) <= bits(?a)"),
    ),
    _rule(
        "narrow_product",
        "?T(?a * ?b) -> ?T(?a) * ?T(?b)",
        "uint8(u * v) -> uint8(u) * uint8(v)",
        "int32",
        where=(*_INTEGERS, "type(?T) is integer", "bits(?T) <= bits(?a)"),
    ),
    _rule(
        "convert_select",
        "?T(select(?c, ?a, ?b)) -> select(?c, ?T(?a), ?T(?b))",
        "int32(select(u < v, u, v)) -> select(u < v, int32(u), int32(v))",
        "uint8",
    ),
    _rule(
        "convert_min",
        "?T(min(?a, ?b)) -> min(?T(?a), ?T(?b))",
        "int32(min(u, v)) -> min(int32(u), int32(v))",
        "uint8",
        where=("type(?T) holds type(?a)",),
    ),
    _rule(
        "convert_max",
        "?T(max(?a, ?b)) -> max(?T(?a), ?T(?b))",
        "int32(max(u, v)) -> max(int32(u), int32(v))",
        "uint8",
        where=("type(?T) holds type(?a)",),
    ),
    _rule(
        "saturating_sum",
        "sat_?T(?U(?a) + ?U(?b)) -> sat_add(?a, ?b)",
        "sat_uint8(uint16(u) + uint16(v)) -> sat_add(u, v)",
        "uint8",
        where=_WIDER,
    ),
    _rule(
        "saturating_difference",
        "sat_?T(?U(?a) - ?U(?b)) -> sat_sub(?a, ?b)",
        "sat_uint8(int16(u) - int16(v)) -> sat_sub(u, v)",
        "uint8",
        where=(*_WIDER, "type(?U) is signed"),
    ),
    _rule(
        "halved_sum",
        "?T((?U(?a) + ?U(?b)) // 2) -> halving_add(?a, ?b)",
        "uint8((uint16(u) + uint16(v)) // 2) -> halving_add(u, v)",
        "uint8",
        where=_WIDER,
    ),
    _rule(
        "rounded_mean",
        "?T((?U(?a) + ?U(?b) + 1) // 2) -> rounding_halving_add(?a, ?b)",
        "uint8((uint16(u) + uint16(v) + 1) // 2) -> rounding_halving_add(u, v)",
        "uint8",
        where=_WIDER,
    ),
    _rule(
        "narrow_magnitude",
        "?T(abs(?U(?a) - ?U(?b))) -> absd(?a, ?b)",
        "uint8(abs(int16(u) - int16(v))) -> absd(u, v)",
        "uint8",
        where=(*_WIDER, "type(?U) is signed"),
    ),
)

FUNCTIONS: Final = (
    _rule(
        "to_lerp",
        "?a + (?b - ?a) * ?t -> lerp(?a, ?b, ?t)",
        "u + (v - u) * w -> lerp(u, v, w)",
        where=("type(?a) is float",),
    ),
    _rule(
        "from_lerp",
        "lerp(?a, ?b, ?t) -> ?a + (?b - ?a) * ?t",
        "lerp(u, v, w) -> u + (v - u) * w",
        where=("type(?t) is float", "type(?a) is type(?t)"),
    ),
    _rule(
        "blend_to_lerp",
        "?a * (1 - ?t) + ?b * ?t -> lerp(?a, ?b, ?t)",
        "u * (1 - w) + v * w -> lerp(u, v, w)",
        exact="rounding",
        where=("type(?a) is float",),
    ),
    _rule("root_of_square", "sqrt(?a * ?a) -> abs(?a)", "sqrt(u * u) -> abs(u)", exact="rounding"),
    _rule(
        "square_of_root",
        "sqrt(?a) * sqrt(?a) -> ?a",
        "sqrt(max(u, 0)) * sqrt(max(u, 0)) -> max(u, 0)",
        exact="rounding",
        where=("?a >= 0",),
    ),
    _rule(
        "product_of_roots",
        "sqrt(?a) * sqrt(?b) -> sqrt(?a * ?b)",
        "sqrt(max(u, 0)) * sqrt(max(v, 0)) -> sqrt(max(u, 0) * max(v, 0))",
        exact="rounding",
        where=("?a >= 0", "?b >= 0"),
    ),
    _rule("reciprocal_root", "1 / sqrt(?a) -> sqrt(1 / ?a)", "1 / sqrt(u) -> sqrt(1 / u)", exact="rounding"),
    _rule("divide_by_root", "?a / sqrt(?b) -> ?a * sqrt(1 / ?b)", "u / sqrt(v) -> u * sqrt(1 / v)", exact="rounding"),
    _rule("power_to_product", "pow(?a, 2.0) -> ?a * ?a", "pow(u, 2.0) -> u * u", exact="rounding"),
    _rule("power_to_root", "pow(?a, 0.5) -> sqrt(?a)", "pow(u, 0.5) -> sqrt(u)", exact="rounding"),
    _rule(
        "product_of_exponentials",
        "exp(?a) * exp(?b) -> exp(?a + ?b)",
        "exp(u) * exp(v) -> exp(u + v)",
        exact="rounding",
    ),
    _rule("sum_of_logarithms", "log(?a) + log(?b) -> log(?a * ?b)", "log(u) + log(v) -> log(u * v)", exact="rounding"),
    _rule("logarithm_of_exponential", "log(exp(?a)) -> ?a", "log(exp(u)) -> u", exact="rounding"),
    _rule("exponential_of_logarithm", "exp(log(?a)) -> ?a", "exp(log(u)) -> u", exact="rounding"),
    _rule("floor_twice", "floor(floor(?a)) -> floor(?a)", "floor(floor(u)) -> floor(u)"),
    _rule("cosine_of_negative", "cos(-?a) -> cos(?a)", "cos(-u) -> cos(u)"),
    _rule(
        "small_sine",
        "sin(?a) -> ?a",
        "sin(clamp(u, -0.1, 0.1)) -> clamp(u, -0.1, 0.1)",
        exact="approximate",
        where=("?a >= -0.125", "?a <= 0.125"),
    ),
    _rule(
        "small_tangent",
        "tan(?a) -> ?a + ?a * ?a * ?a * 0.333",
        "tan(clamp(u, -0.1, 0.1)) -> clamp(u, -0.1, 0.1) + "
        "clamp(u, -0.1, 0.1) * clamp(u, -0.1, 0.1) * clamp(u, -0.1, 0.1) * 0.333",
        exact="approximate",
        where=("?a >= -0.25", "?a <= 0.25"),
    ),
    _rule(
        "small_exponential",
        "exp(?a) -> 1 + ?a * (1 + ?a * 0.5)",
        "exp(clamp(u, 0.0, 0.1)) -> 1 + clamp(u, 0.0, 0.1) * (1 + clamp(u, 0.0, 0.1) * 0.5)",
        exact="approximate",
        where=("?a >= -0.25", "?a <= 0.25"),
    ),
)

ALGEBRA: Final = (*SUMS, *PRODUCTS, *BITS, *CHOICES, *CONDITIONS, *CONVERSIONS, *FUNCTIONS)
"""Every rule, by topic."""
