"""The backend `tilesmith` of `torch.compile`: what of a graph can be said is compiled, the rest runs in PyTorch."""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Sequence
from typing import Any

from tilesmith.app.inprocess.compile import compile
from tilesmith.scheduler.errors import TilesmithError
from tilesmith.scheduler.frontends.fx.reader import FxNode, Reader, expressible, shown, traced

_LOG = logging.getLogger("tilesmith")


def backend(module: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """The callable for a graph that TorchDynamo found. Nodes that cannot be said are told to the log `tilesmith`, as a
    warning with the reasons, and run in PyTorch, as derivatives do."""
    import torch
    from torch._dynamo.backends.common import aot_autograd

    if torch.is_grad_enabled() and any(getattr(v, "requires_grad", False) for v in example_inputs):
        compiler: Callable[..., Callable[..., Any]] = aot_autograd(fw_compiler=_boxed, bw_compiler=_as_it_is)
        return compiler(module, example_inputs)
    compiled: Callable[..., Any] = _compiled(traced(module, example_inputs))
    return compiled


def _boxed(module: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    return _as_it_is(_compiled(module), example_inputs)


def _as_it_is(module: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    from torch._functorch.aot_autograd import make_boxed_func

    boxed: Callable[..., Any] = make_boxed_func(module.forward)
    return boxed


def _compiled(module: Any) -> Any:
    """The graph of ATen operators with its parts compiled."""
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from torch.fx.passes.operator_support import create_op_support

    can = _expressible(module)
    support = create_op_support(lambda _, node: node in can)
    parts = CapabilityBasedPartitioner(module, support, allows_single_node_partition=True)
    fused = parts.partition_and_fuse()
    for node in fused.graph.nodes:
        if node.op == "call_module" and node.target.startswith("fused_"):
            setattr(fused, node.target, _part(fused.get_submodule(node.target)))
    fused.recompile()
    return fused


def _expressible(module: Any) -> set[FxNode]:
    """The nodes that can be said; the others are told to the log."""
    can: set[FxNode] = set()
    cannot: list[str] = []
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        taken = [user.args[1] for user in node.users if user.target is operator.getitem]
        why = None if node.target is operator.getitem else expressible(node, taken)
        if why is not None:
            cannot.append(f"{shown(node)}: {why}")
        elif node.target is not operator.getitem or node.args[0] in can:
            can.add(node)
    if cannot:
        _LOG.warning("%d nodes of the graph run in PyTorch:\n  %s", len(cannot), "\n  ".join(cannot))
    return can


def _part(module: Any) -> Any:
    """A part of a graph as a module that calls what was compiled; the part itself where that cannot be had."""
    import torch

    try:
        compiled = compile(Reader(module, {}, "part").pipeline()).build()
    except TilesmithError as error:
        _LOG.warning("a part of the graph runs in PyTorch: %s", error)
        return module
    several = isinstance(next(n.args[0] for n in module.graph.nodes if n.op == "output"), list | tuple)

    def forward(_: Any, *tensors: Any) -> Any:
        found = compiled(*(t.detach().numpy() for t in tensors))
        made = [torch.from_numpy(array) for array in (found if isinstance(found, tuple) else (found,))]
        return made if several else made[0]

    return type("Part", (torch.nn.Module,), {"forward": forward})()
