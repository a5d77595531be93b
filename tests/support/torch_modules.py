"""Modules of PyTorch for tests."""

from __future__ import annotations

import torch
import torch.nn.functional as f
from torch import Tensor, nn


class Block(nn.Module):
    """A residual block with a pool, a resize and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.deep = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.ReLU(inplace=True), nn.Conv2d(8, 8, 1))
        self.head = nn.Linear(8, 5)
        with torch.no_grad():
            self.norm.running_mean.uniform_(-1, 1)
            self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = f.relu(self.norm(self.stem(x)))
        y = f.interpolate(f.max_pool2d(x, 2), scale_factor=2, mode="bilinear")
        x = x + self.deep(y)
        return f.softmax(self.head(f.adaptive_avg_pool2d(x, 1).flatten(1)), -1)


def block() -> Block:
    """The block with weights that are always the same, for inference."""
    torch.manual_seed(0)
    return Block().eval()


def random(*shape: int, low: float = -2, high: float = 2) -> Tensor:
    """A tensor between two ends, always the same."""
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.rand(*shape, generator=generator) * (high - low) + low
