"""Pipelines as functions of arrays, computed in this process: the built library is loaded and called in place."""
