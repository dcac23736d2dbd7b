"""Vectors in Chroma: a database in the generation's folder, or the collections of the server of ``MARA_VECTORS``."""

from __future__ import annotations

import os
import re
import sqlite3
import ssl
import struct
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np

from graph.endpoints.address import Address, censored
from graph.endpoints.openai_protocol import timeout_s
from graph.environment import environment
from graph.errors import (
    DiskFull,
    MaraError,
    StoreUnavailable,
    WorkspaceDamaged,
    check_files,
    faults_behind,
)
from graph.publish.vector_store import (
    COLLECTIONS,
    EMBEDDED,
    VECTORS_VARIABLE,
    Hits,
    Numbers,
    OpenCost,
    Place,
    Vector,
    Vectors,
    damaged,
    named_store,
    size_of,
)
from graph.storage.read_only import may_write, writable_copy

_PAGE = 5_000
"""Records that Chroma takes in one call."""

EF_SEARCH = 1_000
"""How many records a search looks at. Measured on 17,000 facts, in any order of building, the best ten come out exact
in 2.8 ms; 400 miss one of them for 1 question in 400 in 1.6 ms, 100 for 1 in 12 in 1.0 ms."""

_SYNCED_FROM = 1_000
"""Records from which on Chroma writes an index to its files, as it does of itself. Then all are written at once: it
writes the whole index each time."""

_CONNECTING = threading.Lock()
_REPAIR = "If it stays so, `mara doctor --repair` writes the vectors again from the record"

_OPENING = threading.Lock()
"""Chroma counts the clients of a folder without a lock of its own."""

_OWN_COST = OpenCost(6_000_000, 20, 8)
"""Of an embedded Chroma, however little it holds, beside what follows from the sizes of its files."""

_HNSW_HEADER = struct.Struct("<i4Q")
"""Version, offset, places, places taken, bytes a place: what the header of an index begins with."""

_LENGTH_BYTES = 4
_PER_VECTOR_BYTE = 1.1
_DATABASE = "chroma.sqlite3"
_CACHED = 3 * 2_000_000
"""Bytes of its database that three connections of Chroma keep, at most."""


class ChromaStore:
    """Sets in Chroma, embedded or on a server. Of a set, ``facts`` and ``passages`` are a collection each."""

    @property
    def remote(self) -> bool:
        """Whether ``MARA_VECTORS`` names a server."""
        return bool(_server_url())

    def address(self, place: Place) -> str:
        """Return ``embedded``, or the server's address. Raises BadInput where that is none."""
        return server_address(_url(place)).url if _url(place) else "embedded"

    def write(self, place: Place, vectors: Mapping[str, Vectors]) -> None:
        """Write a set."""
        written = _connect(place) if _url(place) else _open_files(place, new=True)
        try:
            for name, content in vectors.items():
                written.write(name, content)
        finally:
            written.close()

    def open(self, place: Place, *, untouched: bool = False) -> ChromaSet:
        """Open a set. Chroma writes into files that it opens: where it may or should not, they are copied first.

        Raises:
            WorkspaceDamaged: it is not there, or cannot be read.
            StoreUnavailable: the server does not answer.
            BadInput: there is no room for the copy.
            OutOfResources: the machine gives no more memory or open files.
        """
        opened = _connect(place) if _url(place) else _open_files(place, untouched=untouched)
        try:
            opened.check()
        except BaseException:
            opened.close()
            raise
        return opened

    def cost(self, place: Place) -> OpenCost:
        """Return what an embedded set takes: all of its vectors and links, and some of its database."""
        if not place.files.is_dir():
            return OpenCost()
        database = sum(each.stat().st_size for each in place.files.iterdir() if each.is_file())
        vectors = size_of(place.files) - database
        return _OWN_COST + OpenCost(min(3 * database, _CACHED) + _PER_VECTOR_BYTE * vectors)

    def forget(self, prefix: str, kept: Collection[str]) -> None:
        """Delete a workspace's collections on the server, if there is one, that belong to no set that is kept."""
        if not self.remote:
            return
        address = server_address(_server_url())
        of_set = re.compile(rf"{re.escape(prefix)}([0-9a-f]+)-(?:{'|'.join(COLLECTIONS)})")
        try:
            client = connect(address)
            for each in client.list_collections():
                if (own := of_set.fullmatch(each.name)) and own[1] not in kept:
                    client.delete_collection(each.name)
        except Exception as fault:
            raise unavailable(address.url, fault) from fault


class ChromaSet:
    """A set in Chroma that is open. Safe across threads."""

    def __init__(
        self,
        client: Any,
        name_of: Callable[[str], str],
        fault_of: Callable[[Exception], MaraError],
        close: Callable[[], None],
        folder: Path | None = None,
    ) -> None:
        """Take what is open.

        Args:
            client: of Chroma.
            name_of: returns the name of the collection of the facts or the passages.
            fault_of: makes an error of what the client raises.
            close: lets go of the client.
            folder: of the database; None where a server has it.
        """
        self._client = client
        self._folder = folder
        self._searched: set[str] = set()
        self._name_of = name_of
        self._fault_of = fault_of
        self._close = close
        self._found: dict[str, tuple[Any, int]] = {}

    def write(self, name: str, vectors: Vectors) -> None:
        """Make the collection of the facts or the passages."""
        with self._faults():
            made = self._client.create_collection(
                self._name_of(name),
                embedding_function=None,
                configuration={
                    "hnsw": {
                        "space": "cosine",
                        "ef_search": EF_SEARCH,
                        "sync_threshold": max(_SYNCED_FROM, vectors.count),
                    }
                },
            )
            for start, page in vectors.pages(_PAGE):
                made.upsert(ids=[str(start + row) for row in range(len(page))], embeddings=page)

    def check(self) -> None:
        """Raise WorkspaceDamaged where it is not there."""
        from chromadb.errors import NotFoundError

        with self._faults():
            try:
                for name in COLLECTIONS:
                    self._open(name)
            except NotFoundError as fault:
                raise damaged(fault) from fault

    def count(self, name: str) -> int:
        """Return how many facts or passages it has."""
        with self._faults():
            return self._open(name)[1]

    def search(self, name: str, vector: Vector, k: int, within: Numbers | None = None) -> Hits:
        """Return the ``k`` nearest to a unit vector; among up to a thousand, exactly."""
        with self._faults():
            collection, size = self._open(name)
            size = size if within is None else len(within)
            few = size if size <= EF_SEARCH else 0
            reply = collection.query(
                query_embeddings=[vector],
                n_results=max(k, few),
                include=["distances"],
                ids=None if within is None else [*map(str, within.tolist())],
            )
        if name not in self._searched and self._folder is not None:
            # The first search makes the files anew that an index of few records never fills.
            wipe_unused(self._folder)
            self._searched.add(name)
        hits = [(int(key), 1.0 - float(d)) for key, d in zip(reply["ids"][0], reply["distances"][0], strict=True)]
        if len(hits) < few:
            hits = self._with_unreached(name, hits, vector, range(size) if within is None else within.tolist())
        return hits[:k]

    def vectors(self, name: str, numbers: Sequence[int]) -> Vector:
        """Return some vectors as a search reads them."""
        vector_of: dict[str, Any] = {}
        keys = [*map(str, numbers)]
        with self._faults():
            for start in range(0, len(keys), _PAGE):
                page = self._open(name)[0].get(ids=keys[start : start + _PAGE], include=["embeddings"])
                vector_of.update(zip(page["ids"], page["embeddings"], strict=True))
            return np.asarray([vector_of[key] for key in keys], dtype=np.float32)

    def close(self) -> None:
        """Let go of the client; the files of an embedded database are free after that."""
        self._close()

    def _open(self, name: str) -> tuple[Any, int]:
        """Return a collection and how much it holds, which stays as it is."""
        if name not in self._found:
            collection = self._client.get_collection(self._name_of(name), embedding_function=None)
            self._found[name] = collection, int(collection.count())
        return self._found[name]

    def _with_unreached(self, name: str, hits: Hits, vector: Vector, among: Sequence[int]) -> Hits:
        """Add what the graph of the index has no way to: it is laid out on several threads, anew in each process."""
        unreached = sorted({*among} - {number for number, _ in hits})
        cosines = self.vectors(name, unreached) @ vector
        return sorted([*hits, *zip(unreached, cosines.tolist(), strict=True)], key=lambda hit: -hit[1])

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except WorkspaceDamaged:
            raise
        except Exception as fault:
            raise self._fault_of(fault) from fault


def _url(place: Place) -> str:
    """Return the address of the server that holds a set; empty where its generation's folder does."""
    return _server_url() if place.prefix else ""


def _server_url() -> str:
    """Return the address of the server that ``MARA_VECTORS`` names; empty for none."""
    name, url = named_store()
    return url if name == EMBEDDED else ""


def _connect(place: Place) -> ChromaSet:
    address = server_address(_url(place))
    client = connect(address)
    return ChromaSet(client, place.collection, lambda fault: unavailable(address.url, fault), lambda: None)


def _open_files(place: Place, *, new: bool = False, untouched: bool = False) -> ChromaSet:
    """Open the database of a set, or a copy of it, which goes when the set is closed."""
    copy: TemporaryDirectory[str] | None = None
    if new:
        place.files.mkdir(parents=True)
    elif not place.files.is_dir():
        raise WorkspaceDamaged(f"The search index has no {place.files.name}", "Run `mara index` again")
    elif untouched or not may_write(place.files):
        copy = writable_copy(place.files)
    try:
        client = _client(str(place.files) if copy is None else copy.name)
    except DiskFull:
        if new or copy is not None:
            raise
        copy = writable_copy(place.files)
        client = _client(copy.name)

    folder = place.files if copy is None else Path(copy.name)

    def close() -> None:
        with _OPENING:
            client.close()
        if new:
            wipe_unused(folder)
            drop_queue(folder)
        if copy is not None:
            copy.cleanup()

    return ChromaSet(client, str, damaged, close, folder)


def wipe_unused(folder: Path) -> None:
    """Empty the places that Chroma's index files keep for records to come.

    It writes them as they happen to lie in memory, with whatever this process had there before: keys and removed texts,
    too.
    """
    for header in folder.glob("*/header.bin"):
        begins = header.read_bytes()[: _HNSW_HEADER.size]
        if len(begins) < _HNSW_HEADER.size:
            continue  # being written, in another thread, which wipes as well
        _, _, places, taken, width = _HNSW_HEADER.unpack(begins)
        for name, bytes_each in (("data_level0.bin", width), ("length.bin", _LENGTH_BYTES)):
            with suppress(PermissionError), header.with_name(name).open("r+b") as file:
                if file.seek(0, os.SEEK_END) == places * bytes_each:
                    file.seek(taken * bytes_each)
                    file.write(bytes((places - taken) * bytes_each))


def drop_queue(folder: Path) -> None:
    """Give back the room that the vectors took in Chroma's database before they were in its index files.

    Raises WorkspaceDamaged where the database cannot be read, DiskFull where there is no room to write it anew.
    """
    try:
        with closing(sqlite3.connect(folder / _DATABASE)) as database:
            # Where this is interrupted, the whole set is made again.
            database.execute("PRAGMA journal_mode = OFF")
            database.execute("VACUUM")
    except sqlite3.Error as fault:
        raise damaged(fault) from fault


def _client(folder: str) -> Any:
    """Return Chroma's client of the database in a folder."""
    check_files()
    import chromadb

    try:
        with _OPENING:
            return chromadb.PersistentClient(folder, settings=_settings().model_copy())
    except Exception as fault:
        raise damaged(fault) from fault


@cache
def _settings() -> Any:
    """Return Chroma's settings, which it looks for in the environment for milliseconds."""
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)


def server_address(text: str) -> Address:
    """Return the address in a text such as ``https://name:password@host:8000/path/``.

    Raises:
        BadInput: it is none; the message shows nothing secret of it.
    """
    return Address.parse(text, VECTORS_VARIABLE, "chroma+http://localhost:8000")


def connect(address: Address) -> Any:
    """Return Chroma's client of a server, whose requests take ``MARA_TIMEOUT_S`` at most.

    It is the process's only one for that server, as closing one leaves sockets open. A token is taken from Chroma's
    own variables: ``CHROMA_CLIENT_AUTH_PROVIDER``, ``CHROMA_CLIENT_AUTH_CREDENTIALS``.

    Raises:
        StoreUnavailable: the server does not answer, or refuses.
    """
    token = environment().chroma_client_auth_provider, environment().chroma_client_auth_credentials
    try:
        with _CONNECTING:
            return _server_client(address, timeout_s(), token)
    except Exception as fault:
        raise unavailable(address.url, fault) from fault


@cache
def _server_client(address: Address, seconds: float, token: tuple[str, str]) -> Any:
    """Make a client; Chroma itself reads the token, which is here so that another one makes another client."""
    import chromadb
    from chromadb.config import Settings

    _check_heartbeat(address.url, seconds)
    client = chromadb.HttpClient(
        host=address.url,
        port=address.port,
        ssl=address.url.startswith("https:"),
        headers={"Authorization": address.authorization} if address.credentials else {},
        settings=Settings(
            anonymized_telemetry=False, chroma_server_host=address.url, chroma_server_http_port=address.port
        ),
    )
    # Chroma's client waits for ever, and has no setting for it.
    client._server._session.timeout = seconds  # type: ignore[attr-defined]
    return client


def unavailable(url: str, fault: Exception) -> MaraError:
    """Translate what Chroma's client raised into an error that says what the server did and what to do."""
    from chromadb.errors import ChromaError, NotFoundError

    if isinstance(fault, MaraError):
        return fault
    if _refuses(fault):
        return StoreUnavailable(
            f"The Chroma server at {url} refuses the credentials",
            f"Put name and password into {VECTORS_VARIABLE}, or a token into CHROMA_CLIENT_AUTH_CREDENTIALS",
        )
    if isinstance(fault, NotFoundError):
        return StoreUnavailable(f"The Chroma server at {url} no longer holds what this index was opened with", _REPAIR)
    if isinstance(fault, ChromaError):
        return StoreUnavailable(f"The Chroma server at {url} answers with an error ({censored(str(fault))})", _REPAIR)
    return StoreUnavailable(
        f"The Chroma server at {url} does not answer as it should ({type(fault).__name__})",
        f"Start it with `chroma run`, or leave its address out of {VECTORS_VARIABLE} to use the embedded one",
    )


def _check_heartbeat(url: str, seconds: float) -> None:
    """Ask for a sign of life, whatever it is: the client that is made next would wait for it without end.

    Nothing secret is sent, so no certificate is looked at; the client does.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        urlopen(f"{url}/api/v2/heartbeat", timeout=seconds, context=context).close()
    except HTTPError as answer:
        answer.close()


def _refuses(fault: BaseException) -> bool:
    """Tell whether any of the faults behind this one is that of credentials that are missing or wrong."""
    from chromadb.errors import AuthorizationError, ChromaAuthError

    return any(
        isinstance(each, AuthorizationError | ChromaAuthError)
        or getattr(getattr(each, "response", None), "status_code", 0) in (401, 403)
        for each in faults_behind(fault)
    )
