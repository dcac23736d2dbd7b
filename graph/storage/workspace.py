"""A workspace on disk: its manifest, its lock, and the generations of what is derived from its record."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar

from graph.environment import environment
from graph.errors import BadInput, WorkspaceDamaged, WorkspaceMissing, shortage_behind
from graph.server_clients import serves_clients
from graph.storage.lock import GenerationHold, WriterLock, alone
from graph.storage.place import PLACE_FILE, RECORD_FILE, check_chosen
from graph.storage.read_only import may_write
from graph.storage.record import FORMAT_VERSION, Record, of_another_format

DEFAULT_WORKSPACE = ".mara"

NEW_WORKSPACES_VARIABLE = "MARA_NEW_WORKSPACES"
"""Says up to how many workspaces, beside the default one, the clients of a server may make more; 0 by default."""

REPLY_CACHE = "replies.sqlite"
"""The file of a workspace that keeps replies of models, so that nothing is asked for twice."""

KEEP_REPLACED_VARIABLE = "MARA_KEEP_REPLACED"
"""With 1, the generation that a publication replaces stays until the next one begins."""

_NAMED_WORKSPACES = ".mara-workspaces"
_ADMISSION, _ADMISSION_S = ".mara-new-workspaces.lock", 60.0
_PAST = "as-of"
PAST_MARK = "AS-OF"
"""The file that marks a workspace as derived from another one, of what stood there at some moment."""

_LAYER_FILE = "search.json"
_NAME_LENGTH = 64
_CLIENTS_NAME = re.compile(rf"[A-Za-z0-9_-][A-Za-z0-9._-]{{0,{_NAME_LENGTH - 1}}}")
_NO_WORKSPACE_HINT = "Index some documents first: `mara index SOURCE...`, or `mara demo` for the sample corpus"


def default_workspace() -> Path:
    """Return ``MARA_WORKSPACE``, or ``./.mara`` when it is not set."""
    return Path(environment().mara_workspace or DEFAULT_WORKSPACE)


def resolve_workspace(name: str) -> Path:
    """Return the folder of the workspace that a caller names; the default one for an empty name.

    In a LangGraph server the name comes from a client: there it is a plain name, never a path. It stands for a folder
    beside the workspace of ``MARA_WORKSPACE`` or, where that is not set, in a folder that holds nothing else.

    Raises:
        BadInput: what a client of a server gave is no such name.
    """
    if not name:
        return default_workspace()
    if not serves_clients():
        return Path(name)
    check_workspace_name(name)
    return _named_workspaces() / name


def is_workspace_name(name: str) -> bool:
    """Tell whether a client of a server may name a workspace so: a plain name, never a path."""
    return bool(_CLIENTS_NAME.fullmatch(name)) and not name.endswith(".")


def check_workspace_name(name: str) -> None:
    """Raise BadInput where a client of a server may not name a workspace so."""
    if not is_workspace_name(name):
        raise BadInput(
            f"{name[:_NAME_LENGTH]!a} is not the name of a workspace",
            f"Give the name of a workspace: letters a to z, digits, '-', '_' and '.', at most {_NAME_LENGTH} of them,"
            " with no '.' at either end",
        )


def check_may_be_written(root: Path) -> None:
    """Refuse a client of a server a workspace that is not there, unless the operator lets clients make more.

    Raises:
        BadInput: there are as many workspaces as ``MARA_NEW_WORKSPACES`` allows, or the folder holds something else.
        WorkspaceMissing: clients may make none.
    """
    if not _is_new_of_a_client(root):
        return
    allowed = _new_workspaces()
    if not allowed:
        raise WorkspaceMissing(
            f"There is no workspace {root.name}",
            f"Name one that is there, or let clients make workspaces: {NEW_WORKSPACES_VARIABLE}",
        )
    if sum(1 for each in root.parent.glob("*") if Workspace(each).record_path.exists()) >= allowed:
        raise BadInput(
            f"There are {allowed} workspaces, and clients may make no more",
            f"Name one that is there, or raise {NEW_WORKSPACES_VARIABLE}",
        )
    if root.exists() and (not root.is_dir() or {*root.rglob("*")} - {root / "index"}):
        raise BadInput(f"{root.name} is no workspace and holds something else", "Choose another name")


def _is_new_of_a_client(root: Path) -> bool:
    is_default = root.absolute() == default_workspace().absolute()
    return serves_clients() and not is_default and not Workspace(root).record_path.exists()


@contextmanager
def admitted(root: Path) -> Iterator[None]:
    """Check a workspace once more, as `check_may_be_written` does, and let no other be made for a client meanwhile."""
    if not _is_new_of_a_client(root):
        yield
        return
    root.parent.mkdir(parents=True, exist_ok=True)
    message = "Another workspace has been being made for a client for a minute"
    with alone(root.parent / _ADMISSION, _ADMISSION_S, message, "Try again when it is done"):
        check_may_be_written(root)
        yield


def _named_workspaces() -> Path:
    """Return the folder that holds the workspaces which clients name."""
    if environment().mara_workspace:
        return default_workspace().parent
    return Path(_NAMED_WORKSPACES)


def _new_workspaces() -> int:
    """Return up to how many workspaces clients may make more. Raises BadInput where the setting is no number."""
    text = environment().mara_new_workspaces or "0"
    if not text.isdecimal():
        raise BadInput(f"{NEW_WORKSPACES_VARIABLE} is {text!r}", "Set it to a number of workspaces, 0 for none")
    return int(text)


def keeps_replaced() -> bool:
    """Tell whether publications keep what they replace, for readers that cannot be seen from here.

    Raises:
        BadInput: the setting is neither 0 nor 1.
    """
    text = environment().mara_keep_replaced or "0"
    if text not in ("0", "1"):
        raise BadInput(f"{KEEP_REPLACED_VARIABLE} is {text!r}", "Set it to 1, or unset it")
    return text == "1"


class Workspace:
    """The files of one workspace: manifest.json, record.sqlite, CURRENT, index/<generation>/ and lock.

    A record in Postgres has record.json in its place, and the lock is the server's.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def record_path(self) -> Path:
        """The file of the record; where that is in Postgres, the file that names it."""
        place = self.root / PLACE_FILE
        return place if place.exists() else self.root / RECORD_FILE

    @property
    def build_cache(self) -> Path:
        """Where a build that is larger than memory keeps what it read of passages, so that the next reads less."""
        return self.root / "build"

    @property
    def past(self) -> Path:
        """Where the workspaces lie that are derived from it, of what stood at some moment."""
        return self.root / _PAST

    @property
    def is_past(self) -> bool:
        """Whether it is derived from another one, of what stood there at some moment."""
        return (self.root / PAST_MARK).exists()

    def forget_past(self) -> None:
        """Remove what is derived of what stood at some moment: it is derived again when it is asked for."""
        shutil.rmtree(self.past, ignore_errors=True)

    def index_folder(self, generation: int) -> Path:
        """Where the derived files of a generation are."""
        return self.root / "index" / str(generation)

    def create(self) -> None:
        """Make the folder and an empty record where there is none yet.

        Raises:
            BadInput: the folder cannot be made or written.
            WorkspaceDamaged: there is a workspace of another format.
        """
        self._check_manifest()
        try:
            (self.root / "index").mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            raise shortage_behind(fault) or BadInput(
                f"{self.root} cannot be used as a workspace ({fault.strerror})", "Choose another folder"
            ) from fault
        Record(self.root / RECORD_FILE, create=True).close()

    def open_record(self, lock: WriterLock | None = None) -> Record:
        """Open the record; with its writer's lock, nothing can be written once that is lost.

        Raises:
            WorkspaceMissing: there is none.
            WorkspaceDamaged: it cannot be read.
            RecordUnavailable: it is in Postgres, and the server does not answer.
            BadInput: it is not where ``MARA_RECORD_URL`` says.
        """
        self._check_manifest()
        if not self.record_path.exists():
            raise WorkspaceMissing(f"There is no workspace at {self.root}", _NO_WORKSPACE_HINT)
        record = Record(self.record_path)
        if lock is not None:
            record.fence(lock.check)
        return record

    def check_passages(self, record: Record) -> None:
        """Raise WorkspaceMissing when the record holds no passage."""
        if not record.count_passages():
            raise WorkspaceMissing(f"The workspace at {self.root} holds no passage", _NO_WORKSPACE_HINT)

    def current(self) -> int | None:
        """Return the generation that readers should open, or None before the first.

        Raises OutOfResources where it cannot be told for want of open files.
        """
        try:
            return int((self.root / "CURRENT").read_text(encoding="ascii"))
        except (OSError, ValueError) as fault:
            if not isinstance(fault, FileNotFoundError) and (shortage := shortage_behind(fault)):
                raise shortage from fault
            return None

    def publish(self, record: Record) -> None:
        """Make the generation that was derived from a record the current one; remove those that are no longer needed.

        The one before it stays with ``MARA_KEEP_REPLACED``, until the next publication begins.
        """
        manifest = manifest_of(record, record.generation)
        with record.transaction():
            write_atomically(self.root / "manifest.json", json.dumps(manifest, indent=2) + "\n")
            write_atomically(self.root / "CURRENT", f"{record.generation}\n")
        self.prune()

    def withdraw(self, record: Record) -> None:
        """Leave readers no generation, as before the first: the record holds no passage any more."""
        with record.transaction():
            for name in ("CURRENT", "manifest.json"):
                (self.root / name).unlink(missing_ok=True)
        shutil.rmtree(self.build_cache, ignore_errors=True)
        self.prune(replaced=True)

    def claim(self) -> WriterLock:
        """Become the workspace's writer until the lock is released.

        Raises WorkspaceLocked, naming the writer, while there is another; WorkspaceMissing where there is no workspace;
        BadInput where it may not be written.
        """
        self.open_record().close()
        if not may_write(self.root):
            raise BadInput(f"{self.root} may not be written", "Check its permissions, or index it where it may be")
        return WriterLock(self.record_path)

    @contextmanager
    def writing(self) -> Iterator[WriterLock]:
        """Be the workspace's writer for the length of the block; raises as `claim` does."""
        lock = self.claim()
        try:
            yield lock
        finally:
            lock.release()

    def hold(self, generation: int) -> GenerationHold:
        """Keep a generation from being removed while it is read. Raises OSError when it is gone."""
        return GenerationHold(self.index_folder(generation))

    def _check_manifest(self) -> None:
        path = self.root / "manifest.json"
        if self.root.exists() and not self.root.is_dir():
            raise BadInput(f"{self.root} is a file, not a workspace", "Name a folder")
        if not self.is_past:
            check_chosen(self.root)
        if not path.exists():
            return
        try:
            version = json.loads(path.read_text(encoding="utf-8"))["format_version"]
        except (OSError, ValueError, KeyError, TypeError) as fault:
            if shortage := shortage_behind(fault):
                raise shortage from fault
            raise WorkspaceDamaged(
                f"{path} cannot be read", "Delete that file: the next `mara index` writes it again from the record"
            ) from fault
        if version != FORMAT_VERSION:
            raise of_another_format(self.root, version)

    def prune(self, *, replaced: bool = False) -> None:
        """Remove what `stale_folders` names."""
        for folder in self.stale_folders(replaced=replaced):
            shutil.rmtree(folder, ignore_errors=True)

    def stale_folders(self, *, replaced: bool = False) -> list[Path]:
        """Return what lies among the generations and is not needed.

        That is neither the current one, nor one that a reader holds, nor one that these lie on; nor, with
        ``MARA_KEEP_REPLACED``, the last before the current one, unless what was ``replaced`` is not needed any more.
        """
        index, current = self.root / "index", self.current()
        folders = list(index.iterdir()) if index.is_dir() else []
        wanted = {str(current)}
        if keeps_replaced() and not replaced:
            older = [int(folder.name) for folder in folders if folder.name.isdecimal()]
            wanted.add(str(max((each for each in older if each < (current or 0)), default=None)))
        needed = [folder for folder in folders if folder.name in wanted or GenerationHold.is_held(folder)]
        layers = [layer for folder in needed if (layer := Layer.load(folder))]
        names = {folder.name for folder in needed} | {str(layer.base) for layer in layers}
        return [folder for folder in folders if folder.name not in names]


@dataclass(frozen=True, slots=True)
class Layer:
    """The sets of a generation's vectors: a set of its own, whole or of what changed since an older one's.

    Attributes:
        base: the generation whose set it lies on; its own number where its set is whole.
        key: its own set's.
        base_key: that of the set that it lies on; its own where its set is whole.
        vectors: the record's ``vectors_id`` when the set was made.
        store: what keeps the sets.
        gone: by collection, rows of the base that are gone, or stand otherwise here.
        new: by collection, rows of this generation that the base lacks, or has otherwise: all that its own set has.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    base: int
    key: str
    base_key: str = ""
    vectors: str = ""
    store: str = "chroma"
    gone: Mapping[str, Sequence[int]] = field(default_factory=dict)
    new: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Write it into a generation's folder."""
        (folder / _LAYER_FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def load(folder: Path) -> Layer | None:
        """Read what a generation's folder says; None where it says nothing that can be read."""
        from pydantic import TypeAdapter

        try:
            return TypeAdapter(Layer).validate_json((folder / _LAYER_FILE).read_bytes(), strict=True)
        except (OSError, ValueError):
            return None


def manifest_of(record: Record, generation: int | None) -> dict[str, str | int | None]:
    """Return what manifest.json says where a generation of a record is published."""
    return {
        "format_version": FORMAT_VERSION,
        "workspace_id": record.workspace_id,
        "embedding_model": record.embedding_model,
        "embedding_dimension": record.dimension,
        "generation": generation,
    }


def write_atomically(path: Path, content: str | bytes) -> None:
    """Put a file in place at once: a reader finds the old content or the new one, also after a crash."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
