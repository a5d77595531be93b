"""Tensor programs: convolutions, pools, reductions and views of tensors as stages. What reads graphs of other compilers
(ONNX, PyTorch) says them in these operations, and stands on nothing else."""
