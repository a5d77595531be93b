"""No module is imported by one that it imports, directly or by way of others, for its types neither."""

import ast
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).parents[2]
PACKAGES = ("tilesmith", "benchmarks")


def modules() -> dict[str, Path]:
    files = (f for package in PACKAGES for f in (ROOT / package).rglob("*.py"))
    return {".".join(f.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): f for f in files}


def imported(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def test_there_are_no_circles_of_imports():
    known = modules()
    graph = nx.DiGraph()
    for name, file in known.items():
        # a package names what is in it: `from package import module` is of the module
        used = imported(file) & known.keys()
        graph.add_edges_from((name, other) for other in used if not any(u.startswith(f"{other}.") for u in used))
    assert len(graph) > 300
    assert [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1] == []
