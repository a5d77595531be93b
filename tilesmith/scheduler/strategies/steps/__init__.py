"""The rules that are built in, a family a file; importing this registers all of them."""

from tilesmith.scheduler.strategies.steps import attributes, expressions, loops, passes, placement, rewriting, search

__all__ = ["attributes", "expressions", "loops", "passes", "placement", "rewriting", "search"]
