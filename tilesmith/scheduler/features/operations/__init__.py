"""Arithmetic of a point: operations by kind, the chains in which they wait, the registers that they need."""
