"""Decoding of image files in a confined process."""

from __future__ import annotations

import signal
import struct
import zlib

import numpy as np
import psutil
import pytest
from PIL import Image

from tilesmith.app.runtime import images
from tilesmith.app.runtime.decoding import decoded
from tilesmith.app.runtime.errors import RunError
from tilesmith.app.runtime.run import _file_of, _write
from tilesmith.app.runtime.sandbox import Finished
from tilesmith.scheduler.ir.pipeline.pipeline import Input
from tilesmith.scheduler.ir.pipeline.types import TYPES

MIB = 1 << 20


def wanted(name="uint16", dims=("x", "y", "c")):
    return Input("image", TYPES[name], dims, None, dims)


def bomb(path, width, height, bits=16):
    """A PNG of zeros: a thousandth of what it decodes to."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = zlib.compress(bytes((1 + width * 3 * bits // 8) * height), 9)
    head = struct.pack(">IIBBBBB", width, height, bits, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b""))
    return path


def empty(tmp_path):
    folder = tmp_path / "decoded"
    folder.mkdir()
    return folder


def test_it_is_what_reading_it_here_makes_and_in_a_file(tmp_path):
    path, preview = tmp_path / "photo", tmp_path / "preview.png"
    Image.fromarray(np.arange(30 * 40 * 3, dtype=np.uint8).reshape(30, 40, 3)).save(path, "png")
    array = decoded(path, wanted("float32"), empty(tmp_path), channels=3, most_bytes=MIB, wall_s=60, preview=preview)
    assert isinstance(array, np.memmap)
    np.testing.assert_array_equal(array, images.read(path, wanted("float32"), 3))
    with Image.open(preview) as shown:
        assert shown.size == (40, 30)
    _, offset = _file_of(array[1:])
    assert offset == array.offset + array[0].nbytes
    _write(tmp_path / "raw", array[1:])
    assert (tmp_path / "raw").read_bytes() == array[1:].tobytes()
    assert _file_of(array[:, ::2]) is _file_of(np.zeros(3)) is None


def test_the_reason_of_a_refusal_is_told(tmp_path):
    path = tmp_path / "photo"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"x" * 100)
    with pytest.raises(images.ImageError) as caught:
        decoded(path, wanted(), empty(tmp_path), most_bytes=MIB, wall_s=60)
    assert caught.value.code == "image_unreadable"
    assert str(path) in str(caught.value)


def test_a_decoder_that_is_killed_is_no_fault_of_the_image(tmp_path, monkeypatch):
    ended = Finished(-signal.SIGKILL, b"", b"", False, 0.0)
    monkeypatch.setattr("tilesmith.app.runtime.decoding.execute", lambda *_, **__: ended)
    with pytest.raises(RunError) as caught:
        decoded(tmp_path / "photo", wanted(), empty(tmp_path), most_bytes=MIB, wall_s=60)
    assert caught.value.code == "worker_lost"


@pytest.mark.parametrize("bits", [8, 16])
def test_a_bomb_is_refused_by_its_header(tmp_path, bits):
    with pytest.raises(images.ImageError) as caught:
        images.read(bomb(tmp_path / "bomb", 2000, 2000, bits), wanted(), 3, True, 24_000_000 - 1)
    assert caught.value.code == "image_too_large"
    assert "2000 x 2000 pixels of 3 channels" in str(caught.value)


def test_memory_of_this_process_does_not_grow_with_a_picture(tmp_path):
    path = bomb(tmp_path / "bomb", 3000, 3000, 8)  # 54 MB as uint16
    process = psutil.Process()
    before = process.memory_info().rss
    array = decoded(path, wanted(), empty(tmp_path), channels=3, convert=True, most_bytes=100 * MIB, wall_s=120)
    _write(tmp_path / "raw", array)
    assert (tmp_path / "raw").stat().st_size == array.nbytes == 3000 * 3000 * 3 * 2
    assert process.memory_info().rss - before < 20 * MIB
