"""The NAME=... options: every problem at once, each with what to do."""

import re
from pathlib import Path

import pytest

from tilesmith.app.cli.arguments import InputFile, parse
from tilesmith.app.cli.report import UsageError
from tilesmith.scheduler.ir.pipeline.expressions import Const
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Param, Pipeline, Stage
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32, TYPES, UINT8


def pipeline():
    value = Const(0, UINT8)
    return Pipeline(
        name="p",
        doc="",
        params=(
            Param("k", FLOAT32, 0.5, 0, 1),
            Param("n", TYPES["int8"]),
            Param("on", TYPES["bool"], False),
        ),
        inputs=(Input("left", UINT8, ("x", "y"), None, ("x", "y")),),
        stages=(
            Stage("a", ("x", "y"), (value,), (), None, ("x", "y")),
            Stage("pair", ("x",), (value, Const(0, INT32)), (), None, ("x",)),
        ),
        outputs=("a", "pair"),
        estimates=(),
    )


def given(tmp_path, **changed):
    options = {"inputs": ["left=l.png"], "outputs": [], "params": ["n=3"], "regions": []}
    return parse(pipeline(), **(options | changed))


def complaints(tmp_path, **changed):
    with pytest.raises(UsageError) as caught:
        given(tmp_path, **changed)
    return caught.value.problems


def test_what_is_given_and_what_is_filled_in(tmp_path):
    found = given(
        tmp_path,
        outputs=[f"a={tmp_path}/a.png", f"pair[1]={tmp_path}/p.npy"],
        params=["n=-128", "on=True", "k=0.25"],
        regions=["a=-3:5,+2:1", "pair=0:9"],
    )
    assert found.inputs == {"left": InputFile(Path("l.png"), (0, 0))}
    assert found.outputs == {("a", 0): tmp_path / "a.png", ("pair", 1): tmp_path / "p.npy"}
    assert found.params == {"n": -128, "on": True, "k": 0.25}
    assert found.regions == {"a": ((-3, 5), (2, 1)), "pair": ((0, 9),)}
    assert given(tmp_path).params == {"k": 0.5, "on": False, "n": 3}


def test_an_input_may_start_anywhere(tmp_path):
    assert given(tmp_path, inputs=["left=a b.png@-3,40"]).inputs["left"] == InputFile(Path("a b.png"), (-3, 40))
    odd = tmp_path / "scan@1,2"
    odd.write_bytes(b"")
    assert given(tmp_path, inputs=[f"left={odd}"]).inputs["left"] == InputFile(odd, (0, 0))


@pytest.mark.parametrize(
    ("changed", "message", "hint"),
    [
        ({"inputs": ["left"]}, "--input left: expected NAME=FILE", None),
        ({"inputs": ["lfet=a.png"]}, "no input 'lfet'", "did you mean 'left'"),
        ({"inputs": ["left=a", "left=b"]}, "--input left is given twice", None),
        ({"inputs": ["left=a@1"]}, "expected 2 mins", None),
        ({"inputs": ["left=a@1,99999999999"]}, "expected 2 mins", None),
        ({"inputs": []}, "the input 'left' .uint8, dims .x, y.. is not given", "--input left=FILE"),
        ({"outputs": ["b=a.npy"]}, "no output 'b'", "outputs: a, pair"),
        ({"outputs": ["pair=a.npy"]}, "has 2 components", r"pair\[0\]=FILE, pair\[1\]=FILE"),
        ({"outputs": ["pair[2]=a.npy"]}, "has 2 components", r"pair\[0\]"),
        ({"outputs": ["a=x.npy", "a[0]=y.npy"]}, "given twice", None),
        ({"outputs": ["a=missing/x.npy"]}, "no directory missing", None),
        ({"outputs": ["pair[0]=x.png"]}, "dims .x. is not a picture", "npy"),
        ({"params": ["n=3", "m=1"]}, "no param 'm'", None),
        ({"params": []}, "the param 'n' .int8. is not given", "--param n=VALUE"),
        ({"params": ["n=200"]}, "'200' is not a int8", None),
        ({"params": ["n=1.5"]}, "'1.5' is not a int8", None),
        ({"params": ["n=3", "k=2"]}, "k goes from 0 to 1", None),
        ({"params": ["n=3", "k=nan"]}, "k goes from 0 to 1", None),
        ({"params": ["n=3", "k=1e300"]}, "'1e300' is not a float32", None),
        ({"params": ["n=3", "on=maybe"]}, "'maybe' is not a bool", None),
        ({"regions": ["a=0:4"]}, "expected MIN:EXTENT for each of x, y", "0:64,0:64"),
        ({"regions": ["a=0:4,0:0"]}, "expected MIN:EXTENT", None),
        ({"regions": ["a=0:4,2147483647:2"]}, "expected MIN:EXTENT", None),
        ({"regions": ["left=0:4,0:4"]}, "no region 'left'", None),
        ({"estimates": True}, "--estimates makes the inputs", None),
    ],
)
def test_what_is_wrong_is_said(tmp_path, changed, message, hint):
    problems = complaints(tmp_path, **changed)
    found = [h for m, h in problems if re.search(message, m)]
    assert found, problems
    if hint:
        assert re.search(hint, found[0] or "")


def test_all_problems_at_once(tmp_path):
    problems = complaints(tmp_path, inputs=["x=1"], outputs=["y=2.npy"], params=["z=3"], regions=["w=4"])
    assert len(problems) == 6  # four unknown names, the input and the param that are missing
