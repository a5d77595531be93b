"""Peers that could not be made are remembered, with the time that they were given."""

import sys

import pytest

from benchmarks import halide_peers
from benchmarks.halide_peers import PeerError, build, known_failure


@pytest.fixture
def child(monkeypatch, tmp_path):
    """A stand-in for the child of `build`, which starts a script instead; the script's `place` is where the peer would
    be."""
    place = tmp_path / "cache" / "blur-x-1"
    start = halide_peers.subprocess.Popen

    def becomes(script):
        path = tmp_path / "child.py"
        path.write_text(f"place = {str(place)!r}\n{script}\n")
        monkeypatch.setattr(
            halide_peers.subprocess, "Popen", lambda _, **options: start([sys.executable, "-S", str(path)], **options)
        )
        return place

    return becomes


def test_who_takes_too_long_is_asked_again_when_there_is_more_time(child):
    place = child("import time\nprint('place: ' + place, flush=True)\ntime.sleep(600)")
    with pytest.raises(PeerError, match=r"none in 0\.25 s"):
        build("blur", "x", 2, timeout_s=0.25)
    assert known_failure(place, 0.25) == known_failure(place, 0.1) == "none in 0.25 s"
    assert known_failure(place, 1) is None


def test_who_dies_is_not_asked_again(child):
    place = child("print('place: ' + place, flush=True)\nraise SystemExit('no such loop')")
    with pytest.raises(PeerError, match="exit status 1: no such loop"):
        build("blur", "x", 2, timeout_s=20)
    assert known_failure(place, 1e6) == "exit status 1: no such loop"


def test_what_dies_before_it_is_known_who_it_is_leaves_nothing(child):
    place = child("raise SystemExit('no halide here')")
    with pytest.raises(PeerError, match="no halide here"):
        build("blur", "x", 2, timeout_s=20)
    assert not place.parent.exists()


def test_a_known_failure_is_told_as_it_was(child):
    child(f"print('none in 400 s')\nraise SystemExit({halide_peers.KNOWN_FAILURE})")
    with pytest.raises(PeerError, match=r"^none in 400 s$"):
        build("blur", "x", 2, timeout_s=20)
