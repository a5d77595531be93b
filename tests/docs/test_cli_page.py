"""docs/cli.md and the command say the same: every verb, option and exit status."""

import re
from pathlib import Path

import pytest
import typer.main

from tilesmith.app.cli import app, report

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
COMMAND = typer.main.get_command(app)


def verbs(command=COMMAND, name="tilesmith"):
    found = {}
    for child, made in command.commands.items():
        found[f"{name} {child}"] = made
        if hasattr(made, "commands"):
            found |= verbs(made, f"{name} {child}")
    return found


def options(command):
    return {o for p in command.params if p.param_type_name == "option" for o in p.opts} - {"--help"}


def section(verb):
    """The part of the page about a verb: from its heading to the next one."""
    match = re.search(rf"^## tilesmith {verb}$(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert match, f"no section about {verb}"
    return match[1]


@pytest.mark.parametrize("verb", sorted(verbs()))
def test_every_verb_and_option_is_on_the_page(verb):
    text = section(verb.split()[1])
    assert verb in text
    synopsis = text.split("\n\n")[1]
    assert options(verbs()[verb]) <= set(re.findall(r"--[a-z-]+", synopsis)), verb


@pytest.mark.parametrize("option", sorted(set().union(*(options(c) for c in verbs().values()))))
def test_every_option_is_explained(option):
    assert re.search(rf"\*\*`{option}[ `]", PAGE), option


def test_the_page_has_no_option_that_there_is_not():
    known = set().union(*(options(c) for c in verbs().values())) | options(COMMAND) | {"--help"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE)) <= known


def test_every_exit_status_is_on_the_page():
    used = {v for k, v in vars(report).items() if k.isupper() and isinstance(v, int) and k != "EXCERPT"}
    assert {int(n) for n in re.findall(r"^\| (\d+) \|", PAGE, re.M)} == used
