"""Operators of PyTorch, each against PyTorch, on small random tensors."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
import torch.nn.functional as f
from onnx_models import close, interpreted
from torch import nn
from torch_modules import block, random

from tilesmith.scheduler.frontends.fx.reader import from_fx
from tilesmith.scheduler.frontends.fx.table import OPERATORS
from tilesmith.scheduler.frontends.importer import ImportFailed

IMAGE = random(2, 3, 7, 9)
POSITIVE = random(2, 3, 4, 5, low=0.1)
WHOLE = torch.arange(-6, 6, dtype=torch.int32).reshape(3, 4)


def made(kind, *args, **options):
    """A layer with random weights, for inference."""
    torch.manual_seed(1)
    layer = kind(*args, **options).eval()
    for t in [*layer.parameters(), *layer.buffers()]:
        if t.is_floating_point():
            t.data.uniform_(0.3, 1)
    return layer


_ROWS = {
    "torch": ("relu", "sigmoid", "tanh", "exp", "abs", "neg", "floor", "ceil", "round", "sin", "cos", "erf", "sign"),
    "functional": (
        "silu", "mish", "hardswish", "hardsigmoid", "softplus", "gelu", "leaky_relu", "elu", "selu", "relu6",
        "hardtanh",
    ),
}  # fmt: skip
CASES = {
    **{
        name: (getattr(torch, name), IMAGE)
        for name in _ROWS["torch"]
    },
    **{name: (getattr(torch, name), POSITIVE) for name in ("log", "sqrt", "rsqrt", "reciprocal")},
    **{
        name: (getattr(f, name), IMAGE)
        for name in _ROWS["functional"]
    },
    "isnan": (torch.isnan, IMAGE),
    "sgn": (torch.sgn, IMAGE),
    "alias": (lambda x: torch.ops.aten.alias(x) + 1, IMAGE),
    "lift": (lambda x: x + torch.tensor(1.5), IMAGE),
    "gelu_tanh": (lambda x: f.gelu(x, approximate="tanh"), IMAGE),
    "prelu": (made(nn.PReLU, 3), IMAGE),
    "logical": (lambda x: ((x > 0) & (x < 1)).logical_not() | (x == 2), IMAGE),
    "logical_and": (lambda x: torch.logical_and(x > 0, x <= 1), IMAGE),
    "logical_or": (lambda x: torch.logical_xor(x < 0.5, torch.logical_or(x >= 1, x != 0)), IMAGE),
    "bits": (lambda x: ~(x > 0), IMAGE),
    "numbers": (lambda x: (3 - x) * 2 + x / 4 - 1, IMAGE),
    "alpha": (lambda x, y: torch.add(x, y, alpha=0.5) - torch.sub(x, y, alpha=2), IMAGE, random(9)),
    "reversed": (lambda x: torch.rsub(x, 2), IMAGE),
    "whole": (lambda x: x * 2 + x, WHOLE),
    "promoted": (lambda x: x + 0.5, WHOLE),
    "divided": (lambda x: x / 4, WHOLE),
    "met": (lambda x, y: x + y, WHOLE, random(4)),
    "cut": (lambda x: torch.div(x, 4, rounding_mode="trunc"), WHOLE),
    "rounded": (lambda x: torch.div(x, 0.3, rounding_mode="floor"), IMAGE),
    "extremes": (lambda x, y: torch.maximum(x, y) - torch.minimum(x, y), IMAGE, random(7, 9)),
    "powers": (lambda x: x**2 + x**0.5 + x**-1.5, POSITIVE),
    "power": (torch.pow, POSITIVE, random(5)),
    "clamp": (lambda x: x.clamp(-0.5, 1).clamp(min=0) + x.clamp_max(0.2) + x.clamp_min(0.1), IMAGE),
    "clamp_tensor": (lambda x: torch.clamp(x, min=torch.tensor(0.3)), IMAGE),
    "where": (lambda x: torch.where(x > 0, x, 0.0), IMAGE),
    "type": (lambda x: x.to(torch.int32).to(torch.float64), IMAGE),
    "clone": (lambda x: x.clone().detach().contiguous(), IMAGE),
    "dropout": (lambda x: f.dropout(x, 0.5, training=False), IMAGE),
    "written": (lambda x: (x + 1).mul_(2).relu_(), IMAGE),
    "conv": (made(nn.Conv2d, 3, 4, 3, stride=2, padding=1), IMAGE),
    "conv_groups": (made(nn.Conv2d, 3, 6, 3, groups=3, dilation=2), IMAGE),
    "conv1d": (made(nn.Conv1d, 3, 4, 3, padding=1), random(2, 3, 9)),
    "transposed": (made(nn.ConvTranspose2d, 3, 4, 3, stride=2, padding=1, output_padding=1), IMAGE),
    "max_pool": (lambda x: f.max_pool2d(x, 3, 2, 1, ceil_mode=True), IMAGE),
    "mean_pool": (lambda x: f.avg_pool2d(x, 3, 2, 1), IMAGE),
    "mean_pool_inside": (lambda x: f.avg_pool2d(x, 3, 2, 1, count_include_pad=False, ceil_mode=True), IMAGE),
    "adaptive": (lambda x: f.adaptive_avg_pool2d(x, (2, 4)), random(1, 3, 6, 8)),
    **{
        f"{mode}{size}{how}": (lambda x, m=mode, s=size, h=how: f.interpolate(x, s, mode=m, **h), IMAGE)
        for mode, hows in {
            "nearest": ({},), "nearest-exact": ({},),
            "bilinear": ({}, {"align_corners": True}), "bicubic": ({}, {"align_corners": True}),
        }.items()
        for how in hows
        for size in ((14, 18), (10, 5))
    },
    "factor": (lambda x: f.interpolate(x, scale_factor=1.5, mode="bilinear"), IMAGE),
    "shuffle": (lambda x: f.pixel_shuffle(x, 2), random(1, 8, 3, 4)),
    **{
        f"{op}": (lambda x, o=op: getattr(x, o)((1, 3), keepdim=True) + getattr(x, o)(-1).sum(), IMAGE)
        for op in ("mean", "sum", "amax", "amin")
    },
    "all": (lambda x: x.mean() + x.sum(), IMAGE),
    "max_along": (lambda x: x.max(1).values + x.max(1).indices + x.argmax(1), IMAGE),
    "min_along": (lambda x: x.min(1).values + x.min(1).indices, IMAGE),
    "softmax": (lambda x: f.softmax(x, 1) + f.log_softmax(x, -1), IMAGE),
    "batch_norm": (made(nn.BatchNorm2d, 3), IMAGE),
    "bare_norm": (made(nn.BatchNorm2d, 3, affine=False), IMAGE),
    "instance_norm": (made(nn.InstanceNorm2d, 3), IMAGE),
    "layer_norm": (made(nn.LayerNorm, (7, 9)), IMAGE),
    "group_norm": (made(nn.GroupNorm, 2, 4), random(2, 4, 3, 5)),
    "linear": (made(nn.Linear, 9, 4), IMAGE[:, 0]),
    "products": (lambda a, b: (a @ b) + torch.bmm(a, b), random(2, 3, 4), random(2, 4, 5)),
    "matrices": (lambda a, b: torch.addmm(a[0], a, b, beta=2, alpha=0.5), random(3, 4), random(4, 4)),
    "turned": (lambda x: x.permute(0, 2, 3, 1).transpose(1, 2), IMAGE),
    "matrix": (lambda x: x.t(), random(3, 4)),
    "views": (lambda x: x.view(2, -1).reshape(6, 63).unsqueeze(1).squeeze(1).unsqueeze(0).squeeze(), IMAGE),
    "wide": (lambda x: x.expand(2, 3, 5), random(3, 1)),
    "filled": (lambda x: x + torch.ones(9) - torch.full((7, 1), 0.5) * torch.zeros(1), IMAGE),
    "joined": (lambda x: torch.cat([x, x * 2], 1)[:, 1:5, ::2], IMAGE),
    "selected": (lambda x: x[:, 1] + x[:, -1], IMAGE),
    "parts": (lambda x: torch.cat(x.split(2, 1)[::-1], 1) + torch.cat(x.split([1, 2], 1), 1), IMAGE),
    "chunks": (lambda x: x.chunk(3, 1)[0] * x.chunk(3, 1)[2], IMAGE),
    "constant": (lambda x: f.pad(x, (1, 2, 0, 1), value=2.0), IMAGE),
    "reflect": (lambda x: f.pad(x, (1, 2, 0, 1), mode="reflect"), IMAGE),
    "replicate": (lambda x: f.pad(x, (1, 2, 0, 1), mode="replicate"), IMAGE),
    "pad_line": (lambda x: f.pad(x, (1, 2), mode="reflect") + f.pad(x, (1, 2), mode="replicate"), random(2, 3, 5)),
    "block": (block(), random(2, 3, 16, 20)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_operator_computes_what_pytorch_does(name):
    function, *inputs = CASES[name]
    with torch.no_grad():
        wanted = function(*inputs)
    (found,) = interpreted(from_fx(function, inputs), {str(k): t.numpy() for k, t in enumerate(inputs)})
    assert close(found, wanted.numpy())


def test_parameters_are_weights_with_their_names():
    found = from_fx(block(), [random(1, 3, 16, 20)])
    assert [i.name for i in found.pipeline.inputs if i.name not in found.weights] == ["x"]
    assert {"stem_weight", "stem_bias", "deep_0_weight", "head_weight"} <= found.weights.keys()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: torch.cumsum(x, 1), "(aten.cumsum.default): the operator cannot be said"),
        (lambda x: x.half(), "elements of type float16"),
        (lambda x: f.max_pool2d(x, 2, return_indices=True)[1], "result 1 of aten.max_pool2d_with_indices.default"),
        (lambda x: f.batch_norm(x, torch.zeros(3), torch.ones(3), training=True), "a normalisation that keeps moments"),
        (lambda x: f.adaptive_avg_pool2d(x, 4), "windows over [7, 9], which are of different sizes"),
        (lambda x: f.avg_pool2d(x, 2, divisor_override=3), "divisor_override = 3"),
    ],
)
def test_what_cannot_be_said_is_told_with_its_node(function, words):
    with pytest.raises(ImportFailed) as refused:
        from_fx(function, [IMAGE])
    message, _ = refused.value.problems[0]
    assert message.startswith("node '")
    assert words in message


def test_every_name_of_the_table_is_one_of_pytorch():
    for name in OPERATORS:
        packet, _, overload = name.partition(".")
        assert overload in getattr(torch.ops.aten, packet).overloads(), name


def test_an_output_that_is_no_tensor():
    graph = torch.fx.Graph()
    graph.placeholder("x")
    graph.output((3,))
    with pytest.raises(ImportFailed, match="output 0 is no tensor"):
        from_fx(torch.fx.GraphModule(nn.Module(), graph), [IMAGE])
