"""MLIR's linalg on tensors, as text. xDSL parses and verifies it."""
