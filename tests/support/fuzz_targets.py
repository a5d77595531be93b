"""What `fuzz_inputs` feeds: for each kind of input a function that takes the bytes of one, with seeds, words and a
mutation that keeps its structure."""

from __future__ import annotations

import ast
import io
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Protocol

import numpy as np
from support.mutations import mutated_message, mutated_text, mutated_tree, with_png_checksums

ROOT = Path(__file__).parents[2]
MOST_SEED_BYTES = 3000
RANDOM_SEEDS = 30
"""Random pipelines of each family among the seeds of documents."""

_LINES = re.DOTALL | re.MULTILINE

Mutate = Callable[[bytes, int], bytes]
"""The mutation of bytes that the fuzzer itself has."""


class Target(Protocol):
    """A reader of untrusted input."""

    instrumented: ClassVar[tuple[str, ...]]
    """Packages whose coverage leads the fuzzer."""

    def seeds(self) -> Iterator[bytes]: ...

    def words(self) -> Sequence[str]:
        """Words of the grammar."""
        ...

    def read(self, content: bytes) -> str:
        """What the product makes of the input, as text, the same each time; or the problems that it tells. Raises where
        something else happens."""
        ...

    def mutated(self, rng: Random, content: bytes, plain: Mutate, most: int) -> bytes: ...


class Undocumented(Exception):
    """The input was refused, but not in the way that the documentation promises."""


def told(error: Exception) -> str:
    """The problems of a refusal. Undocumented where one has no known code, or a place that is none."""
    from tilesmith.scheduler.errors import DocumentError, InternalError

    if isinstance(error, InternalError):
        raise error
    if isinstance(error, DocumentError):
        for p in error.problems:
            if p.code not in _codes() or (p.pointer and not p.pointer.startswith("/")) or not p.message:
                raise Undocumented(f"a problem without code, place or message: {p!r}")
        if not error.problems:
            raise Undocumented("a refusal without a problem")
    if not str(error):
        raise Undocumented(f"{type(error).__name__} without a message")
    return f"{type(error).__name__}: {error}"


@cache
def _codes() -> frozenset[str]:
    """The codes of problems: those of documents, and those of rules over expressions."""
    from tilesmith.scheduler.frontends.document.codes import CODES

    page = (ROOT / "docs/rules.md").read_text(encoding="utf-8").partition("## The library")[0]
    return frozenset((*CODES, *re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)))


def _documents() -> Iterator[dict[str, Any]]:
    """The documents of the repository that are small, and random ones."""
    from support.random_pipelines import random_pipeline
    from support.random_stencils import random_stencils
    from support.random_updates import random_updates

    from tilesmith.scheduler.frontends.document.limits import Limits
    from tilesmith.scheduler.frontends.document.safe_loader import read_yaml

    files = [*ROOT.glob("tilesmith/scheduler/pipelines/*.yaml"), *ROOT.glob("examples/*.yaml")]
    texts = [path.read_text(encoding="utf-8") for path in sorted(files) if path.stat().st_size < MOST_SEED_BYTES]
    for page in sorted(ROOT.glob("docs/**/*.md")):
        texts += re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), _LINES)
    yield from (read_yaml(text, Limits()) for text in texts if re.search("^format:.*^stages:", text, _LINES))
    for family in (random_updates, random_pipeline, random_stencils):
        made = (family(seed) for seed in range(RANDOM_SEEDS))
        yield from (document for document in made if len(json.dumps(document)) < MOST_SEED_BYTES)


def _language_words() -> tuple[str, ...]:
    from tilesmith.scheduler.frontends.document.functions import FUNCTIONS
    from tilesmith.scheduler.frontends.document.parser import REDUCTIONS

    operators = re.findall(
        r"\S+", "+ - * / // % ** & | ^ ~ << >> < <= == != > >= ( ) [ ] , . not and or if else for in"
    )
    names = ("x", "y", "c", "r", "f.min", "f.max", "f.extent", "x.min", "true", "False", "1.5", "0x10", "1e9", "-1")
    calls = tuple(f"{name}(" for name in sorted({*FUNCTIONS, *REDUCTIONS}))
    return (*operators, *names, *calls, "sum(1 for r in range(3))", "f(x, y)", "[0]", "\n", "#", "'")


_KEYS = (
    *("format", "name", "doc", "params", "inputs", "stages", "outputs", "estimates", "type", "dims", "boundary"),
    *("kind", "value", "domain", "storage", "region", "values", "updates", "where", "at", "default", "min", "max"),
    *("repeat_edge", "constant", "mirror", "wrap", "uint8", "int16", "uint32", "int64", "float32", "float64", "bool"),
)


@dataclass(frozen=True)
class Documents:
    """Pipeline documents: validated, analysed, scheduled, and made C of."""

    instrumented: ClassVar = tuple(f"tilesmith.scheduler.{part}" for part in ("frontends", "analysis", "rewrites"))

    def seeds(self) -> Iterator[bytes]:
        for n, document in enumerate(_documents()):
            yield (json.dumps(document) if n % 4 else _as_yaml(document)).encode()

    def words(self) -> Sequence[str]:
        return (*_language_words(), *_KEYS)

    def read(self, content: bytes) -> str:
        from tilesmith import platforms
        from tilesmith.scheduler.analysis.size_warnings import size_warnings
        from tilesmith.scheduler.compiler import Options, decide, generated, laid_out
        from tilesmith.scheduler.errors import IllegalSchedule, ScheduleError, TilesmithError
        from tilesmith.scheduler.frontends.document.document import canonical_json, load, load_text, to_document
        from tilesmith.scheduler.ir.schedule import document as schedules

        try:
            pipeline = load_text(content)
        except TilesmithError as error:
            return told(error)
        if load(to_document(pipeline)) != pipeline:
            raise Undocumented("the canonical document is another pipeline")
        try:
            found = decide(pipeline, platforms.load("i7-6700"), Options())
        except IllegalSchedule:
            raise
        except ScheduleError as error:  # of places beyond every image, at the estimates
            return told(error)
        source = generated(laid_out(found.plan, platforms.load("i7-6700")))
        warnings = size_warnings(found.plan, source.buffers)
        schedule = json.dumps(schedules.to_document(found.plan.schedule))
        return "\n".join((canonical_json(pipeline), schedule, source.code, *warnings))

    def mutated(self, rng: Random, content: bytes, plain: Mutate, most: int) -> bytes:
        return _mutated_document(rng, content, _donors(), self.words(), lambda data: plain(data, most))


def _mutated_document(
    rng: Random, content: bytes, donors: Sequence[Any], words: Sequence[str], plain: Callable[[bytes], bytes]
) -> bytes:
    """The document, in JSON or YAML, changed as a tree of values, or now and then as bytes."""
    from tilesmith.scheduler.errors import TilesmithError
    from tilesmith.scheduler.frontends.document.limits import Limits
    from tilesmith.scheduler.frontends.document.safe_loader import read_json, read_yaml, sniff_yaml

    if rng.random() < 0.1:
        return plain(content)
    try:
        tree = (read_yaml if sniff_yaml(content) else read_json)(content, Limits())
    except TilesmithError:
        tree = None
    if not isinstance(tree, dict | list):
        return plain(content)
    changed = mutated_tree(rng, tree, donors, words)
    text = _as_yaml(changed) if rng.random() < 0.1 else json.dumps(changed)
    return text.encode("utf-8", "surrogatepass")


def _as_yaml(document: Any) -> str:
    import yaml

    whole = json.loads(json.dumps(document))  # what is there twice is written twice: there are no aliases
    return yaml.safe_dump(whole, sort_keys=False)


@cache
def _donors() -> list[Any]:
    return list(_documents())


_SCHEDULED = ("blur", "harris", "max_filter", "bilateral_grid", "unsharp")
"""Shipped pipelines that documents of schedules are of; strategies and platforms are tried on the first."""


@cache
def _shipped(name: str) -> Any:
    from tilesmith.scheduler import pipelines

    return pipelines.load(name)


class _Trees:
    """Targets that read documents which are trees of values: seeds are documents that are right, and changes take parts
    of these."""

    @staticmethod
    def documents() -> list[Any]:
        raise NotImplementedError

    def words(self) -> Sequence[str]:
        raise NotImplementedError

    def seeds(self) -> Iterator[bytes]:
        yield from (json.dumps(document).encode() for document in self.documents())

    def mutated(self, rng: Random, content: bytes, plain: Mutate, most: int) -> bytes:
        return _mutated_document(rng, content, self.documents(), self.words(), lambda data: plain(data, most))


@dataclass(frozen=True)
class Strategies(_Trees):
    """Strategies: read, written again, and applied to a pipeline."""

    instrumented: ClassVar = ("tilesmith.scheduler.strategies", "tilesmith.scheduler.rewrites.expression_rules")

    @staticmethod
    @cache
    def documents() -> list[Any]:
        """Strategies that are shipped, and those of the docs."""
        from tilesmith.scheduler.frontends.document.limits import Limits
        from tilesmith.scheduler.frontends.document.safe_loader import read_yaml

        files = sorted(ROOT.glob("tilesmith/scheduler/strategies/catalog/*.yaml"))
        texts = [path.read_text(encoding="utf-8") for path in files]
        for page in ("strategies", "rules"):
            texts += re.findall(r"^```yaml\n(.*?)^```", (ROOT / f"docs/{page}.md").read_text(encoding="utf-8"), _LINES)
        return [read_yaml(text, Limits()) for text in texts if text.startswith("strategy:")]

    def words(self) -> Sequence[str]:
        from tilesmith.scheduler.strategies.document import document_words
        from tilesmith.scheduler.strategies.registry import RULES

        return (*RULES, *document_words(), *_language_words())

    def read(self, content: bytes) -> str:
        from tilesmith import platforms
        from tilesmith.scheduler.compiler import Options, decide, generated, laid_out
        from tilesmith.scheduler.errors import TilesmithError
        from tilesmith.scheduler.strategies import document as strategies

        machine = platforms.load("i7-6700")
        try:
            strategy = strategies.load_text(content)
            if strategies.from_document(strategy.to_document()) != strategy:
                raise Undocumented("the document that is written is another strategy")
            found = decide(_shipped(_SCHEDULED[0]), machine, Options(strategy=strategy))
        except TilesmithError as error:
            return told(error)
        return generated(laid_out(found.plan, machine)).code


@dataclass(frozen=True)
class Platforms(_Trees):
    """Descriptions of machines: read, written again, and scheduled for."""

    instrumented: ClassVar = ("tilesmith.platforms", "tilesmith.cost_models")

    @staticmethod
    @cache
    def documents() -> list[Any]:
        """Platforms of the catalog."""
        from tilesmith import platforms

        return [platforms.to_document(platforms.load(name)) for name in platforms.catalog_names()]

    def words(self) -> Sequence[str]:
        return ("gcc", "clang", "-O3", "x86-64", "avx2", "neon", "opencl", "inclusive", "write_back")

    def read(self, content: bytes) -> str:
        from tilesmith import platforms
        from tilesmith.platforms import PlatformError
        from tilesmith.platforms.documents import load_text
        from tilesmith.scheduler.compiler import Options, decide, generated, laid_out
        from tilesmith.scheduler.errors import TilesmithError

        try:
            machine = load_text(content)
            if platforms.parse(platforms.to_document(machine)) != machine:
                raise Undocumented("the document that is written is another platform")
            found = decide(_shipped(_SCHEDULED[0]), machine, Options())
            return generated(laid_out(found.plan, machine)).code
        except (TilesmithError, PlatformError) as error:
            return told(error)


@dataclass(frozen=True)
class Schedules(_Trees):
    """Schedules as a person writes them: read, written again, checked, priced, and made C of."""

    instrumented: ClassVar = (
        *(f"tilesmith.scheduler.{part}" for part in ("ir.schedule", "legality", "lowering")),
        "tilesmith.scheduler.rewrites",
    )

    @staticmethod
    @cache
    def documents() -> list[Any]:
        """Schedules that both methods decide on."""
        from tilesmith import platforms
        from tilesmith.scheduler.compiler import Options, decide
        from tilesmith.scheduler.ir.schedule import document as schedules

        made = (
            decide(_shipped(name), platforms.load("i7-6700"), Options(method=method))
            for name in _SCHEDULED
            for method in ("default", "taco2019")
        )
        return [schedules.to_document(found.plan.schedule) for found in made]

    def words(self) -> Sequence[str]:
        from tilesmith.scheduler.ir.schedule.primitives import registry

        levels = ("x.inner", "x.outer", "y.inner", "y.outer", "root", "inline", "memory", "registers", "output")
        return (*levels, *(primitive.key for primitive in registry.primitives()))

    def read(self, content: bytes) -> str:
        from tilesmith import platforms
        from tilesmith.scheduler.compiler import Options, decide, generated, laid_out
        from tilesmith.scheduler.errors import TilesmithError
        from tilesmith.scheduler.frontends.document.limits import Limits
        from tilesmith.scheduler.frontends.document.safe_loader import read_json
        from tilesmith.scheduler.ir.schedule import document as schedules

        machine = platforms.load("i7-6700")
        try:
            schedule = schedules.from_document(read_json(content, Limits()))
            if schedules.from_document(schedules.to_document(schedule)) != schedule:
                raise Undocumented("the document that is written is another schedule")
            name = schedule.pipeline if schedule.pipeline in _SCHEDULED else _SCHEDULED[0]
            found = decide(_shipped(name), machine, Options(schedule=schedule))
            return generated(laid_out(found.plan, machine)).code
        except TilesmithError as error:
            return told(error)


@dataclass(frozen=True)
class Expressions:
    """The text of an expression in a stage that may read images of every kind: parsed, typed, printed, parsed again."""

    instrumented: ClassVar = ("tilesmith.scheduler.frontends", "tilesmith.scheduler.ir.pipeline")

    def seeds(self) -> Iterator[bytes]:
        found = dict.fromkeys(
            _renamed(expression)
            for document in _documents()
            for stage in document["stages"]
            if isinstance(expression := stage.get("value"), str) and len(expression) < 1000
        )
        yield from (text.encode() for text in found)

    def words(self) -> Sequence[str]:
        return _language_words()

    def read(self, content: bytes) -> str:
        from tilesmith.scheduler.errors import TilesmithError
        from tilesmith.scheduler.frontends.document.document import canonical_json, load, to_document

        try:
            pipeline = load(_around(content.decode("utf-8", "replace")))
        except TilesmithError as error:
            return told(error)
        if load(to_document(pipeline)) != pipeline:
            raise Undocumented("the canonical document is another pipeline")
        return canonical_json(pipeline)

    def mutated(self, rng: Random, content: bytes, plain: Mutate, most: int) -> bytes:
        if rng.random() < 0.2:
            return plain(content, most)
        return mutated_text(rng, content.decode("utf-8", "replace"), self.words()).encode("utf-8", "replace")


def _around(expression: str) -> dict[str, Any]:
    """The document of one stage `g` that has the expression."""
    images = [("f1", "int32", ["x"]), ("f", "float32", ["x", "y"]), ("f2", "uint8", ["x", "y"])]
    images += [("f3", "uint16", ["x", "y", "c"]), ("f4", "int64", ["x", "y", "c", "k"])]
    inputs = [{"name": n, "type": t, "dims": d, "boundary": {"kind": "repeat_edge"}} for n, t, d in images]
    params = [{"name": "p", "type": "float32"}, {"name": "n", "type": "int32", "min": 0, "max": 9, "default": 3}]
    pair = {"name": "t", "dims": ["x", "y"], "value": ["f(x, y)", "int32(f2(x, y))"]}
    spans = [[0, 64], [0, 48], [0, 3], [0, 2]]
    estimates = {name: spans[: len(dims)] for name, _, dims in images} | {"g": spans[:3]}
    return {
        "format": 1,
        "name": "around",
        "params": params,
        "inputs": inputs,
        "stages": [pair, {"name": "g", "dims": ["x", "y", "c"], "value": expression}],
        "outputs": ["g"],
        "estimates": estimates,
    }


class _Rename(ast.NodeTransformer):
    """Reads of images become reads of those of `_around`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        from tilesmith.scheduler.frontends.document.functions import FUNCTIONS
        from tilesmith.scheduler.frontends.document.parser import REDUCTIONS

        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id not in {*FUNCTIONS, *REDUCTIONS, "range"}:
            node.func.id = f"f{min(len(node.args), 4)}"
        return node


def _renamed(expression: str) -> str:
    try:
        tree = ast.parse(f"({expression})".replace("\n", " "), mode="eval")
    except SyntaxError:
        return expression
    return ast.unparse(_Rename().visit(tree))


@dataclass(frozen=True)
class Importers:
    """Files that importers read in the process of the service. The first byte says which of them does."""

    instrumented: ClassVar = ("tilesmith.scheduler.frontends", "xdsl.parser", "xdsl.dialects.linalg")
    names: ClassVar = {b"h": "halide", b"m": "mlir", b"o": "onnx"}

    def seeds(self) -> Iterator[bytes]:
        for path in sorted(ROOT.glob("examples/mlir/*.mlir")):
            yield b"m" + path.read_bytes()
        tests = (ROOT / "tests/frontends/mlir/test_operations.py").read_text(encoding="utf-8")
        for text in re.findall(r'"""(func\.func[^"{]*\{(?:[^"{]|\{[^{])*)"""', tests):
            yield b"m" + text.encode()
        yield from (b"h" + content for content in _serialized())
        yield from (b"o" + content for content in _models())

    def words(self) -> Sequence[str]:
        text = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("tests/frontends/mlir/*.py"))
        operations = re.findall(r"\b(?:linalg|arith|math|tensor|func|affine)\.\w+", text)
        types = re.findall(r"\btensor<[\w?]+>|\bdense<[^>]{0,20}>|affine_map<[^>]{0,60}>", text)
        attributes = ("iterator_types", '"parallel"', '"reduction"', "strides", "dilations", "index", "%c0", "^bb0")
        return (*dict.fromkeys(operations), *dict.fromkeys(types), *attributes, "{", "}", "%a", ":", "->", "=")

    def read(self, content: bytes) -> str:
        from tilesmith.scheduler.errors import TilesmithError
        from tilesmith.scheduler.frontends.document.document import canonical_json, load, to_document
        from tilesmith.scheduler.frontends.registry import content_importers

        importer = content_importers()[self.names.get(content[:1], "mlir")]
        try:
            found = importer.read(content[1:])
            again = load(to_document(found.pipeline))
        except TilesmithError as error:
            return told(error)
        weights = (f"{name} {array.dtype} {array.shape}" for name, array in found.weights.items())
        return "\n".join((canonical_json(again), *found.notes, *weights))

    def mutated(self, rng: Random, content: bytes, plain: Mutate, most: int) -> bytes:
        kind, body = content[:1], content[1:]
        if kind == b"m" and rng.random() < 0.8:
            return kind + mutated_text(rng, body.decode("utf-8", "replace"), self.words()).encode("utf-8", "replace")
        if kind == b"o" and rng.random() < 0.8:
            import onnx
            from google.protobuf.message import DecodeError

            model = onnx.ModelProto()
            try:
                model.ParseFromString(body)
                mutated_message(rng, model)
                return kind + model.SerializeToString()
            except (DecodeError, ValueError, TypeError, IndexError):
                pass
        return kind + plain(body, most)


def _serialized() -> Iterator[bytes]:
    """Pipelines that Halide has written down."""
    import halide as hl
    from support.halide_users import CASES

    for name in sorted(CASES):
        content = bytes(hl.serialize_pipeline(hl.Pipeline(CASES[name]().outputs)))
        if len(content) < 4 * MOST_SEED_BYTES:
            yield content


def _models() -> Iterator[bytes]:
    """Models of ONNX of one operator each, and small networks."""
    from onnx import helper
    from support.onnx_models import floats, model
    from support.onnx_networks import super_resolution

    image, weights = {"a": floats(1, 2, 5, 6)}, {"w": floats(3, 2, 3, 3), "b": floats(3)}
    node = helper.make_node
    cut = {n: np.array(v, np.int64) for n, v in (("lo", [1, 0]), ("hi", [5, 4]), ("axes", [2, 3]), ("by", [2, 1]))}
    for made, constants in (
        (node("Conv", ["a", "w", "b"], ["result"], pads=[1] * 4, strides=[2, 1]), weights),
        (node("ConvTranspose", ["a", "w"], ["result"], strides=[2, 2]), {"w": floats(2, 3, 2, 2)}),
        (node("Reshape", ["a", "s"], ["result"]), {"s": np.array([2, 30], np.int64)}),
        (node("Pad", ["a", "p"], ["result"], mode="reflect"), {"p": np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)}),
        (node("Slice", ["a", *cut], ["result"]), cut),
        (node("Resize", ["a", "", "k"], ["result"], mode="linear"), {"k": np.array([1, 1, 2, 1.5], np.float32)}),
        (node("MatMul", ["a", "w"], ["result"]), {"w": floats(6, 3)}),
        (node("Gather", ["a", "i"], ["result"], axis=2), {"i": np.array([0, 2])}),
        (node("Concat", ["a", "a"], ["result"], axis=1), {}),
        *((node(n, ["a", "b"], ["result"]), {"b": floats(6)}) for n in ("Add", "Mul", "Pow", "Min", "Max", "Less")),
        *((node(n, ["a"], ["result"], kernel_shape=[2, 2]), {}) for n in ("MaxPool", "AveragePool")),
        *((node(n, ["a"], ["result"]), {}) for n in ("Relu", "Softmax", "Transpose", "Flatten", "ReduceSum", "Gelu")),
    ):
        yield model([made], image, constants).SerializeToString()
    yield super_resolution().SerializeToString()


@dataclass(frozen=True)
class Images:
    """Image files, decoded as the confined program does it. The first two bytes say what the input wants."""

    instrumented: ClassVar = ("tilesmith.app.runtime", "tifffile", "png", "PIL", "numpy.lib")
    most_bytes: ClassVar = 32 << 20
    types: ClassVar = ("uint8", "uint16", "float32", "bool", "int32", "float64", "int8", "uint64")
    dims: ClassVar = (("x", "y"), ("x", "y", "c"), ("c", "x", "y"), ("x",), ("x", "y", "c", "n"))

    def seeds(self) -> Iterator[bytes]:
        for n, content in enumerate(_pictures()):
            yield bytes((n % 4, 1 | n % 2 << 4)) + content
            yield bytes((n % 8, n % 5 | n % 3 << 4)) + content

    def words(self) -> Sequence[str]:
        chunks = ("IHDR", "PLTE", "tRNS", "IDAT", "IEND", "iCCP", "eXIf", "acTL", "zTXt", "gAMA", "Exif", "PK\x03\x04")
        return (*chunks, "\x93NUMPY", "descr", "fortran_order", "shape", "<u2", "|O", "|b1", ">f8", "(5, 7)")

    def read(self, content: bytes) -> str:
        from tilesmith.app.runtime import images, previews
        from tilesmith.scheduler.ir.pipeline.pipeline import Input
        from tilesmith.scheduler.ir.pipeline.types import TYPES

        type_, how = content[:1] or b"\0", (content[1:2] or b"\0")[0]
        dims = self.dims[how % 16 % len(self.dims)]
        wanted = Input("image", TYPES[self.types[type_[0] % len(self.types)]], dims, None, dims)
        with tempfile.NamedTemporaryFile(dir=_MEMORY, prefix="tilesmith-fuzz-") as file:
            file.write(content[2:])
            file.flush()
            try:
                array = images.read(Path(file.name), wanted, how >> 4 & 3 or None, bool(how & 64), self.most_bytes)
                shown = previews.png(array, dims, False) if previews.is_picture(array, dims) else b""
            except images.ImageError as error:
                return told(error).replace(file.name, "FILE")
        if array.dtype != wanted.type.numpy or array.ndim != len(dims):
            raise Undocumented(f"an array of {array.dtype} {array.shape} for {wanted}")
        return f"{array.dtype} {array.shape} {hash(array.tobytes())} {len(shown)}"

    def mutated(self, rng: Random, content: bytes, plain: Mutate, most: int) -> bytes:
        if rng.random() < 0.05:
            return bytes((rng.randrange(256), rng.randrange(256))) + content[2:]
        body = plain(content[2:], most)
        if body.startswith(b"\x89PNG") and rng.random() < 0.9:
            body = with_png_checksums(body)
        return content[:2] + body


_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


def _pictures() -> Iterator[bytes]:
    """A small picture in each format, depth, kind of colour and compression."""
    import tifffile
    from PIL import Image

    from tilesmith.app.runtime import images

    rng = np.random.default_rng(1)

    def saved(write: Callable[[Any], object]) -> bytes:
        file = io.BytesIO()
        write(file)
        return file.getvalue()

    gray, colours = rng.integers(0, 256, (5, 7), np.uint8), rng.integers(0, 256, (5, 7, 3), np.uint8)
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA"):
        picture = Image.fromarray(colours).convert(mode)
        yield saved(lambda file, p=picture: p.save(file, "PNG"))
        yield saved(lambda file, p=picture: p.save(file, "TIFF"))
    for mode in ("L", "RGB", "CMYK"):
        picture = Image.fromarray(colours).convert(mode)
        yield saved(lambda file, p=picture: p.save(file, "JPEG"))
    exif = Image.Exif()
    exif[0x0112] = 6
    yield saved(lambda file: Image.fromarray(colours).save(file, "JPEG", exif=exif, progressive=True))
    yield saved(lambda file: Image.fromarray(colours).save(file, "TIFF", compression="tiff_lzw"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.png"
        images._write_png16(path, rng.integers(0, 65536, (4, 3, 3)).astype(np.uint16))
        yield path.read_bytes()
    for array in (gray.astype(np.uint16), colours.astype(np.float32), colours.astype(np.uint16)):
        for options in ({}, {"bigtiff": True}, {"compression": "zlib"}, {"rowsperstrip": 2}, {"tile": (16, 16)}):
            yield saved(lambda file, a=array, o=options: tifffile.imwrite(file, a, **o))
    for array in (gray, colours, gray.astype(np.float32), gray > 9, np.asfortranarray(gray.astype(">u2"))):
        yield saved(lambda file, a=array: np.save(file, a))
    yield saved(lambda file: np.savez(file, image=gray))
    yield saved(lambda file: np.savez_compressed(file, image=gray))


TARGETS: dict[str, Target] = {
    "documents": Documents(),
    "expressions": Expressions(),
    "strategies": Strategies(),
    "platforms": Platforms(),
    "schedules": Schedules(),
    "importers": Importers(),
    "images": Images(),
}
