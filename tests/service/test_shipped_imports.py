"""Files of MLIR and of Halide over HTTP."""

from __future__ import annotations

import pytest
from support.modules import require_module

from tilesmith.app.service.schedules import work
from tilesmith.scheduler.frontends.document.document import load

BYTES = {"Content-Type": "application/octet-stream"}
DOUBLED = b"""func.func @doubled(%a: tensor<48x64xf32>) -> tensor<48x64xf32> {
  %empty = tensor.empty() : tensor<48x64xf32>
  %b = linalg.add ins(%a, %a : tensor<48x64xf32>, tensor<48x64xf32>)
      outs(%empty : tensor<48x64xf32>) -> tensor<48x64xf32>
  return %b : tensor<48x64xf32>
}"""


@pytest.fixture
def whole(start):
    return start(scheduling=work)


def test_functions_of_mlir(whole):
    require_module("xdsl")
    answer = whole.client.post("/v1/imports/mlir", content=DOUBLED, headers=BYTES)
    assert answer.status_code == 200
    assert load(answer.json()["document"]).outputs == ("b",)
    answer = whole.client.post("/v1/imports/mlir", content=DOUBLED.replace(b"linalg.add", b"linalg.odd"), headers=BYTES)
    assert answer.status_code == 422
    assert answer.json()["code"] == "bad_source"
    assert "line 3" in answer.json()["detail"]


def test_pipelines_that_halide_has_written(whole):
    require_module("halide")
    import halide as hl

    x, f = hl.Var("x"), hl.Func("doubled")
    f[x] = hl.ImageParam(hl.UInt(16), 1, "image")[x] * 2
    f.set_estimates([hl.Range(0, 640)])
    content = bytes(hl.serialize_pipeline(hl.Pipeline(f)))
    answer = whole.client.post("/v1/imports/halide", content=content, headers=BYTES)
    assert answer.status_code == 200
    assert load(answer.json()["document"]).outputs == ("doubled",)
    answer = whole.client.post("/v1/imports/halide", content=content[:100], headers=BYTES)
    assert answer.status_code == 422
    assert answer.json()["code"] == "bad_source"
