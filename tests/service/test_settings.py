"""Settings: read from the environment, checked, with defaults that work."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from tilesmith.app.service.settings import Settings


def test_the_environment_sets_them(monkeypatch, tmp_path):
    monkeypatch.setenv("TILESMITH_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TILESMITH_PORT", "1234")
    monkeypatch.setenv("TILESMITH_ALLOWED_HOSTS", '["a.example", "b.example"]')
    monkeypatch.setenv("TILESMITH_LIMITS__STAGES", "7")
    settings = Settings()
    assert (settings.port, settings.data_dir) == (1234, tmp_path)
    assert settings.allowed_hosts == ("a.example", "b.example")
    assert settings.limits.stages == 7
    assert settings.store_url == f"sqlite:///{tmp_path}/tilesmith.db"


def test_the_defaults_keep_to_this_machine(monkeypatch):
    monkeypatch.delenv("TILESMITH_DATA_DIR", raising=False)
    settings = Settings()
    assert settings.host == "127.0.0.1"
    assert settings.data_dir.is_absolute()
    assert settings.data_dir != Path.home()


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///x?mode=memory", "mysql://x", "nonsense", ""]
)
def test_stores_that_cannot_be_are_refused(url):
    with pytest.raises(ValidationError):
        Settings(database_url=url)


@pytest.mark.parametrize("changed", [{"port": 70000}, {"body_bytes": 0}, {"job_attempts": 0}, {"log_format": "xml"}])
def test_values_that_cannot_be_are_refused(changed):
    with pytest.raises(ValidationError):
        Settings(**changed)


def test_the_admin_token_is_long_and_may_come_from_a_file(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("0123456789abcdef\n")
    assert Settings(admin_token_file=secret).admin_token.get_secret_value() == "0123456789abcdef"
    with pytest.raises(ValidationError, match="both"):
        Settings(admin_token_file=secret, admin_token="0123456789abcdef")
    with pytest.raises(ValidationError, match="16 "):
        Settings(admin_token="0123456789abcde")
    secret.write_text("short")
    with pytest.raises(ValidationError, match="16 "):
        Settings(admin_token_file=secret)
    with pytest.raises(ValidationError, match="cannot be read"):
        Settings(admin_token_file=tmp_path / "no")


def test_more_dims_than_the_interface_has_are_refused(monkeypatch):
    monkeypatch.setenv("TILESMITH_LIMITS__DIMS", "6")
    with pytest.raises(ValidationError):
        Settings()


def test_settings_are_frozen():
    with pytest.raises(ValidationError):
        Settings().port = 1
