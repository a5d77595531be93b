"""Operations of a point of a stage, by kind."""

from __future__ import annotations

from tilesmith.records import record


@record(frozen=True, slots=True)
class Operations:
    """Arithmetic of one point of a stage, by kind.

    `add`: sums, differences, negation, bit operations, shifts; `multiply`; `divide_by_constant`, `divide`:
    quotients and remainders; `select`: comparisons, minima, choices; `convert`: to types as wide or wider, `narrow`: to
    types half as wide; `function`: square roots, exponentials and the like; `index`: clamps and remainders in indices;
    `uniform`: what each term of a long reduction tests and chooses for all lanes, in scalar code.
    """

    add: float = 0
    multiply: float = 0
    divide_by_constant: float = 0
    divide: float = 0
    select: float = 0
    convert: float = 0
    narrow: float = 0
    function: float = 0
    index: float = 0
    uniform: float = 0

    def __add__(self, other: Operations) -> Operations:
        return Operations(
            self.add + other.add,
            self.multiply + other.multiply,
            self.divide_by_constant + other.divide_by_constant,
            self.divide + other.divide,
            self.select + other.select,
            self.convert + other.convert,
            self.narrow + other.narrow,
            self.function + other.function,
            self.index + other.index,
            self.uniform + other.uniform,
        )

    def scaled(self, times: float) -> Operations:
        """`times` as many."""
        return Operations(
            self.add * times,
            self.multiply * times,
            self.divide_by_constant * times,
            self.divide * times,
            self.select * times,
            self.convert * times,
            self.narrow * times,
            self.function * times,
            self.index * times,
            self.uniform * times,
        )
