"""Scheduling primitives, a file each; `primitive` says what one is, `registry` has them all."""
