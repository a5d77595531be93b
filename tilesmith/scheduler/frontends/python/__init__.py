"""Pipelines written in Python: as stages (`frontend`), as functions of arrays (`arrays`), as patterns (`patterns`)."""
