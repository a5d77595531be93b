"""Every param of the search has its reason, and no other module of it has numbers of its own."""

import ast
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

from tilesmith.scheduler.search import params
from tilesmith.scheduler.search.params import PARAMS, Params

SEARCH = Path(params.__file__).parent
OF_TEXTS = {"SHOWN", "SHOWN_DIMS", "LISTED", "MAX_STAGES", "WIDEST"}
"""Numbers that bound messages and documents, and bytes of the widest type."""


def test_every_param_has_a_reason() -> None:
    (record,) = (n for n in ast.parse(Path(params.__file__).read_text()).body if isinstance(n, ast.ClassDef))
    reasons = {
        field.target.id: reason.value.value
        for field, reason in zip(record.body, record.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(reason, ast.Expr)
    }
    assert list(reasons) == [f.name for f in fields(Params)]
    assert all(reason.endswith(".") and len(reason) > 30 for reason in reasons.values())


def test_params_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        PARAMS.pays = 1.0  # type: ignore[misc]


def test_no_module_has_numbers_of_its_own() -> None:
    found = set()
    for path in SEARCH.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.Tuple):
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                if all(isinstance(v, ast.Constant) and isinstance(v.value, int | float) for v in values):
                    found |= {ast.unparse(t) for t in node.targets}
    assert found <= OF_TEXTS
