"""Pages of memory, and the TLB that finds them: figures that all processors of today have at least.

Operating systems do not tell them. Larger pages are the caller's to ask for, so that nobody can count on them.
"""

PAGE_BYTES = 4096
TLB = ((64, 7.0), (1536, 30.0))
"""Entries of each level, and cycles of a load whose page is not among them."""
