"""Layout of the tests: each folder has the name of the package that it is about."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
ELSEWHERE = {
    "browser": "pages in Chromium",
    "docs": "the pages, held to the code",
    "extending": "plugins, and the examples of them",
    "generated": "C as it is compiled, of whole pipelines",
    "judges": "OpenCV and scikit-image",
    "with_halide": "Halide",
    "support": "what tests share, and its own tests",
}


def test_folders_are_packages_or_known_exceptions() -> None:
    folders = {file.parent.relative_to(TESTS) for file in TESTS.rglob("test_*.py")}
    unknown = [
        str(folder)
        for folder in sorted(folders)
        if str(folder) not in ELSEWHERE
        and not any(
            (ROOT / above / folder).with_suffix(suffix).exists()
            for above in ("tilesmith/scheduler", "tilesmith/app", "tilesmith", "")
            for suffix in ("", ".py")
        )
    ]
    assert unknown == []
