"""The table of ATen operators, by their names in graphs (`aten.add.Tensor` without `aten`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from tilesmith.scheduler.frontends.tensors.tensor import Constant, Refused, Tensor

Result: TypeAlias = "Tensor | Sequence[Tensor | None]"
Operator: TypeAlias = Callable[..., Result]
F = TypeVar("F", bound=Operator)
OPERATORS: dict[str, Operator] = {}


def operator(*names: str) -> Callable[[F], F]:
    """A decorator: the function is the operator of these names. It is given the graph, then the arguments of the
    operator, tensors as tensors and numbers as numbers. Of several results, those that cannot be had are None."""

    def added(function: F) -> F:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return added


def tensor(value: Any, type: str) -> Tensor:
    """A number as a tensor of the type; a tensor as it is."""
    if isinstance(value, bool | int | float):
        return Constant(np.asarray(value, type))
    found: Tensor = value
    return found


def pair(value: Any, count: int, default: int | None = None) -> list[int]:
    """A number for each of `count` axes: as many, one for all, or none for the default."""
    found = [int(v) for v in value] if isinstance(value, list | tuple) else [int(value)]
    found = found or ([] if default is None else [default])
    if len(found) not in (1, count):
        raise Refused(f"{found} for {count} axes")
    return found * count if len(found) == 1 else found


def common(*operands: Any) -> str:
    """The type at which operands meet: floats rather than integers rather than bools, tensors rather than numbers and
    constants without axes, the wider."""
    tensors = [o for o in operands if not isinstance(o, bool | int | float)]
    wide = [t for t in tensors if t.shape] or tensors
    ranked = max((_rank(t.type) for t in wide), default=0)
    found = np.result_type(*(t.type for t in wide if _rank(t.type) == ranked)).name if wide else "float32"
    numbers = [_rank(t.type) for t in tensors] + [_rank(np.asarray(o).dtype.name) for o in operands if o not in tensors]
    if max(numbers, default=0) > ranked:
        return "float32" if max(numbers) == 2 else "int64"
    return found


def _rank(type: str) -> int:
    return 2 if type.startswith("float") else 0 if type == "bool" else 1
