"""Tables of bytes that are looked up by whole vectors: which ones, by how much data tells of the place."""

from tilesmith.cost_models.work import MOST_PIECES

FEWEST = 16
"""Lanes of a vector that is looked up, at least: of fewer the C is longer than that of loads one by one."""
MOST_PARTS = MOST_PIECES
"""Parts of a table that is looked up by vectors, at most: each is looked up for all lanes, so that of more the C is
longer than that of loads one by one."""
