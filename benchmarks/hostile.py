"""Hostile requests to a service on loopback, one at a time, with a token and without: how long each is answered, how
long `/healthz` takes meanwhile, and what memory the service holds.

    python -m benchmarks.hostile [--only WORDS] [--list] [--json FILE]

Bodies are up to 8 MB. The service is the real one in a process of its own, on an empty SQLite file, spoken to from
127.0.0.1; `/healthz` is asked from 127.0.0.2, over one connection. `idle` is what that takes while nothing else
happens: on a machine that does other work, the latencies are as large as those allow.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import multiprocessing
import socket
import struct
import sys
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

from benchmarks import machine, report
from benchmarks.service_process import service
from tilesmith.scheduler import pipelines

TOKEN = "hostile-benchmark-token-of-the-administrator"
MIB = 1 << 20
BODY = 4 * MIB - 4096
"""Just below what a document may have."""
LARGE = 8_000_000
LIMITS = {"health_ms": 100.0, "rss_mb": 500.0, "seconds": 5.0}
HEALTH_S = 0.01
HALF_OPEN = 1500


@dataclass(frozen=True)
class Attack:
    """A request. `body` makes its body; `by` sends it where that is no plain request, to a host and port."""

    name: str
    path: str
    body: Callable[[], bytes] = bytes
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    by: Callable[[str, int, dict[str, str]], str] | None = None


@dataclass(frozen=True)
class Answer:
    """An attack as it ended: the status or what went wrong, s, the longest ms of `/healthz` meanwhile, the largest
    memory of the service and of all its processes, MB."""

    name: str
    token: bool
    status: str
    seconds: float
    health_ms: float
    rss_mb: float
    all_mb: float

    @property
    def held(self) -> bool:
        return all(getattr(self, name) < limit for name, limit in LIMITS.items())


# --- bodies ------------------------------------------------------------------------------------------


def blur(**changed: Any) -> dict[str, Any]:
    return pipelines.document("blur") | changed


def asked(pipeline: object, **more: Any) -> bytes:
    return json.dumps({"pipeline": pipeline, "platform_name": "i7-6700", **more}).encode()


def keys(count: int) -> bytes:
    return b",".join(b'"k%d":1' % n for n in range(count))


def fit(part: bytes, size: int = BODY) -> bytes:
    return part * (size // len(part))


def in_pipeline(content: bytes) -> bytes:
    return b'{"pipeline":{"format":1,"name":"x","x":' + content + b"}}"


def stages(count: int, value: Callable[[int], str], **more: Any) -> dict[str, Any]:
    made = [{"name": f"s{n}", "dims": ["x", "y"], "value": value(n), **more} for n in range(count)]
    return blur(stages=made, outputs=[f"s{count - 1}"], estimates={f"s{count - 1}": [[0, 64], [0, 64]]})


def chain(n: int) -> str:
    return f"s{n - 1}(x, y) + s{n - 1}(x + 1, y)" if n else "f32(input(x, y))"


def text(yaml: str) -> bytes:
    return json.dumps({"pipeline": yaml}).encode()


def aliases() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    return "\n".join(lines)


def multipart(*parts: tuple[str, bytes], boundary: str = "b") -> bytes:
    made = b""
    for head, content in parts:
        made += f"--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + content + b"\r\n"
    return made + f"--{boundary}--\r\n".encode()


FORM = "multipart/form-data; boundary=b"
FIELDS = "application/x-www-form-urlencoded"
BYTES = "application/octet-stream"


def png(width: int, height: int, bits: int = 8, colour: int = 2) -> bytes:
    """A picture of zeros: a thousandth of what it decodes to."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    packer, row = zlib.compressobj(9), bytes(1 + width * (bits // 8) * (3 if colour == 2 else 1))
    packed = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def npy(shape: tuple[int, ...], content: bytes = b"") -> bytes:
    head = f"{{'descr': '<u2', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + content


def image(content: bytes) -> bytes:
    return multipart(('name="input"; filename="x"', content), ('name="request"', b'{"convert":true,"outputs":false}'))


# --- what is no plain request ------------------------------------------------------------------------


def long_head(line: bytes) -> Callable[[str, int, dict[str, str]], str]:
    def send(host: str, port: int, headers: dict[str, str]) -> str:
        given = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()
        with socket.create_connection((host, port), timeout=60) as connection:
            with suppress(OSError):
                connection.sendall(b"POST /v1/schedules HTTP/1.1\r\nHost: localhost\r\n" + given + fit(line, LARGE))
            return status_of(connection)

    return send


def status_of(connection: socket.socket) -> str:
    with suppress(OSError):
        received = connection.recv(1 << 16)
        if received:
            return received.split(b" ", 2)[1].decode()
    return "closed"


def half_open(host: str, port: int, _headers: dict[str, str]) -> str:
    """Half requests, and then one that is whole."""
    with ExitStack() as stack:
        for _ in range(HALF_OPEN):
            with suppress(OSError):
                connection = stack.enter_context(socket.create_connection((host, port), timeout=60))
                connection.sendall(b"POST /v1/schedules HTTP/1.1\r\nHost: localhost\r\nX-Half:")
        whole = http.client.HTTPConnection(host, port, timeout=60)
        whole.request("GET", "/healthz")
        return str(whole.getresponse().status)


def slow_body(host: str, port: int, headers: dict[str, str]) -> str:
    """Half a body each on many connections, and then a request that is whole."""
    given = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()
    with ExitStack() as stack:
        for _ in range(100):
            connection = stack.enter_context(socket.create_connection((host, port), timeout=60))
            connection.sendall(b"POST /v1/schedules HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
            connection.sendall(given + b"Content-Length: 4000000\r\n\r\n" + b"[" * 60_000)
        whole = http.client.HTTPConnection(host, port, timeout=60)
        whole.request("GET", "/healthz")
        return str(whole.getresponse().status)


def nothing(_host: str, _port: int, _headers: dict[str, str]) -> str:
    time.sleep(2)
    return ""


ASK, CHECK, STORE, RUN = "/v1/schedules", "/v1/validate", "/v1/pipelines", "/v1/schedules/{id}/runs"

ATTACKS = [
    Attack("deep lists", ASK, lambda: in_pipeline(fit(b"["))),
    Attack("deep lists, closed", ASK, lambda: in_pipeline(fit(b"[", BODY // 2) + fit(b"]", BODY // 2))),
    Attack("deep objects", STORE, lambda: fit(b'{"a":')),
    Attack("200,000 unknown keys", ASK, lambda: b"{" + keys(200_000) + b"}"),
    Attack("200,000 unknown keys, pipeline", ASK, lambda: b'{"pipeline":{' + keys(200_000) + b"}}"),
    Attack("200,000 unknown keys, options", ASK, lambda: b'{"options":{' + keys(200_000) + b"}}"),
    Attack(
        "200,000 fixed decisions", ASK, lambda: b'{"pipeline_id":"blur","options":{"fixed":{' + keys(200_000) + b"}}}"
    ),
    Attack(
        "200,000 estimates",
        ASK,
        lambda: b'{"pipeline_id":"blur","estimates":{"blur_y":[' + fit(b"[0,1],", 3 * MIB) + b"[0,1]]}}",
    ),
    Attack("200,000 keys of a schedule", ASK, lambda: b'{"pipeline_id":"blur","schedule":{' + keys(200_000) + b"}}"),
    Attack("200,000 keys of a strategy", ASK, lambda: b'{"pipeline_id":"blur","strategy":{' + keys(200_000) + b"}}"),
    Attack("200,000 keys of a platform", ASK, lambda: b'{"pipeline_id":"blur","platform":{' + keys(200_000) + b"}}"),
    Attack("a platform", "/v1/platforms", lambda: b"{" + keys(200_000) + b"}"),
    Attack("a strategy", "/v1/strategies", lambda: b"{" + keys(200_000) + b"}"),
    Attack("a pipeline", STORE, lambda: b"{" + keys(200_000) + b"}"),
    Attack(
        "checked documents", CHECK, lambda: b'{"pipeline":{' + keys(100_000) + b'},"strategy":{' + keys(100_000) + b"}}"
    ),
    Attack("a million empty lists", ASK, lambda: in_pipeline(b"[" + fit(b"[],") + b"[]]")),
    Attack("a million empty objects", STORE, lambda: b'{"stages":[' + fit(b"{},") + b"{}]}"),
    Attack("a million empty objects, checked", CHECK, lambda: b'{"pipeline":{"stages":[' + fit(b"{},") + b"{}]}}"),
    Attack("a key many times", STORE, lambda: b"{" + fit(b'"a":1,') + b'"a":1}'),
    Attack("10,000 wrong stages", ASK, lambda: asked(blur(stages=[{"nme": n, "dim": []} for n in range(10_000)]))),
    Attack("stages with 100 unknown keys", ASK, lambda: asked(blur(stages=[{f"k{n}": 1 for n in range(100)}] * 2500))),
    Attack("unknown names", ASK, lambda: asked(stages(10_000, lambda n: f"nothing{n}(x, y)"))),
    Attack("a long string", ASK, lambda: json.dumps({"pipeline_id": "x" * BODY}).encode()),
    Attack("a long name", ASK, lambda: asked(blur(name="x" * BODY))),
    Attack("escapes", STORE, lambda: b'{"name":"' + fit(b"\\u0000") + b'"}'),
    Attack("a long number", ASK, lambda: in_pipeline(fit(b"9"))),
    Attack("a long fraction", ASK, lambda: in_pipeline(b"0." + fit(b"9"))),
    Attack("long numbers", STORE, lambda: b'{"a":[' + fit(b"9" * 4000 + b",") + b"9]}"),
    Attack("brackets", ASK, lambda: asked(stages(60, lambda _: "(" * 30_000 + "x" + ")" * 30_000))),
    Attack("a deep expression", ASK, lambda: asked(stages(60, lambda _: "-" * 60_000 + "x"))),
    Attack("a long sum", ASK, lambda: asked(stages(1, lambda _: "f32(input(x, y))" + "+x" * 9_000))),
    Attack("150,000 nodes", ASK, lambda: asked(stages(250, lambda _: "f32(input(x, y))" + "+x*y" * 140))),
    Attack("a tree of selects", ASK, lambda: asked(stages(8, lambda n: tree(9, n)))),
    Attack("4 MB of expressions", ASK, lambda: asked(stages(63, lambda _: "input(x, y)" + " + input(x+1, y)" * 4000))),
    Attack("500 stages", ASK, lambda: asked(stages(500, chain))),
    Attack("2,000 stages", ASK, lambda: asked(stages(2000, chain))),
    Attack("10,000 stages", ASK, lambda: asked(stages(10_000, chain))),
    Attack(
        "10,000 stages, checked",
        CHECK,
        lambda: asked(stages(10_000, chain)).replace(b', "platform_name": "i7-6700"', b""),
    ),
    Attack("a bomb of aliases", CHECK, lambda: text(aliases())),
    Attack("deep YAML", CHECK, lambda: text("[" * 500_000)),
    Attack("deep YAML, block", CHECK, lambda: text("- " * 200_000)),
    Attack("YAML of empty lists", CHECK, lambda: text("stages: [" + "[]," * 170_000 + "[]]")),
    Attack("YAML of many keys", CHECK, lambda: text("\n".join(f"k{n}: 1" for n in range(50_000)))),
    Attack("YAML of many errors", CHECK, lambda: text("stages:\n" + "".join(f"- {{a: {n}}}\n" for n in range(30_000)))),
    Attack("YAML of anchors", CHECK, lambda: text("\n".join(f"k{n}: &a{n} 1" for n in range(30_000)))),
    Attack("YAML of one key", CHECK, lambda: text("a: 1\n" * 100_000)),
    Attack("4 MB of YAML", CHECK, lambda: text("a: 1\n" * 800_000)),
    Attack("JSON text", CHECK, lambda: text('{"stages":[' + "{}," * 1_000_000 + "{}]}")),
    Attack("a batch", ASK + "/batch", lambda: b'{"requests":[' + fit(b"{},", 3 * MIB) + b"{}]}"),
    Attack(
        "a batch of 64", ASK + "/batch", lambda: b'{"requests":[' + b",".join([b"{" + keys(5000) + b"}"] * 64) + b"]}"
    ),
    Attack("a token", "/v1/tokens", lambda: b"{" + keys(200_000) + b"}"),
    Attack("a webhook", "/v1/webhooks", lambda: b"{" + keys(200_000) + b"}"),
    Attack("results", "/v1/projects/p/results", lambda: b'{"results":[' + fit(b"{},") + b"{}]}"),
    Attack("a note", ASK + "/{id}/notes", lambda: b"{" + keys(200_000) + b"}"),
    Attack("a build", ASK + "/{id}/builds", lambda: b"{" + keys(200_000) + b"}"),
    Attack("a run", RUN, lambda: b'{"params":{' + keys(200_000) + b"}}"),
    Attack("a form of 4 MB", "/playground", lambda: b"text=" + fit(b"%5B"), FIELDS),
    Attack("a form of many fields", "/playground", lambda: fit(b"a=&"), FIELDS),
    Attack(
        "a form of many parts", "/playground", lambda: multipart(*[(f'name="{n}"', b"") for n in range(60_000)]), FORM
    ),
    Attack("a part with long headers", RUN, lambda: b"--b\r\n" + b"X: " + fit(b"x", LARGE), FORM),
    Attack("a part with many headers", RUN, lambda: b"--b\r\n" + fit(b"X: y\r\n", LARGE), FORM),
    Attack("a form that never begins", RUN, lambda: fit(b"\r\n", LARGE), FORM),
    Attack(
        "a form of half boundaries",
        RUN,
        lambda: b'--b\r\nContent-Disposition: form-data; name="input"; filename="x"\r\n\r\n' + fit(b"\r\n-", LARGE),
        FORM,
    ),
    Attack(
        "a form of 300 files",
        RUN,
        lambda: multipart(*[(f'name="{n}"; filename="x"', b"x" * 20_000) for n in range(300)]),
        FORM,
    ),
    Attack("an import of zeros", "/v1/imports/onnx", lambda: bytes(LARGE), BYTES),
    Attack("an import of fields", "/v1/imports/onnx", lambda: b"\x3a\x00" * (LARGE // 2), BYTES),
    Attack("an import of nodes", "/v1/imports/onnx", lambda: b"\x08\x08" + onnx_nodes(), BYTES),
    Attack("an import of text", "/v1/imports/mlir", lambda: b"func.func @f() {" + fit(b"(", LARGE // 2), BYTES),
    Attack(
        "an import of lines",
        "/v1/imports/mlir",
        lambda: b"module {\n" + fit(b"%0 = arith.constant 1 : i32\n", LARGE),
        BYTES,
    ),
    Attack("an import of Halide", "/v1/imports/halide", lambda: fit(b"\x04\x00\x00\x00", LARGE), BYTES),
    Attack("a bomb by gzip", ASK, lambda: gzip.compress(bytes(1 << 30), 1), headers={"Content-Encoding": "gzip"}),
    Attack("a picture of 400 megapixels", RUN, lambda: image(png(20_000, 20_000, 8, 0)), FORM),
    Attack("a picture of 120 megapixels", RUN, lambda: image(png(10_900, 11_000, 16)), FORM),
    Attack("a picture cut short", RUN, lambda: image(png(5_000, 5_000)[:-100]), FORM),
    Attack("an array that claims 16 TB", RUN, lambda: image(npy((1 << 20, 1 << 22), bytes(1000))), FORM),
    Attack("an array of 8 MB", RUN, lambda: image(npy((2000, 2000), bytes(8_000_000))), FORM),
    Attack("a long header", ASK, by=long_head(b"x")),
    Attack("many headers", ASK, by=long_head(b"X-A: b\r\n")),
    Attack("1,500 half requests", ASK, by=half_open),
    Attack("100 half bodies", ASK, by=slow_body),
]


def tree(depth: int, n: int) -> str:
    return f"x + {n}" if depth == 0 else f"select(x > {depth}, {tree(depth - 1, n)}, {tree(depth - 1, n + 1)})"


def onnx_nodes() -> bytes:
    """A graph of 200,000 nodes of which none says anything."""
    graph = b"\x0a\x06\x22\x04Relu" * 900_000
    size, varint = len(graph), b""
    while size:
        varint += bytes([size & 127 | (128 if size > 127 else 0)])
        size >>= 7
    return b"\x3a" + varint + graph


# --- measuring ---------------------------------------------------------------------------------------


def watch_health(host: str, port: int, pipe: Connection) -> None:
    """Answers each word on the pipe with the longest time that `/healthz` took since the last one, ms."""
    longest, began = 0.0, time.perf_counter()
    connection: http.client.HTTPConnection | None = None
    while True:
        try:
            if connection is None:
                connection = http.client.HTTPConnection(host, port, timeout=60, source_address=("127.0.0.2", 0))
            began = time.perf_counter()
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            answer.read()
            longest = max(longest, 1e3 * (time.perf_counter() - began), 0.0 if answer.status == 200 else 6e4)
        except (OSError, http.client.HTTPException):  # its connection was closed: the next is asked at once
            longest, connection = max(longest, 1e3 * (time.perf_counter() - began)), None
        if pipe.poll(HEALTH_S):
            if pipe.recv() is None:
                return
            pipe.send(longest)
            longest = 0.0


class Memory(threading.Thread):
    """The largest memory since `reset`, MB: of the service, and of all its processes."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._service = psutil.Process(pid)
        self.own = self.all = 0.0

    def reset(self) -> None:
        self.own = self.all = 0.0
        self.look()

    def look(self) -> None:
        with suppress(psutil.Error):
            own = self._service.memory_info().rss / 1e6
            others = 0.0
            for child in self._service.children(recursive=True):
                with suppress(psutil.Error):
                    others += child.memory_info().rss / 1e6
            self.own, self.all = max(self.own, own), max(self.all, own + others)

    def run(self) -> None:
        while True:
            self.look()
            time.sleep(0.02)


def send(attack: Attack, host: str, port: int, token: bool, schedule: str) -> str:
    """The status of the answer, with the code of its problem document; of a job, what became of it."""
    headers = attack.headers | ({"Authorization": f"Bearer {TOKEN}"} if token else {})
    if attack.by is not None:
        return attack.by(host, port, headers)
    connection = http.client.HTTPConnection(host, port, timeout=120)
    method = "PUT" if attack.path.endswith("/notes") else "POST"
    headers |= {"Content-Type": attack.kind}
    with suppress(OSError):  # refused before the body had been sent
        connection.request(method, attack.path.format(id=schedule), attack.body(), headers)
    try:
        answer = connection.getresponse()
        said = answer.read()
    except (OSError, http.client.HTTPException):
        return "closed"
    finally:
        connection.close()
    try:
        document = json.loads(said)
    except ValueError:
        document = {}
    return f"{answer.status} {document.get('code', document.get('id', '') if answer.status == 202 else '')}".strip()


def ended(host: str, port: int, job: str) -> str:
    """A job that has ended, waited for."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    while True:
        connection = http.client.HTTPConnection(host, port, timeout=120)
        connection.request("GET", f"/v1/jobs/{job}", headers=headers)
        document = json.loads(connection.getresponse().read())
        connection.close()
        if document["state"] not in ("queued", "running"):
            return f"{document['state']} {(document.get('error') or {}).get('code', '')}".strip()
        time.sleep(0.05)


def measure(attacks: list[Attack], told: Callable[[Answer], None]) -> list[Answer]:
    """Each attack as it ended, without a token and with one, on one service."""
    found = []
    with service(TILESMITH_ADMIN_TOKEN=TOKEN, TILESMITH_CALIBRATE="false") as at:
        host, port = at.host, at.port
        schedule = first_schedule(host, port)
        here, there = multiprocessing.Pipe()
        watcher = multiprocessing.Process(target=watch_health, args=(host, port, there), daemon=True)
        watcher.start()
        memory = Memory(at.pid)
        memory.start()
        idle = Attack("idle", "", by=nothing)
        for attack in (idle, *attacks):
            if attack.by is None:
                content = attack.body()
                attack = replace(attack, body=partial(bytes, content))
            for token in (False, True):
                here.send("begin")
                here.recv()
                memory.reset()
                began = time.perf_counter()
                status = send(attack, host, port, token, schedule)
                seconds = time.perf_counter() - began
                if status.startswith("202 "):
                    status = f"202, then {ended(host, port, status[4:])}"
                time.sleep(0.1)
                here.send("end")
                found.append(Answer(attack.name, token, status, seconds, here.recv(), memory.own, memory.all))
                told(found[-1])
        here.send(None)
        watcher.join()
    return found


def first_schedule(host: str, port: int) -> str:
    """The id of a schedule for runs."""
    connection = http.client.HTTPConnection(host, port, timeout=120)
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    connection.request("POST", ASK, json.dumps({"pipeline_id": "blur"}), headers)
    return str(json.loads(connection.getresponse().read())["id"])


def row(answer: Answer) -> list[str]:
    figures = (f"{answer.seconds:.2f}", f"{answer.health_ms:.0f}", f"{answer.rss_mb:.0f}", f"{answer.all_mb:.0f}")
    return [answer.name, "yes" if answer.token else "no", answer.status, *figures, "" if answer.held else "MISSED"]


HEADS = ["attack", "token", "answer", "s", "health, ms", "service, MB", "with workers, MB", ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="WORDS", help="attacks whose names have these words")
    parser.add_argument("--list", action="store_true", help="list the attacks")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    chosen = [a for a in ATTACKS if arguments.only in a.name]
    if arguments.list:
        print("\n".join(f"{a.name}: {a.path}" for a in chosen))
        return
    found = measure(chosen, lambda answer: print(" | ".join(row(answer)), file=sys.stderr, flush=True))
    print(report.table(HEADS, [row(a) for a in found]))
    limits = ", ".join(f"{name} {limit:g}" for name, limit in LIMITS.items())
    print(f"{sum(not a.held for a in found)} of {len(found)} missed; limits: {limits}")
    data = [a.__dict__ | {"held": a.held} for a in found]
    report.write(arguments.json, {"machine": machine.describe(), "attacks": data})


if __name__ == "__main__":
    main()
