"""Clients of the benchmark of load: every request is counted once, as what became of it."""

import os
import socketserver
import threading
from itertools import repeat

from benchmarks.service_load import Answers, Load, put_under, request
from benchmarks.service_process import Service

BEGIN = b"HTTP/1.1 "
ANSWERS = (b"200 OK\r\nContent-Length: 2\r\n\r\n{}", b"503 No\r\nContent-Length: 0\r\n\r\n", b"")


class _Handler(socketserver.BaseRequestHandler):
    """Answers requests in turn with 200, 503 and an end of the connection."""

    def handle(self) -> None:
        for answer in ANSWERS:
            if not self.request.recv(1 << 16):
                return
            self.server.received += 1  # type: ignore[attr-defined]
            if answer:
                self.request.sendall(BEGIN + answer)


def test_each_request_is_counted_once_as_what_became_of_it():
    with socketserver.TCPServer(("127.0.0.1", 0), _Handler) as server:
        server.received = 0
        threading.Thread(target=server.serve_forever, daemon=True).start()
        answers = Answers()
        at = Service(*server.server_address, os.getpid())
        used = put_under(at, [Load(repeat(request("a token", b"{}")), answers)], 0.3)
        server.shutdown()
    assert len(used) > 2
    assert used[-1].clients_s >= used[0].clients_s
    assert answers.statuses[200] > 1
    asked = sum(answers.statuses.values()) + answers.broken
    assert asked <= server.received <= asked + 1  # the last one was not waited for
    assert abs(answers.statuses[200] - answers.broken) <= 1
    assert answers.errors == answers.statuses[503] + answers.broken
    assert len(answers.times_ms) == sum(answers.statuses.values())
    assert answers.percentile_ms(0.0) <= answers.percentile_ms(0.99)
