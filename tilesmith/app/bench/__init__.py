"""A pipeline's code against what else computes the same, in turns."""
