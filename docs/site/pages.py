"""Pages of the documentation's site that are made: of the README, of code, and of what the product computes.

`mkdocs build` runs it. Links of pages to files of the repository that are no pages lead to pages with their text.
"""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import mkdocs_gen_files

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#]+)(#[^)]*)?\)")
RENAMED = {"README.md": "index.md", "benchmarks/README.md": "comparison.md", "CHANGELOG.md": "changelog.md"}
"""Pages that are not in docs/, by where their text is."""
_LISTED: set[str] = set()


def main() -> None:
    for source, page in RENAMED.items():
        _write(page, _linked((ROOT / source).read_text(encoding="utf-8"), ROOT, page))
    for path in sorted((ROOT / "docs").rglob("*.md")):
        page = path.relative_to(ROOT / "docs").as_posix()
        _write(page, _linked(path.read_text(encoding="utf-8"), path.parent, page))
    _write("gallery.md", _gallery())
    _write("reference/python.md", _python())
    _write("reference/http.md", _http())
    _write("reference/errors.md", _errors())
    _write("reference/settings.md", _settings())


def _write(page: str, text: str) -> None:
    with mkdocs_gen_files.open(page, "w") as file:
        file.write(text)


def _linked(text: str, folder: Path, page: str) -> str:
    """The text of a page with links that hold on the site: to pages where there are any, else to listings."""

    def target(match: re.Match[str]) -> str:
        path = (folder / match[1]).resolve()
        name = path.relative_to(ROOT).as_posix()
        if name in RENAMED:
            name = RENAMED[name]
        elif name.startswith("docs/"):
            name = name.removeprefix("docs/")
        else:
            name = _listing(path, name)
        return f"]({os.path.relpath(name, os.path.dirname(page) or '.')}{match[2] or ''})"

    return LINK.sub(target, text)


def _listing(path: Path, name: str) -> str:
    """The page with the text of a file of the repository, or with those of a folder."""
    page = f"sources/{name}.md"
    if page not in _LISTED:
        _LISTED.add(page)
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        listings = [(file.relative_to(ROOT).as_posix(), _fenced(file)) for file in files]
        _write(page, "\n".join(f"{'#' * (1 + (n > 0))} {file}\n\n{text}" for n, (file, text) in enumerate(listings)))
    return page


def _fenced(path: Path) -> str:
    language = {".py": "python", ".yaml": "yaml", ".c": "c", ".h": "c", ".cpp": "cpp"}.get(path.suffix, "text")
    return f"~~~~{language}\n{path.read_text(encoding='utf-8')}\n~~~~\n"


# --- the gallery


def _gallery() -> str:
    """Every shipped pipeline: its stages, and what it makes of a photograph, by the commands of docs/pipelines.md."""
    from tilesmith import platforms
    from tilesmith.app.inprocess.compile import compile
    from tilesmith.scheduler import pipelines

    results = _pictures()
    parts = ["# Gallery\n", "Every pipeline that is shipped, as its stages, and what it makes of a photograph.\n"]
    machine = platforms.load("i7-6700")
    for name in pipelines.names():
        made = compile(name, machine)
        parts.append(f"## {name}\n\n{pipelines.load(name).doc}\n")
        for label, picture in results.get(name, ()):
            parts.append(f'![{label}](gallery/{picture}){{ loading=lazy width="45%" }}')
        stages = re.sub(r"\n\s*", " ", made._repr_html_())
        parts.append(f"\n<div style='overflow-x:auto'>{stages}</div>\n")
    return "\n".join(parts) + "\n"


def _pictures() -> dict[str, list[tuple[str, str]]]:
    """Inputs and outputs of the commands of docs/pipelines.md, which are run: (label, file) by pipeline."""
    found: dict[str, list[tuple[str, str]]] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "out").mkdir()
        shutil.copytree(ROOT / "examples", folder / "examples")
        for command in _commands((ROOT / "docs" / "pipelines.md").read_text(encoding="utf-8")):
            words = shlex.split(command)
            if words[0] == "tilesmith":
                words = [sys.executable, "-m", "tilesmith", *words[1:]]
            elif words[0].endswith("python") and words[1].endswith(".py"):
                words = [sys.executable, *words[1:]]
            else:
                continue
            subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            if "run" in words:
                name = words[words.index("run") + 1]
                found.setdefault(name, []).extend(_shown(folder, name, words))
    return found


def _commands(page: str) -> Iterator[str]:
    """The commands of a page: indented lines, with those that they go on in."""
    for block in re.findall(r"(?:^    .*\n)+", page, re.M):
        yield from re.sub(r"\\\n\s*", " ", re.sub(r"^    ", "", block, flags=re.M)).splitlines()


def _shown(folder: Path, name: str, words: list[str]) -> Iterator[tuple[str, str]]:
    """The pictures among the files of a command, made small."""
    from PIL import Image

    for option, word in pairwise(words):
        path = folder / word.partition("=")[2]
        if option not in ("--input", "--output") or path.suffix not in (".png", ".jpg"):
            continue
        with Image.open(path) as picture:
            small = picture.convert("RGB") if picture.mode not in ("L", "RGB") else picture.copy()
        small.thumbnail((480, 480))
        target = f"{name}-{option[2:]}-{path.stem}.jpg"
        with mkdocs_gen_files.open(f"gallery/{target}", "wb") as file:
            small.save(file, "JPEG", quality=85)
        yield f"{name}, {option[2:]} {word.partition('=')[0]}", target


# --- reference


def _python() -> str:
    """The names that `import tilesmith` has, with their docstrings."""
    import tilesmith

    lines = ["# Python", "", "`import tilesmith as ts`. [Python](../python.md) is the guide.", ""]
    for name in sorted(tilesmith.__all__):
        value = getattr(tilesmith, name)
        module = getattr(value, "__module__", "")
        if module.startswith("tilesmith.") and hasattr(value, "__qualname__"):
            lines += [f"::: {module}.{value.__qualname__}", ""]
    return "\n".join(lines)


def _http() -> str:
    """The routes of the service, as its OpenAPI has them."""
    from tilesmith.app.service.main import create_app
    from tilesmith.app.service.settings import Settings

    with tempfile.TemporaryDirectory() as folder:
        described = create_app(Settings(database_url=f"sqlite:///{folder}/t.sqlite")).openapi()
    with mkdocs_gen_files.open("reference/openapi.json", "w") as file:
        json.dump(described, file, indent=1)
    lines = ["# HTTP", "", "Made of the [OpenAPI document](openapi.json). [The API](../api.md) is the guide.", ""]
    by_tag: dict[str, list[str]] = {}
    for path, operations in described["paths"].items():
        for verb, operation in operations.items():
            said = html.escape(str(operation.get("summary", "")))
            by_tag.setdefault((operation.get("tags") or ["other"])[0], []).append(
                f"| `{verb.upper()} {path}` | {said} |"
            )
    for tag, rows in sorted(by_tag.items()):
        lines += [f"## {tag}", "", "| route | |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _errors() -> str:
    """The codes of problems of documents."""
    from tilesmith.scheduler.frontends.document.codes import CODES

    rows = [f"| `{code}` | {html.escape(words)} |" for code, words in CODES.items()]
    return "\n".join(["# Problems of documents", "", "| code | |", "|---|---|", *rows, ""])


def _settings() -> str:
    """The settings of the service, with their defaults."""
    from tilesmith.app.service.settings import Settings

    rows = []
    for name, field in Settings.model_fields.items():
        default = "" if field.is_required() else f"`{field.get_default(call_default_factory=True)!r}`"
        rows.append(f"| `TILESMITH_{name.upper()}` | {default} | {html.escape(field.description or '')} |")
    lines = ["# Settings of the service", "", "From the environment. [The API](../api.md) explains them.", ""]
    return "\n".join([*lines, "| variable | default | |", "|---|---|---|", *rows, ""])


main()
