"""The demonstration of `make run`: a photograph through a pipeline, by way of the service.

Starts the service on its defaults, asks it for a schedule of harris for this machine, shows schedule and C, has
it compiled and run on a photograph, writes the picture, and leaves the service running until Ctrl-C.
"""

from __future__ import annotations

import argparse
import io
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from PIL import Image
from skimage import data

from tilesmith.app.client import Client, ServiceError
from tilesmith.scheduler import pipelines

ROOT = Path(__file__).resolve().parents[1]
TILESMITH = Path(sys.executable).with_name("tilesmith")
PORT = 8000
START_TIMEOUT_S = 60
LINES_SHOWN = 24


def main() -> int:
    """The demonstration; the exit status."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--once", action="store_true", help="end instead of leaving the service running")
    options.add_argument("--out", type=Path, default=ROOT / "out", help="where files are written")
    asked = options.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    try:
        with service(free_port(PORT), asked.out / "service.log") as (url, process):
            with Client(url) as client:
                picture = demonstrate(client, asked.out)
            step("The picture", f"{shown(picture)}: the photograph, and its corners (light) and edges (dark)")
            others = len(pipelines.names()) - 1
            step("More", f"{others} other pipelines: `tilesmith pipelines`; docs/pipelines.md has a command for each")
            step("The dashboard", url)
            if not asked.once:
                print("\nThe service runs until you press Ctrl-C.", flush=True)
                process.wait()
    except KeyboardInterrupt:
        print("\nstopped")
    except (ServiceError, httpx.HTTPError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def demonstrate(client: Client, out: Path) -> Path:
    """harris on a photograph: the files it makes are in `out`, the last one is returned."""
    schedule = client.schedule("harris")
    took, nest = schedule["timings_ms"]["total"], client.form(schedule["id"], "loopnest.txt")
    step("The schedule", f"harris for this machine, id {schedule['id']}, made in {took:.0f} ms")
    excerpt(nest)
    code = client.form(schedule["id"], "code.c")
    (out / "harris.c").write_text(code, encoding="utf-8")
    (out / "harris.h").write_text(client.form(schedule["id"], "code.h"), encoding="utf-8")
    step("The C", f"{shown(out / 'harris.c')} and harris.h, {len(code.splitlines())} lines; of its loops")
    excerpt(code[code.index("/* y.outer of output */") :], indent=4)

    photograph = out / "photograph.png"
    Image.fromarray(data.astronaut()).save(photograph)
    job = client.wait(client.run(schedule["id"], {"input": photograph}, repeat=5))
    times, threads = job["result"]["times_ms"], job["result"]["threads"]
    step("The run", f"{shown(photograph)} (NASA, public domain), {threads} threads: {min(times):.2f} ms")
    return side_by_side(photograph, client.output(job["id"], "output", "png", stretch=True), out / "harris.jpg")


@contextmanager
def service(port: int, log: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The service in a process of its own, ready to answer; stopped at the end."""
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as file:
        process = subprocess.Popen([str(TILESMITH), "serve", "--port", str(port)], stdout=file, stderr=file)
        try:
            wait_until_ready(url, process, log)
            step("The service", f"{url}, its log is {shown(log)}")
            yield url, process
        finally:
            previous = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C has reached the service as well
            process.terminate()
            process.wait()
            signal.signal(signal.SIGINT, previous)


def wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Returns when the service says that it is ready; OSError where it ends or takes too long."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise OSError(f"the service did not start:\n{log.read_text(errors='replace')[-2000:]}")
        try:
            if httpx.get(f"{url}/readyz", timeout=2).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise OSError(f"the service was not ready within {START_TIMEOUT_S} s; see {log}")


def free_port(wanted: int) -> int:
    """`wanted`, or any free port where that is taken."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("there is no free port")


def side_by_side(photograph: Path, result: bytes, path: Path) -> Path:
    """Both pictures in one file."""
    left, right = Image.open(photograph), Image.open(io.BytesIO(result)).convert("RGB")
    both = Image.new("RGB", (left.width + right.width, max(left.height, right.height)))
    both.paste(left, (0, 0))
    both.paste(right, (left.width, (left.height - right.height) // 2))
    both.save(path, quality=85)
    return path


def step(title: str, text: str) -> None:
    """A line of the story."""
    print(f"\n{title}: {text}", flush=True)


def excerpt(text: str, indent: int = 0) -> None:
    """The first lines of a text, which is indented by `indent`."""
    lines = text.rstrip().splitlines()
    for line in lines[:LINES_SHOWN]:
        print(f"    {line[indent if line[:indent].isspace() else 0 :][:116]}")
    if len(lines) > LINES_SHOWN:
        print(f"    ... ({len(lines) - LINES_SHOWN} more lines)")


def shown(path: Path) -> str:
    """A path as people would type it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


if __name__ == "__main__":
    sys.exit(main())
