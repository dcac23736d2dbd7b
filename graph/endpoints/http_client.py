"""HTTP clients of endpoints: credentials apart from addresses, and no endless reply. Imported with the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias

import httpx

from graph.endpoints.address import Address, address_parts, unreadable
from graph.environment import environment
from graph.errors import BadInput, MaraError

MAX_REPLY_BYTES = 64 * 2**20
"""Of one reply, however little it says: 256 vectors of 8,192 numbers take 45 MiB, 500,000 streamed characters less."""

_PROXIES = (
    "OPENAI_PROXY",
    *(name for plain in ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY") for name in (plain, plain.lower())),
)
_SETTINGS = (
    *("OPENAI_BASE_URL", "OPENAI_API_BASE", "MARA_EMBEDDING_BASE_URL", "SSL_CERT_FILE", *_PROXIES),
    *("NO_PROXY", "no_proxy"),
)


Reader: TypeAlias = Callable[[httpx.Response, Iterator[bytes]], Iterator[bytes]]
"""Reads a reply before its client does: takes the bytes as they come, and yields those that the client is told."""


class ReplyTooLarge(Exception):
    """A reply passed `MAX_REPLY_BYTES`, or is compressed and could become as large as it likes."""


@contextmanager
def making_client() -> Iterator[None]:
    """Tell what keeps a client from being made as what it is: a setting, which may hold a password and is not shown.

    Raises:
        BadInput: an address, a proxy or a certificate of the environment cannot be used.
    """
    try:
        yield
    except MaraError:
        raise
    except Exception as fault:
        raise BadInput(
            f"No client of the endpoint can be made with these settings ({type(fault).__name__})",
            f"Check {', '.join(filter(environment().value, _SETTINGS)) or 'the network settings'}",
        ) from None


def http_client(address: Address | None, reader: Reader | None = None) -> httpx.Client:
    """Return a client with the credentials of an endpoint's address and of ``OPENAI_PROXY``.

    LangChain's clients write addresses and proxies of their own into traces, with the passwords within.

    Args:
        address: of the endpoint; None for OpenAI's own.
        reader: of its replies.

    Raises:
        BadInput: a proxy or a certificate of the environment cannot be used.
    """
    import openai

    with making_client():
        _check_proxies()
        client: httpx.Client = openai.DefaultHttpxClient(
            auth=address.credentials if address else None,
            proxy=environment().openai_proxy or None,
            headers={"Accept-Encoding": "identity"},
            event_hooks={"response": [partial(_limit, reader)]},
        )
        return client


def _check_proxies() -> None:
    """Raise BadInput where a proxy's address can be read in two ways; that of the environment needs no scheme."""
    for name in _PROXIES:
        proxy = environment().value(name)
        if proxy and address_parts(proxy if "://" in proxy else f"http://{proxy}") is None:
            raise unreadable(name, "http://proxy:3128 or http://name:password@proxy:3128")


def loopback_client(reader: Reader | None = None) -> httpx.Client:
    """Return a client of a server on this machine, past every proxy, with a reader of its replies."""
    return httpx.Client(
        trust_env=False,
        headers={"Accept-Encoding": "identity"},
        event_hooks={"response": [partial(_limit, reader)]},
    )


def _limit(reader: Reader | None, response: httpx.Response) -> None:
    """Let a reply end where it passes the limit, for every reader."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise ReplyTooLarge("compressed, which was not asked for")
    assert isinstance(response.stream, httpx.SyncByteStream)
    response.stream = _Limited(response, response.stream, reader)


class _Limited(httpx.SyncByteStream):
    def __init__(self, response: httpx.Response, stream: httpx.SyncByteStream, reader: Reader | None) -> None:
        self._response = response
        self._stream = stream
        self._reader = reader

    def __iter__(self) -> Iterator[bytes]:
        data = self._limited()
        return self._reader(self._response, data) if self._reader else data

    def _limited(self) -> Iterator[bytes]:
        came = 0
        for data in self._stream:
            came += len(data)
            if came > MAX_REPLY_BYTES:
                raise ReplyTooLarge(f"over {MAX_REPLY_BYTES:,} bytes")
            yield data

    def close(self) -> None:
        self._stream.close()
