"""PyTorch's graphs (`torch.fx`) of ATen operators as pipelines. `reader.py` goes through a graph, the others have its
operators."""
