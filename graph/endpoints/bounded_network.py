"""The network beneath a client, of which no read takes longer than its request's patience."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

from graph.endpoints.patience import within_patience


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
