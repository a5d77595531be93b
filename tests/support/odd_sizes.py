"""Pipelines of a few lines that have what shipped ones lack: for every size and for bad input."""

from __future__ import annotations

from typing import Any

IMAGE = {"name": "input", "type": "int32", "dims": ["x", "y"]}
EDGES = {**IMAGE, "boundary": {"kind": "repeat_edge"}}
BYTES = {**EDGES, "type": "uint8"}
XY = ["x", "y"]


def document(stages: list[dict[str, Any]], image: dict[str, Any], **more: Any) -> dict[str, Any]:
    last = stages[-1]
    return {
        "format": 1,
        "name": "odd",
        "inputs": [image],
        "stages": stages,
        "outputs": [last["name"]],
        "estimates": {last["name"]: [[0, 64]] * len(last["dims"]), "input": [[0, 64], [0, 64]]},
        **more,
    }


def _whole(name: str) -> dict[str, list[str]]:
    return {"rx": [f"{name}.min.x", f"{name}.extent.x"], "ry": [f"{name}.min.y", f"{name}.extent.y"]}


HISTOGRAM = [
    {
        "name": "histogram",
        "dims": ["i"],
        "value": "uint32(0)",
        "updates": [{"domain": _whole("input"), "at": ["input(rx, ry)"], "value": "histogram(input(rx, ry)) + 1"}],
    },
    {
        "name": "sums",
        "dims": ["i"],
        "value": "histogram(i)",
        "updates": [{"domain": {"b": [1, 255]}, "at": ["b"], "value": "sums(b - 1) + sums(b)"}],
    },
    {"name": "equal", "dims": XY, "value": "sums(input(x, y))"},
]
SCAN = [
    {
        "name": "down",
        "dims": XY,
        "value": "input(x, y)",
        "updates": [
            {"domain": {"r": ["input.min.y + 1", "input.extent.y - 1"]}, "at": ["x", "r"],
             "value": "down(x, r - 1) + down(x, r)"},
            {"domain": {"r": ["input.min.x + 1", "input.extent.x - 1"]}, "at": ["r", "y"],
             "value": "down(r - 1, y) + down(r, y)"},
        ],
    },
    {"name": "table", "dims": XY, "value": "down(clamp(x, input.min.x, input.min.x + input.extent.x - 1), "
     "clamp(y, input.min.y, input.min.y + input.extent.y - 1)) + 1"},
]  # fmt: skip
TUPLES = [
    {"name": "both", "dims": XY, "value": ["input(x, y) + 1", "float32(input(x - 1, y + 1)) * 0.5"]},
    {"name": "mixed", "dims": XY, "value": "float32(both(x, y)[0]) + both(x + 1, y)[1]"},
]
BEST = [
    {"name": "best", "dims": XY, "value": "argmin(absd(input(x, y), input(x + r, y + s)) for r in range(-2, 3) "
     "for s in range(1, 3))"},
    {"name": "moved", "dims": XY, "value": "input(x + clamp(best(x, y)[0], -2, 2), y + clamp(best(x, y)[1], 1, 2)) "
     "+ int32(best(x, y)[2])"},
]  # fmt: skip
PYRAMID = [
    {"name": "half", "dims": XY, "value": "(input(2 * x, 2 * y) + input(2 * x + 1, 2 * y + 1)) // 2"},
    {"name": "quarter", "dims": XY, "value": "(half(2 * x - 1, 2 * y) + half(2 * x, 2 * y + 1)) // 2"},
    {"name": "back", "dims": XY, "value": "half(x // 2, y // 2) - quarter(x // 4, (y + 3) // 4)"},
]
TWICE = [
    {
        "name": "acc",
        "dims": XY,
        "value": "input(x, y)",
        "updates": [
            {"domain": {"k": [0, 3]}, "at": XY, "value": "acc(x, y) * 3 + input(x + k, y)"},
            {"domain": {"k": [0, 5]}, "where": "input(x, y - k) > 0", "at": XY, "value": "max(acc(x, y), k)"},
        ],
    },
    {"name": "spread", "dims": XY, "value": "acc(x - 1, y) + acc(x + 1, y + 1)"},
]
LEVELS = [
    {
        "name": "most",
        "dims": ["x", "y", "t"],
        "value": "input(x, y)",
        "updates": [
            {"domain": {"r": ["input.min.y - 3", "input.extent.y + 2"], "k": [1, 3]}, "at": ["x", "r", "k"],
             "value": "max(most(x, r, k - 1), most(x, r + clamp(1 << (k - 1), 0, 4), k - 1))"},
        ],
    },
    {"name": "levels", "dims": XY, "value": "sum(most(x + i, y - i, clamp(i * i, 0, 3)) for i in range(-2, 3))"},
]  # fmt: skip
DOCUMENTS = {
    "histogram": document(HISTOGRAM, BYTES),
    "scan": document(SCAN, EDGES),
    "levels": document(LEVELS, EDGES),
    "tuples": document(TUPLES, EDGES),
    "best": document(BEST, EDGES),
    "pyramid": document(PYRAMID, EDGES),
    "twice": document(TWICE, EDGES),
}
