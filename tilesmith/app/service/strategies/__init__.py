"""Stored and shipped strategies."""
