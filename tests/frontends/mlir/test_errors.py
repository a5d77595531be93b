"""What cannot be expressed is named with its operation and line; text is bounded, whatever it says."""

from __future__ import annotations

import pytest
from support.modules import require_module

require_module("xdsl")

from tilesmith.scheduler.errors import DocumentError, TilesmithError  # noqa: E402
from tilesmith.scheduler.frontends.importer import ImportFailed  # noqa: E402
from tilesmith.scheduler.frontends.mlir.importer import MlirImporter  # noqa: E402


def told(text: str) -> list[str]:
    with pytest.raises(ImportFailed) as caught:
        MlirImporter().read(text.encode())
    return [message for message, _ in caught.value.problems]


def inside(body: str) -> list[str]:
    """The problems of a function whose body begins at line 2."""
    return told(f"func.func @f(%a: tensor<4x6xf32>, %s: f32, %n: index) -> tensor<4x6xf32> {{\n{body}\n}}")


def test_operations_that_have_no_counterpart_are_named_with_their_lines() -> None:
    one, two = inside("""%e = tensor.empty() : tensor<4x6xf32>
      %b = linalg.map { math.erf } ins(%a : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>)
      %c = tensor.insert_slice %a into %e[0, 0] [4, 6] [1, 1] : tensor<4x6xf32> into tensor<4x6xf32>
      %d = linalg.add ins(%b, %c : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
      return %d : tensor<4x6xf32>""")
    assert one.startswith("line 3: linalg.map: in its body, line 3: math.erf: ")
    assert two.startswith("line 4: tensor.insert_slice: ")


def test_bodies_name_the_line_inside() -> None:
    (one,) = inside("""%e = tensor.empty() : tensor<4x6xf32>
      %b = linalg.map ins(%a : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) (%x: f32) {
        %y = math.cbrt %x : f32
        linalg.yield %y : f32
      }
      return %b : tensor<4x6xf32>""")
    assert one.startswith("line 3: linalg.map: in its body, line 4: math.cbrt: ")


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("func.func @f(%a: tensor<?xf32>) -> tensor<?xf32> {\n  return %a : tensor<?xf32>\n}", 1, "sizes"),
        ("func.func @f(%a: tensor<4xf16>) -> tensor<4xf16> {\n  return %a : tensor<4xf16>\n}", 1, "f16"),
        ("func.func @f(%a: memref<4xf32>) {\n  return\n}", 1, "memref"),
        ("func.func @f(%a: tensor<1x1x1x1x1x1xf32>) {\n  return\n}", 1, "at most 5 dims"),
        ("func.func @f(%a: tensor<4xf32>) {\n  return\n}", 1, "nothing is returned"),
        ("func.func @f(%a: f32) -> f32 {\n  return %a : f32\n}", 2, "scalar"),
        ("\n\nfunc.func @f( {\n}", 3, ""),
        ("func.func @f() {\n  %a = linalg.unheard_of\n}", 2, "linalg.unheard_of"),
        ("func.func @f() {\n  %a = scf.execute\n}", 2, "scf.execute"),
        ("func.func @f(%a: tensor<4xf32>) {\n  %b = linalg.add ins(%a : tensor<4xf32>)\n  return\n}", 2, ""),
        ("func.func private @f()", None, "no func.func with a body"),
        ("", 1, ""),
    ],
)
def test_what_is_wrong_has_its_line(text: str, line: int | None, word: str) -> None:
    (problem,) = told(text)
    assert line is None or problem.startswith(f"line {line}: ")
    assert word in problem


def test_functions_are_chosen_by_name(tmp_path) -> None:
    one = "func.func @{}(%a: tensor<4xf32>) -> tensor<4xf32> {{\n  return %a : tensor<4xf32>\n}}\n"
    path = tmp_path / "two.mlir"
    path.write_text(one.format("first") + one.format("second"))
    assert MlirImporter().load(f"{path}:second").pipeline.name == "second"
    for source in (path, f"{path}:third"):
        with pytest.raises(ImportFailed, match=r"first, second|function") as caught:
            MlirImporter().load(str(source))
        ((_, hint),) = caught.value.problems
        assert hint is not None


def test_loops_that_no_document_has() -> None:
    body = """%b = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "{kind}"]}}
      ins(%a : tensor<4x6xf32>) outs(%e : {out}) {{
      ^bb0(%x: f32, %o: f32):
        linalg.yield %x : f32
      }} -> {out}
      return %b : {out}"""
    whole, first = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (i)>"

    def one(maps: str, kind: str, out: str) -> str:
        text = f"%e = tensor.empty() : {out}\n" + body.format(maps=maps, kind=kind, out=out)
        (problem,) = told(f"func.func @f(%a: tensor<4x6xf32>) -> {out} {{\n{text}\n}}")
        assert problem.startswith("line 3: linalg.generic: ")
        return problem

    assert "with one of a reduction" in one(f"{whole}, {whole}", "reduction", "tensor<4x6xf32>")
    assert "without one of the parallel loops" in one(f"{whole}, {first}", "parallel", "tensor<4xf32>")
    assert "other places" in one(f"{whole}, affine_map<(i, j) -> (i + j, j)>", "parallel", "tensor<9x6xf32>")


HOSTILE = {
    "deep brackets": "func.func @f() {\n %a = arith.constant dense<"
    + "[" * 50_000
    + "]" * 50_000
    + "> : tensor<1xf32>\n}",
    "deep maps": "#m = affine_map<(d) -> (" + "(" * 50_000 + "d" + ")" * 50_000 + ")>",
    "deep regions": "module {" * 20_000 + "}" * 20_000,
    "deep tuples": "func.func @f(%a: " + "tuple<" * 20_000 + "f32" + ">" * 20_000 + ") {\nreturn\n}",
    "too long": " " * (4 << 20) + "\n",
    "too many": "func.func @f() {\n" + "%a = tensor.empty() : tensor<1xf32>\n" * 20_100 + "return\n}",
    "no text": "\x00\x01\x02",
    "open string": 'func.func @f() attributes {a = "',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused(name: str) -> None:
    assert told(HOSTILE[name])


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(ImportFailed, match="byte 1 is not UTF-8"):
        MlirImporter().read(b"a\xff")


def test_values_that_double_do_not_grow_without_end() -> None:
    doubled = "".join(f"%v{k + 1} = arith.mulf %v{k}, %v{k} : f32\n" for k in range(100)).replace("%v0", "%s")
    problems = inside(f"{doubled}%b = tensor.splat %v100 : tensor<4x6xf32>\nreturn %b : tensor<4x6xf32>")
    assert "too long when it is written out" in problems[0]


def test_tensors_of_no_memory_are_refused() -> None:
    size = "99999999999x99999999999"
    text = f"""func.func @f() -> tensor<{size}xf32> {{
      %a = arith.constant dense<1.0> : tensor<{size}xf32>
      return %a : tensor<{size}xf32> }}"""
    with pytest.raises((ImportFailed, DocumentError)) as caught:
        MlirImporter().read(text.encode())
    assert isinstance(caught.value, TilesmithError)


@pytest.mark.parametrize("string", ['"' + 40 * "a", '"' + 40 * "a" + '\\q"', '"" "' + 40 * "a" + "\n"])
def test_strings_that_do_not_end(string: str) -> None:
    assert told(f"// it's \"\nfunc.func @f() {{\n {string}")[0].startswith("line 3: a string that does not end")
