"""Addresses of servers: what may be shown of them, and what is sent."""

from __future__ import annotations

import pytest

from graph.endpoints.address import Address, censored
from graph.endpoints.openai_protocol import endpoint_address
from graph.errors import BadInput
from tests.cases import PASSWORD_PARTS, unreadable_addresses


def test_credentials_are_kept_apart() -> None:
    for given, url, port, credentials in [
        ("http://localhost:8000/v1", "http://localhost:8000/v1", 8000, None),
        (" https://host/v1/ ", "https://host/v1", 443, None),
        ("http://me:a%2Fb@[::1]:99/x", "http://[::1]:99/x", 99, ("me", "a/b")),
        ("https://token@host", "https://host", 443, ("token", "")),
    ]:
        address = Address.parse(given, "X_URL", "http://localhost")
        assert (address.url, address.port, address.credentials) == (url, port, credentials)
        assert bool(address.authorization) == bool(credentials)
        assert not any(each and each in repr(address) for each in credentials or ())


def test_what_is_no_address_is_refused_by_its_variable_and_shows_nothing_secret() -> None:
    wrong = ["host:8000/v1", "http://", "http://me:secret@h:port", "http://h/v1?token=secret"]
    for said, addresses in {
        r"X_URL is .*http://localhost": wrong,
        r"X_URL is no address .*percent-encode the password": unreadable_addresses("http"),
        "X_URL is no address": [f"http://a:{port}/v1" for port in ("0", "65536", "-1", "port", "1,b:2")],
    }.items():
        for address in addresses:
            with pytest.raises(BadInput, match=said) as refused:
                Address.parse(address, "X_URL", "http://localhost")
            assert not any(part in str(refused.value) for part in ("secret", *PASSWORD_PARTS))


def test_langchains_variable_counts_where_no_address_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert endpoint_address(None) is None
    monkeypatch.setenv("OPENAI_API_BASE", "http://me:secret@host/v1")
    address = endpoint_address("")
    assert address
    assert (address.url, address.credentials) == ("http://host/v1", ("me", "secret"))


def test_what_is_configured_is_starred_in_what_others_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value, secrets in [
        ("OPENAI_API_KEY", "sk-1", ["sk-1"]),
        ("MARA_VECTORS", "chroma+http://me:p%40ss@host", ["me:p%40ss", "p%40ss", "p@ss", "bWU6cEBzcw=="]),
        ("MARA_VECTORS", "other+https://the-key@host", ["the-key"]),
        ("MARA_GRAPH_URL", "bolt+s://me:p%40ss@host/db", ["me:p%40ss", "p%40ss", "p@ss"]),
        ("MARA_EXTRACTION_URLS", "http://a/v1, http://me:secret@b/v1", ["me:secret", "secret"]),
        ("LANGSMITH_ENDPOINT", "http://host/x?key=abc&other=def#ghi", ["abc", "def", "ghi"]),
    ]:
        said = f"refused: {' / '.join(secrets)} ({value})"
        assert censored(said) == said
        monkeypatch.setenv(variable, value)
        starred = censored(said)
        assert starred.startswith("refused: ")
        assert not any(secret in starred for secret in secrets)
