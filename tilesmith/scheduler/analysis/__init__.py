"""Analyses of pipelines: access relations, bounds, dependence, separability, reuse. Nothing is rewritten here."""
