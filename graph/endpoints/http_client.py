"""HTTP clients of endpoints: credentials apart from addresses, and no endless reply. Imported with the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore
import httpx

from graph.endpoints.address import Address, address_parts, unreadable
from graph.endpoints.patience import within_patience
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


def http_client(address: Address | None, *on_response: Callable[[httpx.Response], None]) -> httpx.Client:
    """Return a client with the credentials of an endpoint's address and of ``OPENAI_PROXY``.

    LangChain's clients write addresses and proxies of their own into traces, with the passwords within.

    Args:
        address: of the endpoint; None for OpenAI's own.
        on_response: further functions that see each response before it is read.

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
            event_hooks={"response": [_limit, *on_response]},
        )
    bound_reads(client)
    return client


def _check_proxies() -> None:
    """Raise BadInput where a proxy's address can be read in two ways; that of the environment needs no scheme."""
    for name in _PROXIES:
        given = environment().value(name)
        if given and address_parts(given if "://" in given else f"http://{given}") is None:
            raise unreadable(name, "http://proxy:3128 or http://name:password@proxy:3128")


def loopback_client(*on_response: Callable[[httpx.Response], None]) -> httpx.Client:
    """Return a client of a server on this machine, past every proxy.

    Args:
        on_response: further functions that see each response before it is read.
    """
    client = httpx.Client(
        trust_env=False, headers={"Accept-Encoding": "identity"}, event_hooks={"response": [_limit, *on_response]}
    )
    bound_reads(client)
    return client


def _limit(response: httpx.Response) -> None:
    """Let a reply end where it passes the limit, whoever reads it."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise ReplyTooLarge("compressed, which was not asked for")
    assert isinstance(response.stream, httpx.SyncByteStream)
    response.stream = _Limited(response.stream)


class _Limited(httpx.SyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        came = 0
        for data in self._stream:
            came += len(data)
            if came > MAX_REPLY_BYTES:
                raise ReplyTooLarge(f"over {MAX_REPLY_BYTES:,} bytes")
            yield data

    def close(self) -> None:
        self._stream.close()


def bound_reads(client: httpx.Client) -> None:
    """Let the patience of a request bound each of its reads, whatever comes meanwhile.

    A time-out of httpx counts from the last byte, which a server that sends comments alone puts off for ever, and
    cannot change while a reply comes. httpx has no setting for the network beneath it; httpcore, which it uses, has.
    """
    transports: Iterable[Any] = (client._transport, *client._mounts.values())
    for pool in (transport._pool for transport in transports if transport is not None):
        pool._network_backend = _BoundedNetwork(pool._network_backend)


class _BoundedNetwork(httpcore.NetworkBackend):
    def __init__(self, network: httpcore.NetworkBackend) -> None:
        self._network = network

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *args: Any, **options: Any
    ) -> httpcore.NetworkStream:
        return _BoundedStream(self._network.connect_tcp(host, port, _bounded(timeout), *args, **options))

    def sleep(self, seconds: float) -> None:
        self._network.sleep(seconds)


class _BoundedStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _bounded(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _bounded(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(self, *args: Any, **options: Any) -> httpcore.NetworkStream:
        return _BoundedStream(self._stream.start_tls(*args, **options))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _bounded(timeout: float | None) -> float | None:
    """A time-out within the patience of the request. Raises httpcore.ReadTimeout where that is at its end."""
    seconds = within_patience(timeout)
    if seconds <= 0:
        raise httpcore.ReadTimeout("the patience of the request is at its end")
    return None if seconds == float("inf") else seconds
