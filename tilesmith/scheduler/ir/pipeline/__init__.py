"""Pipelines: inputs, params, stages and their expressions, with types, semantics and bounds of values."""
