"""Settings read at start, and everything that is wrong with them, told at once with the remedy."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any

from pydantic import ValidationError
from pydantic_settings import SettingsError

from tilesmith.app.service.settings import Settings

PREFIX = "TILESMITH_"
SAME_WORD = 0.85
"""Likeness, of 1, from which a variable that is no setting is taken for one that is misspelled."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """A setting that is wrong: its field or variable, what is wrong, and what to do."""

    setting: str
    message: str
    remedy: str

    @property
    def variable(self) -> str:
        """The variable of the environment that sets it."""
        return self.setting if self.setting.startswith(PREFIX) else PREFIX + self.setting.upper()


class BadSettings(Exception):
    """Settings that the service cannot start with."""

    def __init__(self, complaints: Iterable[Complaint]) -> None:
        self.complaints = tuple(complaints)
        super().__init__("\n".join(f"{c.variable}: {c.message}; {c.remedy}" for c in self.complaints))


def read_settings(**given: Any) -> Settings:
    """The settings of the environment, those that are `given` before them. BadSettings with all that is wrong."""
    misspelled = _misspelled(os.environ)
    try:
        settings = Settings(**given)
    except ValidationError as error:
        raise BadSettings([*misspelled, *(_complaint(e["loc"], e["msg"]) for e in error.errors())]) from None
    except SettingsError as error:
        raise BadSettings([*misspelled, *_unreadable(error)]) from None
    complaints = [*misspelled, *_impossible(settings)]
    if complaints:
        raise BadSettings(complaints)
    return settings


def _complaint(place: tuple[int | str, ...], message: str) -> Complaint:
    if not place:  # of several settings together: the message begins with the first
        named = message.removeprefix("Value error, ")
        name, _, said = named.partition(" ")
        known = name in Settings.model_fields
        return Complaint(name, said, _remedy(name)) if known else Complaint("settings", named, "change one of them")
    name = str(place[0])
    inner = "".join(f"__{part}" for part in place[1:] if isinstance(part, str))
    said = message.removeprefix("Value error, ")
    return Complaint(f"{name}{inner}", said[:1].lower() + said[1:], _remedy(name))


def _remedy(name: str) -> str:
    """The meaning of a setting and its default."""
    field = Settings.model_fields.get(name)
    if field is None:
        return "remove it"
    default = field.default if field.default_factory is None else None
    known = default if isinstance(default, str | int | float) else None
    meaning = str(field.description)
    return f"{meaning[:1].lower()}{meaning[1:]}" + ("" if known is None else f" (default: {known})")


def _unreadable(error: SettingsError) -> list[Complaint]:
    """A list or an object that is no JSON: the error names its field alone."""
    named = [name for name in Settings.model_fields if f'"{name}"' in str(error)]
    return [Complaint(name, "is no JSON", f'{_remedy(name)}, such as ["a", "b"]') for name in named]


_EXTRA = "pip install 'tilesmith[dask]'"


def _misspelled(environment: Iterable[str]) -> list[Complaint]:
    """Variables that are nearly one of ours: who wrote them relies on them."""
    known = sorted(name.upper() for name in Settings.model_fields)
    found = []
    for variable in sorted(environment):
        name = variable.removeprefix(PREFIX).partition("__")[0]
        if variable.startswith(PREFIX) and name not in known:
            near = get_close_matches(name, known, n=1, cutoff=SAME_WORD)
            found += [Complaint(variable, "is no setting", f"did you mean {PREFIX}{other}?") for other in near]
    return found


def _impossible(settings: Settings) -> list[Complaint]:
    """Contradictions between settings, and between them and this machine."""
    found = []
    if settings.page_default > settings.page_limit:
        found.append(
            Complaint(
                "page_default",
                f"{settings.page_default} is more than TILESMITH_PAGE_LIMIT, {settings.page_limit}",
                "lower it, or raise TILESMITH_PAGE_LIMIT",
            )
        )
    if settings.store_url.startswith("postgresql") and find_spec("psycopg") is None:
        found.append(Complaint("database_url", "psycopg is not installed", "pip install 'tilesmith[postgres]'"))
    if settings.artifacts_url is not None and find_spec("fsspec") is None:
        name = "pool" if settings.artifacts is None else "artifacts"
        found.append(Complaint(name, "fsspec is not installed", _EXTRA))
    elif settings.pool is not None and find_spec("distributed") is None:
        found.append(Complaint("pool", "distributed is not installed", _EXTRA))
    if settings.otlp_endpoint is not None and find_spec("opentelemetry.sdk") is None:
        found.append(Complaint("otlp_endpoint", "opentelemetry-sdk is not installed", "pip install 'tilesmith[otel]'"))
    folder = settings.data_dir
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        found.append(
            Complaint("data_dir", f"{folder} cannot be written: {reason}", "name a folder that this user can write")
        )
    return found
