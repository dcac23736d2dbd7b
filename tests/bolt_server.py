"""A real Bolt endpoint in a process of its own, for tests: ArcadeDB, whose package brings a Java of its own.

It tests what is sent over Bolt, not Memgraph or Neo4j.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from tests.chroma_server import free_port

USER = "root"
PASSWORD = "a-password-for-tests"
MISSING = "the Bolt endpoint of the tests is not installed: make bolt"

_SERVE = """
import os, sys
import arcadedb_embedded
folder, port, http, password = sys.argv[1:]
config = {
    "server_plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
    "bolt_port": int(port),
    "http_port": int(http),
}
server = arcadedb_embedded.create_server(root_path=folder, root_password=password, config=config)
server.start()
print("started", flush=True)
for line in sys.stdin:
    server.create_database(line.strip())
    print("made", flush=True)
os._exit(0)
"""


def is_installed() -> bool:
    """Tell whether the endpoint can be started."""
    return find_spec("arcadedb_embedded") is not None


class BoltEndpoint:
    """A server with any number of databases, answering from when it is made until it is killed.

    Attributes:
        address: with scheme, host and port.
    """

    def __init__(self, folder: Path) -> None:
        port, http = free_port(), free_port()
        self.address = f"bolt://127.0.0.1:{port}"
        self._databases = 0
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, str(folder), str(port), str(http), PASSWORD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=folder,
        )
        try:
            self._hear("started")
        except BaseException:
            self.kill()
            raise

    def new_database(self) -> str:
        """Make an empty database and return its name."""
        self._databases += 1
        name = f"graph{self._databases}"
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        self._hear("made")
        return name

    def kill(self) -> None:
        """End the server without giving it a chance to tidy up."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> BoltEndpoint:
        return self

    def __exit__(self, *raised: object) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _hear(self, word: str) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() == word:
                return
        raise RuntimeError(f"the Bolt endpoint ended ({self._process.wait()})")
