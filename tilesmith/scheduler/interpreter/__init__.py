"""The reference semantics: a pipeline computed stage by stage in NumPy."""
