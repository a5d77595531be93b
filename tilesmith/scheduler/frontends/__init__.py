"""Pipelines from elsewhere: documents, Python, Halide, ONNX, PyTorch, MLIR. `importer` says what a frontend is, and
`registry` has them by name."""
