"""Limits of documents. Every limit is a setting of the service; these are the defaults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds, each inclusive. A document beyond one is refused with `limit_exceeded` or a code of its own."""

    document_bytes: int = 4 << 20  # of JSON text, or of all expressions together
    yaml_bytes: int = 512 << 10  # YAML is read much more slowly than JSON
    nesting: int = 64  # lists and objects inside each other
    params: int = 256
    inputs: int = 256
    stages: int = 10_000
    outputs: int = 256
    dims: int = 5
    components: int = 16  # of a tuple-valued stage
    updates: int = 256  # of one stage
    domain_variables: int = 8  # of one update or one reduction
    reduction_points: int = 1 << 40  # of nested reductions and an update's domain, as far as they are constant
    expression_chars: int = 64 << 10
    expression_nodes: int = 20_000
    expression_depth: int = 200  # brackets, calls and operators inside each other
    expression_chain: int = 600  # the same with the terms of a long sum counted
    document_nodes: int = 150_000  # of all expressions together
    table_values: int = 65_536  # of all tables together
    extent: int = 1 << 28  # of an estimate, in points
    coordinate: int = 1 << 30  # of an estimate's min, in either direction
    problems: int = 500  # reported of one document
