"""Records: frozen dataclasses of which so many are made that it matters what one takes.

A frozen dataclass sets each field by a call, and so takes five times as long as one that is not. A record assigns its
fields. What is frozen of it is what type checkers see, which hold all of the package to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import dataclass

    def record(*, frozen, slots, eq=True):
        """The decorator of a record; see `dataclasses.dataclass`."""
        assert frozen

        def decorated(cls):
            hashed = eq and cls.__dict__.get("__hash__") is None
            return dataclass(slots=slots, eq=eq, unsafe_hash=hashed)(cls)

        return decorated


__all__ = ["record"]
