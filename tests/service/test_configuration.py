"""Settings that are wrong are told at once, each with its variable and a remedy."""

from __future__ import annotations

import pytest

from tilesmith.app.service.configuration import BadSettings, read_settings


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """refused(VARIABLE=value, ...): what is said of it, as {variable: (message, remedy)}."""
    monkeypatch.setenv("TILESMITH_DATA_DIR", str(tmp_path))

    def read(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(BadSettings) as caught:
            read_settings()
        return {c.variable: (c.message, c.remedy) for c in caught.value.complaints}

    return read


def test_all_are_told_at_once_with_their_meaning_and_default(refused):
    found = refused(TILESMITH_PORT="x", TILESMITH_JOB_WORKERS="-1", TILESMITH_LIMITS__STAGES="many")
    assert set(found) == {"TILESMITH_PORT", "TILESMITH_JOB_WORKERS", "TILESMITH_LIMITS__STAGES"}
    assert "greater than or equal to 0" in found["TILESMITH_JOB_WORKERS"][0]
    assert found["TILESMITH_PORT"][1] == "port to listen on; 0 takes a free one (default: 8000)"


def test_a_list_that_is_no_json(refused):
    message, remedy = refused(TILESMITH_ALLOWED_HOSTS="a.example")["TILESMITH_ALLOWED_HOSTS"]
    assert message == "is no JSON"
    assert '["a", "b"]' in remedy


def test_a_misspelled_variable_is_told_and_those_of_the_command_are_not(refused):
    found = refused(
        TILESMITH_JOB_WORKER="2", TILESMITH_TOKEN="t", TILESMITH_HOST_ISA="avx2", TILESMITH_SERVICE_HOST="x"
    )
    assert found == {"TILESMITH_JOB_WORKER": ("is no setting", "did you mean TILESMITH_JOB_WORKERS?")}


def test_a_contradiction_names_both(refused):
    message, remedy = refused(TILESMITH_PAGE_DEFAULT="300")["TILESMITH_PAGE_DEFAULT"]
    assert "TILESMITH_PAGE_LIMIT, 200" in message
    assert "lower it" in remedy


def test_a_data_folder_that_cannot_be(refused, tmp_path):
    (tmp_path / "file").write_text("")
    found = refused(TILESMITH_DATA_DIR=str(tmp_path / "file" / "folder"))
    assert "cannot be written: Not a directory" in found["TILESMITH_DATA_DIR"][0]


def test_what_settings_say_together(refused):
    found = refused(TILESMITH_ADMIN_TOKEN_FILE="/no/such/file")
    assert "cannot be read" in found["TILESMITH_ADMIN_TOKEN_FILE"][0]
    assert "file that has the admin token" in found["TILESMITH_ADMIN_TOKEN_FILE"][1]


def test_what_is_right_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("TILESMITH_DATA_DIR", str(tmp_path / "new"))
    assert read_settings(port=0).data_dir == tmp_path / "new"
