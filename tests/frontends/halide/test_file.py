"""Serialised pipelines of Halide: what they become is what the live Funcs become; bytes are hostile."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import flatbuffers
import pytest
from support.modules import require_module

from tilesmith.scheduler.errors import TilesmithError
from tilesmith.scheduler.frontends.halide.expressions import Inexpressible, Translator, constant
from tilesmith.scheduler.frontends.halide.flatbuffer import BadBuffer
from tilesmith.scheduler.frontends.halide.importer import HalideImporter
from tilesmith.scheduler.frontends.halide.serialized import HalideType, Node, read
from tilesmith.scheduler.frontends.importer import ImportFailed
from tilesmith.scheduler.frontends.registry import content_importers, importer_of
from tilesmith.scheduler.ir.pipeline.expressions import Const
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.ir.pipeline.types import INT32

require_module("halide")

import halide as hl  # noqa: E402
from support.halide_users import CASES  # noqa: E402

from tilesmith.scheduler.frontends.document.document import to_document  # noqa: E402
from tilesmith.scheduler.frontends.halide import from_halide  # noqa: E402

pytestmark = pytest.mark.halide


def written(name: str) -> tuple[bytes, hl.Pipeline]:
    whole = hl.Pipeline(CASES[name]().outputs)
    return bytes(hl.serialize_pipeline(whole)), whole


@pytest.mark.parametrize("name", ["blur", "equalise", "best_match", "recursive_filter", "inline_reductions", "noise"])
def test_bytes_become_what_the_funcs_become(name: str) -> None:
    content, whole = written(name)
    found = HalideImporter().read(content)
    assert to_document(found.pipeline) == to_document(from_halide(whole).pipeline)


def test_params_have_no_values_there() -> None:
    content, whole = written("unsharp")
    document = to_document(HalideImporter().read(content).pipeline)
    live = to_document(from_halide(whole).pipeline)
    assert document.pop("params") == [{"name": "strength", "type": "float32"}]
    assert live.pop("params")[0]["default"] == 1.5
    assert document == live


def test_files_are_pipelines_for_every_command(tmp_path: Path) -> None:
    path = tmp_path / "blur.hlpipe"
    path.write_bytes(written("blur")[0])
    importer = importer_of(str(path))
    assert importer is not None
    assert importer.load(str(path)).pipeline.name == "blur"
    assert content_importers()["halide"] is importer


def test_what_cannot_be_expressed_is_named() -> None:
    f = hl.Func("hopeless")
    f[hl.Var("x")] = hl.cast(hl.Float(32), hl.ImageParam(hl.Float(16), 1, "image")[hl.Var("x")])
    f.set_estimates([hl.Range(0, 9)])
    with pytest.raises(ImportFailed, match="float16"):
        HalideImporter().read(bytes(hl.serialize_pipeline(hl.Pipeline(f))))


def test_other_bytes_are_refused() -> None:
    for content in (b"", b"\x00" * 64, b"\xff" * 64, b"no pipeline at all", bytes(range(256))):
        with pytest.raises(ImportFailed):
            HalideImporter().read(content)


def test_bytes_that_were_changed_are_read_or_refused() -> None:
    content = written("unsharp")[0]
    chance = random.Random(0)
    for _ in range(300):
        changed = bytearray(content)
        for _ in range(chance.randint(1, 8)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        with suppress(TilesmithError):
            found = HalideImporter().read(bytes(changed[: chance.randint(len(changed) // 2, len(changed))]))
            assert found.pipeline.outputs


def test_few_bytes_that_mean_a_great_deal_are_refused() -> None:
    """A sum of two sums that are one table, a hundred times over: 2 to the 100 terms."""
    builder = flatbuffers.Builder(0)
    builder.StartObject(2)
    table = builder.EndObject()  # an integer
    kind = 1
    for _ in range(100):
        builder.StartObject(4)
        for slot in (0, 2):
            builder.PrependUint8Slot(slot, kind, 0)
            builder.PrependUOffsetTRelativeSlot(slot + 1, table, 0)
        table, kind = builder.EndObject(), 7
    builder.StartVector(4, 1, 4)
    builder.PrependUOffsetTRelative(table)
    values = builder.EndVector()
    builder.StartVector(1, 1, 1)
    builder.PrependUint8(kind)
    kinds = builder.EndVector()
    builder.StartObject(8)
    builder.PrependUOffsetTRelativeSlot(3, kinds, 0)
    builder.PrependUOffsetTRelativeSlot(4, values, 0)
    definition = builder.EndObject()
    builder.StartObject(13)
    builder.PrependUOffsetTRelativeSlot(7, definition, 0)
    func = builder.EndObject()
    builder.StartVector(4, 1, 4)
    builder.PrependUOffsetTRelative(func)
    funcs = builder.EndVector()
    version = builder.CreateString("21.0.0")
    builder.StartObject(9)
    builder.PrependUOffsetTRelativeSlot(0, funcs, 0)
    builder.PrependUOffsetTRelativeSlot(8, version, 0)
    builder.Finish(builder.EndObject())
    with pytest.raises(BadBuffer, match="more than a pipeline could"):
        read(bytes(builder.Output()))


@pytest.mark.parametrize("name", ["bitwise_and", "shift_left", "abs", "pow_f32", "sqrt_f32", "likely", "require"])
def test_calls_that_have_too_few_operands_are_refused(name: str) -> None:
    refused: list[Inexpressible] = []
    translator = Translator({}, {}, {}, lambda *_: Const(0, INT32), refused.append, {})
    translator.expr(Node("call", HalideType("float" if "_f32" in name else "int", 32), name=name))
    assert name.removesuffix("_f32") in str(refused[0])


def test_what_no_compiler_of_halide_writes_is_refused_or_a_quotient() -> None:
    """Dims that an image has not, and numbers beyond their type."""
    image = Node("variable", HalideType("int", 32), name="image.extent.2", param="image")
    refused: list[Inexpressible] = []
    translator = Translator({}, {}, {"image": ("image", ("x", "y"))}, lambda *_: Const(0, INT32), refused.append, {})
    translator.expr(image)
    assert "image.extent.2" in str(refused[0])
    huge = constant(Node("float", HalideType("float", 32), value=1e300))
    assert to_text(huge) == "1.0 / 0.0"
