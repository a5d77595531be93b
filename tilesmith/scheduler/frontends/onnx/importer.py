"""The importer `onnx`: models of ONNX, by the path of a file or by its content."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilesmith.scheduler.frontends.importer import ImportedPipeline, ImportFailed


@dataclass(frozen=True, slots=True)
class OnnxImporter:
    """An importer (`tilesmith.scheduler.frontends.importer.ContentImporter`) of models. Nothing of them is run."""

    name: str = "onnx"
    suffixes: tuple[str, ...] = (".onnx",)

    def load(self, source: str) -> ImportedPipeline:
        """The pipeline of a model's file, with data in other files of its folder or below. Raises ImportFailed and
        OSError."""
        return from_onnx(Path(source))

    def read(self, content: bytes) -> ImportedPipeline:
        """The pipeline of a model that has all its data in itself. Raises ImportFailed."""
        return _pipeline(_parsed(content), None, {})


def from_onnx(model: str | os.PathLike[str] | bytes | Any, sizes: Mapping[str, int] | None = None) -> ImportedPipeline:
    """The pipeline of a model: a file, its content, or an `onnx.ModelProto`. `sizes` fixes sizes that the model names
    and leaves open. Raises ImportFailed and OSError."""
    if isinstance(model, str | os.PathLike):
        path = Path(model)
        return _pipeline(_parsed(path.read_bytes()), path.parent, sizes or {})
    return _pipeline(_parsed(model) if isinstance(model, bytes) else model, None, sizes or {})


def import_onnx() -> Any:
    """The package onnx. Raises ImportFailed where it is not installed."""
    try:
        import onnx
    except ImportError:
        raise ImportFailed(("the package onnx is not installed", "pip install 'tilesmith[onnx]'")) from None
    return onnx


def _parsed(content: bytes) -> Any:
    onnx = import_onnx()
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(content)
    except (DecodeError, ValueError) as error:
        raise ImportFailed((f"this is no ONNX model, or a part of one: {error}", None)) from None
    if not model.graph.node and not model.graph.output:
        raise ImportFailed(("this is no ONNX model: it has no graph", None))
    check_nodes(model)
    _check_text(model)
    return model


def _check_text(model: Any) -> None:
    """Raises ImportFailed where a text of the model is no UTF-8: it is given as bytes then."""
    messages = [model]
    while messages:
        for field, value in messages.pop().ListFields():
            if field.message_type is not None:
                messages += [value] if hasattr(value, "ListFields") else value
            elif field.type == field.TYPE_STRING:
                wrong = [v for v in ((value,) if isinstance(value, str | bytes) else value) if isinstance(v, bytes)]
                if wrong:
                    raise ImportFailed((f"{field.full_name} is no UTF-8: {wrong[0][:40]!r}", "export the model again"))


def check_nodes(model: Any) -> None:
    """Raises ImportFailed where there are more nodes than are read, before anything is done with each."""
    from tilesmith.scheduler.frontends.onnx.reader import MAX_NODES

    count = len(model.graph.node) + sum(len(function.node) for function in model.functions)
    if count > MAX_NODES:
        raise ImportFailed((f"the graph has {count:,} nodes, at most {MAX_NODES:,} are read", None))


def _pipeline(model: Any, folder: Path | None, sizes: Mapping[str, int]) -> ImportedPipeline:
    from onnx import inliner

    from tilesmith.scheduler.frontends.onnx.reader import Reader

    _load_external(model, folder)
    try:
        model = inliner.inline_local_functions(model) if model.functions else model
    except (ValueError, RuntimeError) as error:
        told = " ".join(str(error).split())[:400]
        raise ImportFailed((f"functions of the model cannot be put in their places: {told}", None)) from None
    return Reader(model, sizes).pipeline()


def _load_external(model: Any, folder: Path | None) -> None:
    """Reads data of tensors that lies in other files: those of the model's own folder, and no others."""
    from onnx import checker, external_data_helper

    outside = [t for t in external_data_helper._get_all_tensors(model) if external_data_helper.uses_external_data(t)]
    for tensor in outside:
        location = next((e.value for e in tensor.external_data if e.key == "location"), "")
        if folder is None:
            raise ImportFailed((f"the data of {tensor.name!r} lies in another file, {location!r}",
                                "save the model with its data in itself"))  # fmt: skip
        root = folder.resolve()
        if Path(location).is_absolute() or not (root / location).resolve().is_relative_to(root):
            raise ImportFailed((f"the data of {tensor.name!r} lies outside of the model's folder: {location!r}", None))
    if outside and folder is not None:
        try:
            external_data_helper.load_external_data_for_model(model, str(folder))
        except (checker.ValidationError, ValueError, OSError, RuntimeError) as error:
            raise ImportFailed((f"data of the model cannot be read: {error}", None)) from None
