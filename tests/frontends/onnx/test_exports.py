"""Models as PyTorch exports them: sizes that are left open, and what they work out of them."""

from __future__ import annotations

import io

import pytest

pytest.importorskip("torch")

import torch
import torch.nn.functional as f
from onnx_models import close, interpreted
from torch import nn
from torch_modules import block, random

from tilesmith.scheduler.frontends.onnx.importer import from_onnx

pytestmark = pytest.mark.filterwarnings("ignore")  # of the exporter


class Shapes(nn.Module):
    """Two levels of which the upper has the size of an image, a shuffle of channels, and views."""

    def __init__(self) -> None:
        super().__init__()
        self.top = nn.Conv2d(3, 8, 3, padding=1)
        self.low = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(16, 8, 2, 2)
        self.groups, self.each = nn.GroupNorm(4, 16), nn.InstanceNorm2d(8, affine=True)

    def forward(self, x):
        top = f.silu(self.each(self.top(x)))
        low = f.gelu(self.groups(self.low(top)))
        large = f.interpolate(low, size=top.shape[-2:], mode="bilinear", align_corners=False)
        joined = f.pixel_shuffle(torch.cat([self.up(low), top, large], 1), 2)
        n, c, h, w = joined.shape
        shuffled = joined.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
        return shuffled.clamp(0, 1), f.hardswish(f.adaptive_avg_pool2d(shuffled, 1)).flatten(1), joined.mean((2, 3))


def shapes():
    torch.manual_seed(0)
    return Shapes().eval()


@pytest.mark.parametrize("left_open", [{}, {0: "n"}, {0: "n", 2: "h", 3: "w"}], ids=str)
@pytest.mark.parametrize("module", [block, shapes])
def test_an_export_computes_what_the_module_does(module, left_open):
    made, image, content = module(), random(2, 3, 16, 20), io.BytesIO()
    how = {"dynamic_axes": {"x": left_open}} if left_open else {}
    torch.onnx.export(made, (image,), content, input_names=["x"], opset_version=17, dynamo=False, **how)
    found = from_onnx(content.getvalue())
    shape = [3 if 0 in left_open else 2, 3, *((24, 12) if 2 in left_open else (16, 20))]
    image = random(*shape)
    with torch.no_grad():
        wanted = made(image)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for ours, theirs in zip(interpreted(found, {"x": image.numpy()}), wanted, strict=True):
        assert close(ours, theirs.numpy())
