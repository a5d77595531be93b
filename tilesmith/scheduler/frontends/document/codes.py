"""The stable codes of what can be wrong with a document. Once published, a code keeps its meaning."""

from __future__ import annotations

CODES: dict[str, str] = {
    # The text as a whole
    "bad_encoding": "The text is not UTF-8.",
    "bad_json": "The text is not JSON.",
    "bad_yaml": "The text is not YAML, or uses more of YAML than plain data.",
    "bad_number": "NaN, Infinity, or a number too long to be meant.",
    "duplicate_key": "A key is written twice in one object.",
    "document_too_large": "The text has more bytes than the limit.",
    "document_too_deep": "Lists and objects are nested more deeply than the limit.",
    "limit_exceeded": "There are more stages, dims, updates, ... than the limit.",
    # Its shape
    "missing_key": "A required key is not there.",
    "unknown_key": "A key that the format does not have.",
    "bad_type": "A value of the wrong JSON type.",
    "bad_value": "A value of the right JSON type that is not allowed there.",
    "bad_identifier": "A name that does not match `[A-Za-z_][A-Za-z0-9_]{0,63}`.",
    "reserved_name": "A name that the expression language needs for itself.",
    "unsupported_format": "`format` is not 1.",
    "unknown_type": "A type that does not exist.",
    "unknown_kind": "A boundary kind that does not exist.",
    "duplicate_name": "A name is declared twice.",
    "bad_boundary": "The keys of a boundary do not fit its kind or its owner.",
    "bad_storage": "`storage` is not an order of the dims.",
    "bad_table": "`region` and `values` of an input do not go together, or a value is not of its type.",
    "bad_param": "`default`, `min` and `max` of a param contradict its type or each other.",
    "unknown_output": "An output that is not a stage.",
    "missing_estimate": "An output without an estimate.",
    "unknown_estimate": "An estimate of something that is neither input nor stage.",
    "bad_estimate": "An estimate of the wrong number of dims, or of sizes that are not possible.",
    # Expressions: their syntax
    "syntax_error": "The text is not an expression.",
    "unsupported_syntax": "Python syntax that the language does not have.",
    "chained_comparison": "`a < b < c`: comparisons do not chain.",
    "expression_too_large": "The expression has more characters or nodes than the limit.",
    "expression_too_deep": "The expression is nested more deeply than the limit.",
    # Expressions: their names
    "unknown_name": "A name that nothing has.",
    "unknown_function": "A call of something that is neither input, stage nor function.",
    "shadowed_name": "A dim, domain variable or loop variable with a name that is already taken.",
    "wrong_arity": "An input or stage read with the wrong number of indices.",
    "wrong_arguments": "A function called with the wrong number of arguments.",
    "tuple_needs_component": "A tuple used where one value is needed.",
    "not_a_tuple": "`[k]` of something that is not a tuple.",
    "bad_component": "`[k]` beyond the tuple, or `k` not a plain number.",
    # Expressions: their types and meaning
    "type_error": "Operands of types that the operation does not take.",
    "type_mismatch": "A value that does not have the type stated, or not that of its stage.",
    "literal_out_of_range": "A literal that does not fit the type it takes.",
    "bad_exponent": "`**` of integers without a constant exponent of at least 0.",
    "bad_shift": "A constant shift count below 0 or not below the width.",
    "bad_bounds": "Bounds of a reduction, domain or boundary that are not made of constants, params and input bounds.",
    "empty_range": "A reduction or domain over nothing.",
    "bad_predicate": "A condition that is not bool.",
    "bad_constant": "A boundary value that is not made of constants and params.",
    "unbounded_index": "An index that depends on data or params and has no provable bounds.",
    # Stages
    "self_read": "A stage's value reads the stage itself.",
    "cycle": "Stages that need each other.",
    "bad_update": "An update whose `at`, `value` or free dims do not fit its stage.",
}
