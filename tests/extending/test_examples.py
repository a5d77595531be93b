"""The examples of extending: each is one short file, works from end to end, and has a page whose commands work."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from support.loop_programs import run_program
from typer.testing import CliRunner, Result

from tilesmith import platforms
from tilesmith.app.cli import app
from tilesmith.app.plugins import load_plugins
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import Compiled, Options, compile_pipeline
from tilesmith.scheduler.errors import NoBackend, ScheduleError
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.document.safe_loader import read_yaml
from tilesmith.scheduler.frontends.importer import ImportFailed
from tilesmith.scheduler.frontends.registry import importer_of
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.loop_passes.passes import optimize
from tilesmith.scheduler.lowering import lower
from tilesmith.scheduler.rewrites.refusal import Refusal
from tilesmith.scheduler.strategies.document import load_text, steps_from_document
from tilesmith.scheduler.strategies.registry import RULES
from tilesmith.scheduler.strategies.state import State, begin

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "extending"
PAGES = {
    "note.py": "primitives.md",
    "python_code.py": "backends.md",
    "roofline.py": "cost-models.md",
    "stencils.py": "importers.md",
    "strips.py": "rules.md",
}
MOST_LINES = 80
MACHINE = "i7-6700"


def loaded(name: str) -> None:
    load_plugins([str(EXAMPLES / name)])


def commands(page: str) -> list[str]:
    text = (ROOT / "docs" / "extending" / page).read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if line.startswith("    tilesmith ")]


def called(command: str, monkeypatch: pytest.MonkeyPatch) -> Result:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
    return result


def agree(compiled: Compiled, size: tuple[int, int] = (41, 27)) -> None:
    """The loop program computes what the interpreter does, on a small image."""
    pipeline, (output,) = compiled.pipeline, compiled.pipeline.outputs
    region = tuple((0, n) for n in size)
    (image,) = pipeline.inputs
    margin = 8
    shape = tuple(n + 2 * margin for n in reversed(size))
    pixels = np.random.default_rng(0).integers(0, 200, shape).astype(image.type.numpy)
    inputs = {image.name: Image(pixels, (-margin,) * len(size))}
    program = optimize(lower(compiled.plan, compiled.platform), None)
    found = run_program(program, pipeline, inputs, {}, {output: region})[output][0]
    expected = interpret(pipeline, inputs, {}, {output: region})[output][0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_every_example_has_a_page() -> None:
    assert PAGES.keys() == {p.name for p in EXAMPLES.glob("*.py")}
    index = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    for name, page in PAGES.items():
        assert f"extending/{name}" in index
        assert f"extending/{page}" in index
        assert name in (ROOT / "docs" / "extending" / page).read_text(encoding="utf-8")
        assert commands(page)
        assert all(f"--plugin examples/extending/{name}" in c for c in commands(page))


@pytest.mark.parametrize("name", PAGES)
def test_an_example_is_short(name: str) -> None:
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) < MOST_LINES


@pytest.mark.parametrize("command", [c for page in ["../extending.md", *PAGES.values()] for c in commands(page)])
def test_commands_of_the_pages_work(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert called(command, monkeypatch).stdout


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "extending").glob("*.md")), ids=lambda p: p.name)
def test_python_of_the_pages_works(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for code in re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S):
        names: dict[str, object] = {}
        exec(code, names)
        assert isinstance(names["after"], State)


class TestCostModel:
    def test_it_decides(self) -> None:
        loaded("roofline.py")
        blur = pipelines.load("blur")
        compiled = compile_pipeline(blur, platforms.load(MACHINE), Options(cost_model="roofline"))
        assert (compiled.predicted.model, compiled.predicted.unit) == ("roofline", "microseconds")
        assert compiled.schedule.degraded is None
        ecm = compile_pipeline(blur, platforms.load(MACHINE))
        assert compiled.key != ecm.key
        agree(compiled)

    def test_memory_bounds_a_blur_and_arithmetic_many_functions(self) -> None:
        loaded("roofline.py")

        def terms(pipeline: Pipeline) -> dict[str, float]:
            compiled = compile_pipeline(pipeline, platforms.load(MACHINE), Options(cost_model="roofline"))
            parts = [t for s in compiled.predicted.stages for t in s.terms]
            return {name: sum(float(t.value) for t in parts if t.name == name) for name in ("arithmetic", "memory")}

        copied = terms(stencil("soft = photo[0, 0] + 1.0"))
        assert copied["memory"] > copied["arithmetic"] == 0
        heavy = terms(stencil("soft = " + " + ".join(f"sin(photo[{k}, 0] * 0.1)" for k in range(40))))
        assert heavy["arithmetic"] > heavy["memory"] == 0

    def test_without_the_plugin_there_is_no_such_model(self) -> None:
        with pytest.raises(ScheduleError, match="no cost model 'roofline'; cost models: ecm, taco2019"):
            compile_pipeline(pipelines.load("blur"), platforms.load(MACHINE), Options(cost_model="roofline"))
        result = CliRunner().invoke(app, ["schedule", "blur", "--cost-model", "emc"])
        assert result.exit_code == 2
        assert "did you mean 'ecm'?" in result.stderr


class TestBackend:
    OPTIONS = Options(backend="python")

    def computed(self, compiled: Compiled) -> tuple[np.ndarray, np.ndarray]:
        """The result of the Python for a small image with the channels that are expected, and the interpreter's."""
        (output,), (image,) = compiled.pipeline.outputs, compiled.pipeline.inputs
        channels = [extent for _, extent in (compiled.pipeline.estimate(output) or ())[2:]]
        mins = (-4, -4, *(0 for _ in channels))
        pixels = np.random.default_rng(1).random((*channels, 13 + 8, 19 + 8)) * 200
        inputs = {image.name: Image(pixels.astype(image.type.numpy), mins)}
        region = ((0, 19), (0, 13), *((0, n) for n in channels))
        (expected,) = interpret(compiled.pipeline, inputs, {}, {output: region})[output]
        found = np.zeros_like(expected)
        images = {f"{image.name}_0": (inputs[image.name].array.T, mins), f"{output}_0": (found.T, (0, 0, 0))}
        functions: dict[str, Callable[..., None]] = {}
        exec(compiled.source.code, functions)
        with np.errstate(all="ignore"):
            functions[compiled.source.entry](images, {p.name: p.default for p in compiled.pipeline.params})
        return found, expected

    @pytest.mark.parametrize("name", ["blur", "unsharp", "sobel", "soft"])
    def test_its_code_computes_what_the_interpreter_does(self, name: str) -> None:
        loaded("python_code.py")
        pipeline = stencil(SOFT) if name == "soft" else pipelines.load(name)
        compiled = compile_pipeline(pipeline, self.plain(), self.OPTIONS)
        assert (compiled.source.language, compiled.source.code_name) == ("py", f"{pipeline.name}.py")
        found, expected = self.computed(compiled)
        np.testing.assert_allclose(found, expected, rtol=1e-4)

    def plain(self) -> platforms.Platform:
        return platforms.load_text((EXAMPLES / "plain.yaml").read_text(encoding="utf-8"))

    def test_vectors_are_refused(self) -> None:
        loaded("python_code.py")
        with pytest.raises(NoBackend, match="no code is generated for "):
            compile_pipeline(pipelines.load("harris"), platforms.load(MACHINE), self.OPTIONS)

    def test_files_are_named_after_the_language(self, tmp_path: Path) -> None:
        plugin, plain = str(EXAMPLES / "python_code.py"), str(EXAMPLES / "plain.yaml")
        arguments = ["--plugin", plugin, "schedule", "blur", "--platform", plain, "--backend", "python"]
        result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "made")])
        assert result.exit_code == 0, result.output
        written = {p.name for p in (tmp_path / "made").iterdir()}
        assert "blur.py" in written
        assert not written & {"blur.c", "blur.h"}
        assert "compile it with" not in result.stderr


SOFT = "rows = max(photo[-1, 0], photo[1, 0])\nsoft = sqrt(rows[0, -1] * 2.0) - exp(0.01 * rows[0, 1])"


def stencil(stages: str, image: str = "photo: uint8 640 x 480") -> Pipeline:
    """The pipeline of a file that the example of an importer reads."""
    loaded("stencils.py")
    importer = importer_of("a.stencil")
    assert importer is not None
    path = Path("a.stencil")
    path.write_text(f"# a comment\n{image}\n\n{stages}\n")
    return importer.load(str(path)).pipeline


class TestImporter:
    def test_a_file_is_a_pipeline(self) -> None:
        pipeline = stencil("rows = photo[-1,0] + 2.0 * photo[0, 0]\nsoft = (rows[0, -1] + rows[0, 1]) / 6.0")
        assert [s.name for s in pipeline.stages] == ["rows", "soft"]
        assert pipeline.outputs == ("soft",)
        agree(compile_pipeline(pipeline, platforms.load(MACHINE)))

    @pytest.mark.parametrize(
        ("image", "stages", "message"),
        [
            ("photo uint8", "soft = photo[0, 0]", "a.stencil:2: 'photo uint8' is not understood"),
            ("photo: uint8 8 x 8", "soft: photo[0, 0]", "a.stencil:4: "),
            ("photo: uint8 8 x 8", "", "has an image and no stage"),
            ("", "", "a.stencil:1: '' is not understood"),
        ],
    )
    def test_lines_that_are_wrong_are_named(self, image: str, stages: str, message: str) -> None:
        with pytest.raises(ImportFailed, match=re.escape(message)):
            stencil(stages, image)

    def test_what_means_no_pipeline_is_told_like_a_document(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("b.stencil").write_text("photo: uint8 8 x 8\nsoft = foto[0, 0]\n")
        plugin = str(EXAMPLES / "stencils.py")
        result = CliRunner().invoke(app, ["--plugin", plugin, "schedule", "b.stencil"])
        assert result.exit_code == 2
        assert "did you mean 'photo'?" in result.stderr
        result = CliRunner().invoke(app, ["--plugin", plugin, "schedule", "c.stencil"])
        assert result.exit_code == 2
        assert "'c.stencil' cannot be read: No such file" in result.stderr


class TestRule:
    STRATEGY = """
        strategy: rows
        steps:
          - at: {where: is an output, do: [{strips: {per_thread: 8}}, vectorize]}
          - inline: {where: is pointwise}
    """

    def test_a_strategy_has_it(self) -> None:
        loaded("strips.py")
        state = begin(pipelines.load("blur"), platforms.load(MACHINE))
        after = load_text(dedent(self.STRATEGY)).strategy(state)
        assert isinstance(after, State), str(after)
        check(after.plan)
        (group,) = (g for g in after.schedule.groups if g.output == "blur_y")
        assert group.parallel == "y.outer"
        tile = group.tile("y")
        assert tile is not None
        assert tile.size == -(-2560 // (8 * platforms.load(MACHINE).threads))
        assert "strips" in [step.rule for step in after.applied]

    def test_its_example_and_what_it_says_are_in_the_registry(self) -> None:
        loaded("strips.py")
        found = RULES["strips"]
        after = steps_from_document(read_yaml(found.example.steps, Limits()))(
            begin(pipelines.load(found.example.pipeline), platforms.load(MACHINE))
        )
        assert isinstance(after, State), str(after)
        assert "parallel for y.outer" in found.drawing

    def test_it_says_where_it_does_not_fit(self) -> None:
        loaded("strips.py")
        state = begin(stencil("soft = photo[0, 0] + 1.0", "photo: uint8 64 x 4"), platforms.load(MACHINE))
        refusal = RULES["strips"](per_thread=64)(state, "soft")
        assert isinstance(refusal, Refusal)
        assert "it has 4 along 'y', and" in str(refusal)


class TestPrimitive:
    def test_a_caller_fixes_it_and_the_loop_nest_shows_it(self) -> None:
        plugin = str(EXAMPLES / "note.py")
        arguments = ["schedule", "blur", "--platform", MACHINE, "--fix", "blur_y.note=by hand"]
        result = CliRunner().invoke(app, ["--plugin", plugin, *arguments, "--out", "made"])
        assert result.exit_code == 0, result.output
        assert "# by hand\n" in result.stdout
        again = ["schedule", "blur", "--platform", MACHINE, "--schedule", "made/schedule.json"]
        assert "by hand" in CliRunner().invoke(app, ["--plugin", plugin, *again]).stdout

    def test_without_the_plugin_nobody_knows_it(self) -> None:
        arguments = ["schedule", "blur", "--platform", MACHINE, "--fix", "blur_y.note=by hand"]
        assert CliRunner().invoke(app, arguments).exit_code == 2


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
