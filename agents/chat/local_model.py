"""Chat models on this machine: ``local`` is the packaged one, ``local:FILE.gguf`` any model file of the user."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from agents.chat.local_server import PACKAGED_FILE, LocalServer, check_packages, checked_file, packaged_file, server_of
from agents.chat.model import ChatModel
from graph.errors import BadInput
from graph.server_clients import serves_clients

if TYPE_CHECKING:
    import httpx
    from langchain_openai import ChatOpenAI

LOCAL = "local"
"""The name of the packaged model."""

_FILE = f"{LOCAL}:"


class LocalChatModel(ChatModel):
    """A chat model of a file on this machine; its server is started at the first request."""

    def __init__(self, name: str, temperature: float, *, file: Path, timeout_s: float) -> None:
        super().__init__(name, temperature, address=None, api_key=SecretStr(""), timeout_s=timeout_s)
        self._file = file
        self._server: LocalServer

    def _open(self) -> ChatOpenAI:
        server = server_of(self._file, self.name)
        with self._lock:
            if server.address != self._address:
                self._server, self._address, self._api_key, self._client = server, server.address, server.key, None
        return super()._open()

    def _http_client(self) -> httpx.Client:
        return self._server.client


def is_local(model: str) -> bool:
    """Tell whether a model's name stands for one on this machine."""
    return model == LOCAL or model.startswith(_FILE)


def local_name(model: str) -> str:
    """Return the name that results give to a local model: ``local:`` and its file's name, without folder and suffix."""
    return _FILE + Path(model.removeprefix(_FILE) if model != LOCAL else PACKAGED_FILE).name.removesuffix(".gguf")


def refuse_file_of_client(model: str) -> None:
    """Raise BadInput where a client of a server names a model file: paths are for the operator alone."""
    if serves_clients() and model.startswith(_FILE):
        raise BadInput(
            "A client of a server may not name a model file",
            f"Give {LOCAL!r} for the packaged model, or let the operator set MARA_CHAT_MODEL",
        )


def open_local_model(model: str, temperature: float, timeout_s: float) -> LocalChatModel:
    """Return a chat model on this machine; nothing is loaded before the first question.

    Args:
        model: ``local`` or ``local:FILE.gguf``.
        temperature: from 0 (always the likeliest words) to 2.
        timeout_s: seconds without a sign of life after which a request is given up.

    Raises:
        DependencyMissing: a package is not installed.
        BadInput: the file cannot be read, or is no GGUF file.
        ModelUnavailable: the packaged file is not the published one.
    """
    check_packages()
    file = packaged_file() if model == LOCAL else checked_file(model.removeprefix(_FILE))
    return LocalChatModel(local_name(model), temperature, file=file, timeout_s=timeout_s)
