"""Machines: the host, the catalog, and stored descriptions; figures changed for a question (`what_if`)."""
