"""Stored and shipped pipelines, and the history of each name."""
