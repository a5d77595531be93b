"""Examples that the OpenAPI document shows."""

from __future__ import annotations

from typing import Any

BLUR: dict[str, Any] = {
    "format": 1,
    "name": "blur",
    "inputs": [{"name": "input", "type": "uint16", "dims": ["x", "y"]}],
    "stages": [
        {"name": "blur_x", "dims": ["x", "y"], "value": "(input(x, y) + input(x + 1, y) + input(x + 2, y)) // 3"},
        {"name": "blur_y", "dims": ["x", "y"], "value": "(blur_x(x, y) + blur_x(x, y + 1) + blur_x(x, y + 2)) // 3"},
    ],
    "outputs": ["blur_y"],
    "estimates": {"blur_y": [[0, 1536], [0, 2560]]},
}

ROWS: dict[str, Any] = {
    "strategy": "rows",
    "doc": "Strips of rows in parallel; the search decides the rest.",
    "steps": [
        {"at": {"where": "is an output", "do": [{"tile": {"sizes": {"y": 32}}}, "parallel"]}},
        "search",
    ],
}

SCHEDULE: dict[str, Any] = {
    "id": "1f0c6a7e5d2b4938a1c4e0f7b9d86532",
    "pipeline": "blur",
    "pipeline_id": "8a4d1be2c9f07635d4b1a6e8f3c2907b",
    "platform": "i7-6700",
    "method": "default",
    "options": {"method": "default", "strict": False, "deadline_ms": None},
    "degraded": None,
    "groups": [{"output": "blur_y", "loops": ["x.inner", "y.inner", "x.outer", "y.outer"]}],
    "predicted": {"total": 1234567.0},
    "buffers": [{"name": "blur_x", "bytes": 12288}],
    "entry": "tilesmith_blur",
    "timings_ms": {
        "parse": 0.9,
        "analysis": 0.8,
        "search": 1.9,
        "buffers": 0.6,
        "total": 4.2,
    },
    "version": "0.1.0",
    "created_at": "2026-01-01T12:00:00Z",
    "links": {"self": "/v1/schedules/1f0c6a7e5d2b4938a1c4e0f7b9d86532"},
}

JOB: dict[str, Any] = {
    "id": "3f1f1e0a-57a8-4c5c-9f5e-1f3f7b8f2a10",
    "kind": "run",
    "schedule_id": SCHEDULE["id"],
    "state": "succeeded",
    "phase": None,
    "attempts": 1,
    "request": {"estimates": True, "repeat": 5},
    "result": {"threads": 2, "times_ms": [1.52, 1.49, 1.5, 1.49, 1.51], "minimum_ms": 1.49, "median_ms": 1.5},
    "error": None,
    "created_at": "2026-01-01T12:00:00Z",
    "started_at": "2026-01-01T12:00:00.2Z",
    "finished_at": "2026-01-01T12:00:01.1Z",
    "links": {"self": "/v1/jobs/3f1f1e0a-57a8-4c5c-9f5e-1f3f7b8f2a10"},
}
