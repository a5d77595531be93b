"""The versions of the database's tables, in the order of their numbers."""
