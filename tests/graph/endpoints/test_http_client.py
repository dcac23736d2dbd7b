"""What is read of a reply: so many bytes, as they come, however little they say."""

from __future__ import annotations

import gzip
import json

import pytest

from graph.embedding.embeddings import OpenAIEmbedder
from graph.endpoints import http_client
from graph.endpoints.address import Address
from graph.errors import TransportFault
from tests.scripted_server import Reply, ScriptedServer, scripted

VECTORS = json.dumps({"object": "list", "model": "m", "data": [{"index": 0, "embedding": [0.6, 0.8]}]})


def embed(server: ScriptedServer) -> list[float]:
    vector: list[float] = OpenAIEmbedder("m", server.base_url, "key").embed(["Who?"])[0].tolist()
    return vector


def test_a_reply_is_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_REPLY_BYTES", 10_000)
    replies = [Reply(body=VECTORS.ljust(length)) for length in (10_000, 10_001)]
    with scripted({"embeddings": replies}) as server:
        assert embed(server) == pytest.approx([0.6, 0.8])
        with pytest.raises(TransportFault, match="embedding endpoint's reply is refused unread: over 10,000 bytes"):
            embed(server)


def test_a_compressed_reply_is_refused_before_it_becomes_large() -> None:
    packed = Reply(body=gzip.compress(VECTORS.encode()), headers={"Content-Encoding": "gzip"})
    with scripted({"embeddings": [packed]}) as server, pytest.raises(TransportFault, match="compressed"):
        embed(server)
    assert server.requests[0].headers["accept-encoding"] == "identity"


def test_credentials_go_along_and_stand_in_no_address() -> None:
    address = Address.parse("http://name:secret@127.0.0.1:8000/v1", "OPENAI_BASE_URL", "http://localhost/v1")
    client = http_client.http_client(address)
    assert client.auth is not None
    request = next(client.auth.sync_auth_flow(client.build_request("GET", address.url)))
    assert request.headers["Authorization"] == address.authorization
    assert "secret" not in str(request.url)
