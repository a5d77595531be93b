"""Results of a pipeline with several outputs: a tuple whose parts have names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Outputs(tuple[Any, ...]):
    """The outputs in the order of the document: `result.total`, `result["total"]`, and all that tuples have. It can be
    sent to other processes."""

    names: tuple[str, ...]

    def __new__(cls, parts: Mapping[str, Any]) -> Outputs:
        made = super().__new__(cls, parts.values())
        made.names = tuple(parts)
        return made

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("names", ()):
            return tuple.__getitem__(self, self.names.index(name))
        raise AttributeError(f"there is no output {name!r}; outputs: {', '.join(self.__dict__.get('names', ()))}")

    def __getitem__(self, key: Any) -> Any:
        return tuple.__getitem__(self, self.names.index(key) if isinstance(key, str) else key)

    def __reduce__(self) -> tuple[type[Outputs], tuple[dict[str, Any]]]:
        return Outputs, (dict(zip(self.names, self, strict=True)),)

    def __repr__(self) -> str:
        return f"Outputs({', '.join(f'{name}={value!r}' for name, value in zip(self.names, self, strict=True))})"
