"""A Postgres server of the system's packages, in a temporary folder, for as long as the tests need it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Self
from urllib.parse import quote

import pytest

from tests.chroma_server import free_port

PASSWORD = "s3cr@t/word"
_INSTALLED = Path("/usr/lib/postgresql")
_ACCOUNTS = ("postgres", "nobody")


def installed_binaries() -> Path:
    """The folder of `initdb` and `postgres`; the test is skipped where neither PATH nor Debian's packages have them."""
    on_path = shutil.which("initdb")
    places = [Path(on_path).resolve().parent] if on_path else []
    places += sorted(_INSTALLED.glob("*/bin"), key=lambda place: int(place.parent.name), reverse=True)
    for place in places:
        if all((place / name).exists() for name in ("initdb", "postgres", "pg_ctl")):
            return place
    pytest.skip("There is no Postgres here: neither PATH nor /usr/lib/postgresql has initdb and postgres")


class PostgresServer:
    """A server that listens on a port of this machine, and asks for a password."""

    def __init__(self, *settings: str) -> None:
        """``settings`` are of `postgres`, as ``name=value``; by default, it does not wait for the disk."""
        self._binaries = installed_binaries()
        self._settings = settings or ("fsync=off",)
        self._as = _unprivileged()
        self._temporary = tempfile.TemporaryDirectory(prefix="mara-postgres-", ignore_cleanup_errors=True)
        self._folder = Path(self._temporary.name)
        self._data = self._folder / "data"
        self.port = free_port()

    @property
    def url(self) -> str:
        return f"postgresql://mara:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}/postgres"

    def __enter__(self) -> Self:
        secret = self._folder / "secret"
        secret.write_text(PASSWORD)
        if self._as:
            for place in (self._folder, secret):
                shutil.chown(place, *self._as)
        self._run(
            *("initdb", "-D", self._data, "-U", "mara", "--pwfile", secret, "-A", "scram-sha-256"),
            *("-E", "UTF8", "--locale=C.UTF-8", "--no-sync"),
        )
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()
        self._temporary.cleanup()

    def start(self) -> None:
        settings = ("listen_addresses=127.0.0.1", "unix_socket_directories=''", "max_connections=60", *self._settings)
        options = " ".join([f"-p {self.port}", *(f"-c {setting}" for setting in settings)])
        self._run("pg_ctl", "start", "-w", "-D", self._data, "-l", self._folder / "log", "-o", options)

    def stop(self) -> None:
        self._run("pg_ctl", "stop", "-w", "-D", self._data, "-m", "immediate")

    def _run(self, program: str, *arguments: str | Path) -> None:
        command = [str(self._binaries / program), *map(str, arguments)]
        done = subprocess.run([*self._prefix(), *command], cwd=self._folder, capture_output=True, text=True)
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"

    def _prefix(self) -> list[str]:
        """Postgres refuses to run as root: another account runs it then."""
        if not self._as:
            return []
        user, group = self._as
        return ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--"]


def _unprivileged() -> tuple[str, str] | None:
    if os.geteuid() != 0:
        return None
    import grp
    import pwd

    for name in _ACCOUNTS:
        try:
            account = pwd.getpwnam(name)
        except KeyError:
            continue
        return name, grp.getgrgid(account.pw_gid).gr_name
    pytest.skip("Postgres does not run as root, and there is no account 'postgres' or 'nobody' to run it as")
