"""Passes over loop programs, a file each; `passes` lists them in their order."""
