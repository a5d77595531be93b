"""Plugins: code of the user's that registers cost models, importers, backends and what else has a registry.

A plugin is a Python file, or a module, which registers when it is run. Installed packages name theirs as entry points
of the group `tilesmith.plugins`; others are named on the command line, or in a setting of the service, never in a
request.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points

from tilesmith.scheduler.frontends.python.files import PythonFileError, guarded, module_of

GROUP = "tilesmith.plugins"


def load_plugins(named: Iterable[str] = ()) -> None:
    """Loads the plugins of installed packages, then those that are `named`: files (`FILE.py`) or modules. One that is
    loaded already is left. Raises PythonFileError, which names the plugin and the reason."""
    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        guarded(entry.load, f"the plugin {entry.name!r} ({entry.value})")
    for name in named:
        if name.endswith(".py"):
            _file(name)
        else:
            guarded(partial(import_module, name), f"the plugin {name!r}")


def _file(name: str) -> None:
    try:
        module_of(name)
    except PythonFileError as error:
        raise PythonFileError(f"the plugin {name!r}: {error}", error.hint) from None
