"""Two tenants in one workspace, a third workspace beside it, the keys of the callers, and clients with these keys."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import httpx
import jwt

from graph.schema import entity_id
from tests.workflows.dev_server import Server, dev_server
from workflows.indexing import index_sources
from workflows.settings.indexing import IndexingContext

T = TypeVar("T")

QUESTION = "Who drained Lake Sund, and who paid for it?"
"""Whose whole answer only tenant b has."""

CORPORA: Mapping[str, list[dict[str, Any]]] = {
    "a": [
        {
            "id": "of-a-one",
            "title": "Lake Sund",
            "text": "Lake Sund lies near Marn. Olaf Amstel surveyed Lake Sund in 1203.",
        },
        {
            "id": "of-a-two",
            "title": "Olaf Amstel",
            "text": "Olaf Amstel was born in Marn. He founded the Amstel Office.",
        },
    ],
    "b": [
        {
            "id": "of-b-one",
            "title": "Lake Sund",
            "text": "Lake Sund was drained by Project Zember in 1950. Ida Zbrandt bought Lake Sund.",
            "zbudget": 7,
        },
        {
            "id": "of-b-two",
            "title": "Project Zember",
            "text": "Project Zember was paid for by Ida Zbrandt of Marn, and led by Zoltan Zweig.",
            "zbudget": 9,
        },
    ],
}
"""The passages of each tenant; they share names, so that the walk goes from one to the other."""

MARKERS = {
    "a": ("Olaf", "Amstel", "of-a-one", "of-a-two", entity_id("Olaf Amstel")),
    "b": ("Zember", "Zbrandt", "Zoltan", "zember", "of-b-one", "of-b-two", "zbudget", entity_id("Project Zember")),
}
"""Words and names of a tenant's own passages alone."""

BOARD = {"id": "board-1", "title": "Board", "text": "The board of Marn meets in Hall Yster."}

KEYS = {name: f"mara_test-key-of-{name}" for name in ("anna", "ben", "olga", "cleo", "gone")}
SECRET_VARIABLE, SECRET = "TEST_TOKEN_SECRET", "a shared secret of forty characters, at least"
RIGHTS = {
    "anna": 'where = { tenant = "a" }',
    "ben": 'where = { tenant = "b" }',
    "olga": 'where = {}\nworkspaces = "all"\nmay_index = true',
    "cleo": 'where = {}\nworkspaces = ["board"]',
    "gone": 'where = { tenant = "a" }',
}
TOKENS = f"""
[tokens]
algorithms = ["HS256"]
secret_variable = "{SECRET_VARIABLE}"
issuer = "https://login.example.org/"
audience = "mara"
leeway_s = 0
where = {{ tenant = "$claims.tenant" }}
"""


def at_once(ask: Callable[[Any], T], *given: Any) -> list[T]:
    """Ask for several things at once, as many as the server runs; a run takes it about a second."""
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(ask, given))


def keys_file(*without: str) -> str:
    """The file of keys, without some."""
    tables = [
        f'[keys.{name}]\nsha256 = ["{sha256(key.encode()).hexdigest()}"]\n{RIGHTS[name]}\n'
        for name, key in KEYS.items()
        if name not in without
    ]
    return "\n".join([*tables, TOKENS])


def token(secret: str = SECRET, algorithm: str = "HS256", **changed: Any) -> str:
    """A token of tenant b, with some claims changed; None leaves one out."""
    claims = {
        "sub": "bea",
        "tenant": "b",
        "iss": "https://login.example.org/",
        "aud": "mara",
        "exp": int(time.time()) + 600,
        **changed,
    }
    kept = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(kept, secret if algorithm != "none" else None, algorithm)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Tenants:
    """A server that two tenants ask.

    Attributes:
        server: the server.
        keys: its file of keys.
    """

    server: Server
    keys: Path

    def client(self, name: str = "", **headers: str) -> httpx.Client:
        """A client with somebody's key, or with other headers."""
        shown = {"Authorization": f"Bearer {KEYS[name]}"} if name else {}
        return httpx.Client(base_url=self.server.url, headers={**shown, **headers}, timeout=60)


@contextmanager
def tenants_served(folder: Path, **environment: str) -> Iterator[Tenants]:
    """Index the passages of both tenants and of the board, and serve them."""
    root = folder / "root" / "workspace"
    for tenant, rows in CORPORA.items():
        source = folder / f"{tenant}.jsonl"
        source.write_text("\n".join(json.dumps({**row, "tenant": tenant}) for row in rows), encoding="utf-8")
        fields = {"metadata": "tenant,zbudget" if tenant == "b" else "tenant"}
        index_sources([source], root, settings=IndexingContext(fields=fields))
    board = folder / "board.jsonl"
    board.write_text(json.dumps(BOARD), encoding="utf-8")
    index_sources([board], root.parent / "board")
    keys, served = folder / "keys.toml", folder / "served"
    keys.write_text(keys_file(), encoding="utf-8")
    served.mkdir()
    given = {"MARA_AUTH": str(keys), SECRET_VARIABLE: SECRET, **environment}
    with dev_server(root, served, **given) as server:
        yield Tenants(server, keys)


def hidden_in(reply: httpx.Response | str, tenant: str) -> list[str]:
    """The words of a tenant's that stand anywhere in a reply."""
    told = reply if isinstance(reply, str) else f"{reply.headers}{reply.text}"
    return [marker for marker in MARKERS[tenant] if marker in told]


def sees_nothing_of(tenant: str) -> Callable[[httpx.Response], httpx.Response]:
    """Return a check of replies that passes them on."""

    def check(reply: httpx.Response) -> httpx.Response:
        assert hidden_in(reply, tenant) == [], reply.text[:2000]
        return reply

    return check
