"""Chat models on this machine: ``local`` is the packaged one, ``local:FILE.gguf`` any model file of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from agents.chat.local_server import (
    NOT_STARTED,
    PACKAGED_FILE,
    LocalServer,
    check_packages,
    checked_file,
    packaged_file,
    server_of,
)
from agents.chat.model import ChatModel
from graph.errors import BadInput
from graph.server_clients import serves_clients

if TYPE_CHECKING:
    import httpx

LOCAL = "local"
"""The name of the packaged model."""

_FILE = f"{LOCAL}:"


class LocalChatModel(ChatModel):
    """A chat model of a file on this machine; its server is started at the first request.

    Requests wait for a free slot of the server before their time-out runs.
    """

    def __init__(
        self, name: str, temperature: float, *, file: Path, timeout_s: float, thinking_tokens: int | None
    ) -> None:
        key = SecretStr("")
        super().__init__(
            name, temperature, address=NOT_STARTED, api_key=key, timeout_s=timeout_s, thinking_tokens=thinking_tokens
        )
        self._file = file

    @property
    def context_tokens(self) -> int | None:
        """The context window of the server, which is started for it. Raises as a request does."""
        self._started()
        return super().context_tokens

    @contextmanager
    def _turn(self) -> Iterator[None]:
        with self._started().slots:
            yield

    def _started(self) -> LocalServer:
        server = server_of(self._file, self.name)
        with self._lock:
            if server.address != self._address:
                self._address, self._api_key, self._client = server.address, server.key, None
        return server

    def _http_client(self, *on_response: Callable[[httpx.Response], None]) -> httpx.Client:
        from graph.endpoints.http_client import loopback_client

        return loopback_client(*on_response)


def is_local(model: str) -> bool:
    """Tell whether a model's name stands for one on this machine."""
    return model == LOCAL or model.startswith(_FILE)


def local_name(model: str) -> str:
    """Return the name that results give to a local model: ``local:`` and its file's name, without folder and suffix."""
    file = PACKAGED_FILE if model == LOCAL else model.removeprefix(_FILE)
    return _FILE + Path(file).name.removesuffix(".gguf")


def refuse_file_of_client(model: str) -> None:
    """Raise BadInput where a client of a server names a model file: paths are for the operator alone."""
    if serves_clients() and model.startswith(_FILE):
        raise BadInput(
            "A client of a server may not name a model file",
            f"Give {LOCAL!r} for the packaged model, or let the operator set MARA_CHAT_MODEL",
        )


def open_local_model(
    model: str, temperature: float, *, timeout_s: float, thinking_tokens: int | None
) -> LocalChatModel:
    """Return a chat model on this machine; nothing is loaded before the first question.

    Args:
        model: ``local`` or ``local:FILE.gguf``.
        temperature: from 0 (always the likeliest words) to 2.
        timeout_s: the longest time without a token, in seconds.
        thinking_tokens: the tokens that a model has to think, beside those of its reply; None for the default.

    Raises:
        DependencyMissing: a package is not installed.
        BadInput: the file cannot be read, or is no GGUF file.
        ModelUnavailable: the packaged file is not the published one.
    """
    check_packages()
    file = packaged_file() if model == LOCAL else checked_file(model.removeprefix(_FILE))
    return LocalChatModel(
        local_name(model), temperature, file=file, timeout_s=timeout_s, thinking_tokens=thinking_tokens
    )
