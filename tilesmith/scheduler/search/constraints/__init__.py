"""Decisions that the caller fixes: their document, their contradictions, and the search under them."""
