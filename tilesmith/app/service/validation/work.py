"""The checking of documents: plain functions of plain data, so that they run in another process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilesmith import platforms
from tilesmith.app.service.bodies import check_values, parse_model
from tilesmith.app.service.errors import MAX_PROBLEMS, ApiError
from tilesmith.app.service.schedules.answers import identity, strategy_identity
from tilesmith.app.service.validation.schemas import (
    CheckedDocument,
    DocumentProblem,
    TextPosition,
    Validation,
    ValidationRequest,
)
from tilesmith.platforms import PlatformError
from tilesmith.platforms.documents import DOCUMENT_BYTES
from tilesmith.scheduler.analysis.size_warnings import input_warnings
from tilesmith.scheduler.errors import DocumentError, Problem
from tilesmith.scheduler.frontends.document import document as pipelines
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.document.positions import Positions
from tilesmith.scheduler.frontends.document.safe_loader import read_json, read_yaml, sniff_yaml
from tilesmith.scheduler.rewrites.passes import normalise
from tilesmith.scheduler.strategies import document as strategies

Check = Callable[[Any], CheckedDocument]


def validated(body: bytes, limits: Limits) -> bytes | ApiError:
    """The Validation of a ValidationRequest, both as JSON, or what is wrong with the request."""
    try:
        request = parse_model(body, ValidationRequest)
    except ApiError as error:
        return error
    return validate(request, limits).model_dump_json(exclude_none=True).encode()


def validate(request: ValidationRequest, limits: Limits) -> Validation:
    """Every document of the request, checked."""
    small = replace(limits, document_bytes=DOCUMENT_BYTES, yaml_bytes=DOCUMENT_BYTES)
    checked = {
        "pipeline": _checked(request.pipeline, limits, lambda found: _pipeline(found, limits)),
        "platform": _checked(request.platform, small, _platform),
        "strategy": _checked(request.strategy, limits, _strategy),
    }
    return Validation(valid=all(c is None or c.valid for c in checked.values()), **checked)


def _checked(given: dict[str, Any] | str | None, limits: Limits, check: Check) -> CheckedDocument | None:
    if given is None:
        return None
    try:
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        if sniff_yaml(text):
            return check(read_yaml(text, limits))
        check_values(text.encode(errors="replace"))
        return check(read_json(text, limits))
    except ApiError as error:
        return _refused((Problem(error.code, "", str(error.detail)),), {})
    except DocumentError as error:
        return _refused(error.problems, given if len(text) <= limits.yaml_bytes else {})
    except PlatformError as error:
        return _refused(tuple(Problem(p.code, p.pointer, p.message, p.hint) for p in error.problems), given)


def _refused(problems: tuple[Problem, ...], given: dict[str, Any] | str) -> CheckedDocument:
    positions = Positions(given) if isinstance(given, str) else None
    told = [_problem(p, positions) for p in problems[:MAX_PROBLEMS]]
    return CheckedDocument(valid=False, problems=told, problems_left_off=len(problems) - len(told) or None)


def _problem(problem: Problem, positions: Positions | None) -> DocumentProblem:
    position = positions.of(problem) if positions is not None else None
    return DocumentProblem(
        code=problem.code,
        pointer=problem.pointer,
        message=problem.message,
        hint=problem.hint,
        column=problem.column,
        position=None if position is None else TextPosition(line=position.line, column=position.column),
    )


def _pipeline(document: Any, limits: Limits) -> CheckedDocument:
    pipeline = pipelines.load(document, limits)
    found, warnings = identity(pipeline), list(input_warnings(normalise(pipeline)))
    text = json.loads(found.document)
    return CheckedDocument(valid=True, name=found.name, id=found.id, document=text, warnings=warnings)


def _platform(document: Any) -> CheckedDocument:
    platform = platforms.parse(document)
    return CheckedDocument(valid=True, name=platform.name, document=platforms.to_document(platform))


def _strategy(document: Any) -> CheckedDocument:
    found = strategy_identity(strategies.from_document(document))
    return CheckedDocument(valid=True, name=found.name, id=found.id, document=json.loads(found.document))
