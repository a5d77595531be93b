"""Generators of Halide's Python: classes that `@hl.generator` registers, made with their params."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any, TypeAlias

from tilesmith.scheduler.frontends.halide.live import import_halide
from tilesmith.scheduler.frontends.python.files import PythonFileError, guarded, module_of

Live: TypeAlias = Any
"""A class or object of Halide: its package has no types."""


def generator_of(source: str) -> Live | None:
    """The class of the generator that FILE.py:name means, by its own name or the registered one, or FILE.py where it
    is the only one; None where the name is of something else. Raises PythonFileError."""
    file, _, name = source.rpartition(":") if not source.endswith(".py") else (source, "", "")
    found = _generators(file)
    if not name:
        if len(found) == 1:
            return next(iter(found.values()))
        hint = f"write FILE.py:name: {', '.join(sorted(found))}" if found else "write FILE.py:function"
        raise PythonFileError(f"{file} has {len(found) or 'no'} generators", hint)
    by_class = {cls.__name__: cls for cls in found.values()}
    return found.get(name, by_class.get(name))


def _generators(file: str) -> dict[str, Live]:
    """The generators of a file by their registered names. Those of files that were run before may have the same."""
    from halide import _generator_helpers as helpers

    registered = getattr(helpers, "_python_generators", {})
    before = dict(registered)
    registered.clear()
    try:
        module = module_of(file)
    finally:
        registered.clear()
        registered.update(before)
    generator = import_halide().Generator
    classes = [c for c in vars(module).values() if inspect.isclass(c) and issubclass(c, generator)]
    return {n: c for c in classes if (n := getattr(c, "_halide_registered_name", None)) is not None}


def built(cls: Live, params: Mapping[str, str]) -> tuple[Live, dict[str, str]]:
    """The Pipeline of a generator made with those of `params` that are its GeneratorParams, and the others. Raises
    PythonFileError where its code fails."""
    hl = import_halide()

    def make() -> tuple[Live, dict[str, str]]:
        scheduler = hl.AutoschedulerParams("tilesmith", {})  # so that it does not schedule by itself
        with hl.GeneratorContext(hl.get_host_target(), scheduler):
            made = cls()
            made._advance_to_stage(_stage_of(made).gp_created)
            own = {k: v for k, v in params.items() if k in made._gp_dict or "." in k}
            for name, value in own.items():
                guarded(partial(made._set_generatorparam_value, name, value), f"the param {name} as {value!r}")
            return made._build_pipeline(), {k: v for k, v in params.items() if k not in own}

    return guarded(make, f"the generator {cls.__name__}")


def _stage_of(made: Live) -> Live:
    return type(made._stage)
