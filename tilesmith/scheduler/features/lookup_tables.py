"""Tables of bytes that are looked up by whole vectors: which ones, by how much data tells of the place."""

FEWEST = 16
"""Fewer lanes are looked up one by one."""
PART = 128
"""Elements of a table that one instruction looks up."""
MOST_PARTS = 16
"""Parts of a table that is looked up by vectors, at most: of more, lanes are better looked up one by one."""
