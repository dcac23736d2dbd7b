"""The page on deployment names the settings of the file of keys, and its examples work."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, plain, read, table
from tests.workflows.tenants import token
from workflows.access.identity import Keyring
from workflows.access.key_file import Holder, Tokens, check_lines, read_key_file

PAGE = read(ROOT / "docs" / "deploy.md")
TABLES = [block.body for block in blocks(PAGE) if block.kind == "toml"]
SECRET = "a shared secret of forty characters, at least"


def settings_under(heading: str) -> dict[str, bool]:
    """The settings of a table, and whether each has to be given."""
    return {
        name.strip(): row["default"] == "required"
        for row in table(PAGE, heading)
        for name in plain(row["setting"]).split(",")
    }


def test_a_table_has_every_setting() -> None:
    forms: dict[str, type[Holder] | type[Tokens]] = {"The file of keys": Holder, "Tokens": Tokens}
    for heading, form in forms.items():
        assert settings_under(heading) == {name: field.is_required() for name, field in form.model_fields.items()}


def test_the_tables_that_it_shows_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, tokens = (re.sub(r'"[0-9a-f]+\.\.\."', f'"{sha256(b"key").hexdigest()}"', text) for text in TABLES)
    check_lines(tokens)
    shared = tokens.replace('["RS256"]', '["HS256"]').replace('key_file = "issuer.pem"', 'secret_variable = "SHARED"')
    monkeypatch.setenv("SHARED", SECRET)
    (tmp_path / "keys.toml").write_text(f"{keys}\n{shared}", encoding="utf-8")
    keyring = Keyring(read_key_file(tmp_path / "keys.toml"))
    assert keyring.identity_of("Bearer key").where == {"tenant": "a"}
    assert keyring.identity_of(f"Bearer {token(SECRET)}").where == {"tenant": "b"}
