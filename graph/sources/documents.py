"""Reading documents: files and folders become passages; a file that cannot be read is refused by name."""

from __future__ import annotations

import json
import os
import re
import weakref
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from tempfile import SpooledTemporaryFile, gettempdir
from threading import Lock

from graph.errors import BadInput, DiskFull, UnknownColumn
from graph.schema import MetadataValue, Passage
from graph.sources.child import Child
from graph.sources.loaders import is_link_list, kind_of, kinds, load_file, readable_hint
from graph.sources.loaders.document import Loaded, Refused
from graph.sources.loaders.fields import FieldMap, check_metadata, matches, no_column
from graph.sources.loaders.files import readable_path, unopened
from graph.sources.splitting import CHUNK_OVERLAP, CHUNK_TOKENS, split_document

_IN_MEMORY = 64 * 2**20
"""Bytes up to which they stay in memory all the same."""


class PassagesRead(Mapping[str, Passage]):
    """Passages by id, in the order in which they came; any thread may read them.

    The file has no name, lies in the folder of temporary files, and goes with the last reference to this.
    """

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile[bytes](max_size=_IN_MEMORY)
        self._places: dict[str, int] = {}
        self._end = 0
        self._lock = Lock()
        weakref.finalize(self, _close, self._file)

    def add(self, passage: Passage) -> None:
        """Take in a passage whose id is not there yet.

        Raises:
            DiskFull: there is no room for it.
        """
        row = passage.id, passage.title, passage.text, passage.source, dict(passage.metadata)
        line = json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        with self._at(self._end) as file:
            file.write(line)
            self._places[passage.id] = self._end
            self._end += len(line)

    def __getitem__(self, key: str) -> Passage:
        """Return a passage. Raises KeyError where it is not there, DiskFull where there was no room for it."""
        with self._at(self._places[key]) as file:
            line = file.readline()
        return Passage(*json.loads(line.decode("utf-8", "surrogatepass")))

    def __contains__(self, key: object) -> bool:
        """Tell whether a passage is there, without reading it."""
        return key in self._places

    def __iter__(self) -> Iterator[str]:
        """Yield the ids."""
        return iter(self._places)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._places)

    @contextmanager
    def _at(self, place: int) -> Iterator[SpooledTemporaryFile[bytes]]:
        """Yield the file, to read or write at a place; what was written before may need room only now."""
        with self._lock:
            try:
                self._file.seek(place)
                yield self._file
            except OSError as fault:
                raise DiskFull(
                    f"There is no room in {gettempdir()} for the passages that are read ({fault.strerror})",
                    "Make some, or set TMPDIR to a folder that has more",
                ) from fault


def _close(file: SpooledTemporaryFile[bytes]) -> None:
    with suppress(OSError):
        file.close()


_LEAST_CHUNK = 16
_SHOWN_FILES = 30


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of reading sources.

    Attributes:
        fields: which column or key of tables and corpora holds what; a column that only some files have is taken
            where it is.
        chunk_tokens: length of a passage of a document, in tokens of the embedding model, about; at least 16.
        chunk_overlap: what neighbours share, in the same; less than half of it.
        metadata: given to every passage, in place of what its file says under the same key.

    Raises:
        BadInput: the lengths do not fit together, or the metadata cannot be set.
    """

    fields: FieldMap = field(default_factory=FieldMap)
    chunk_tokens: int = CHUNK_TOKENS
    chunk_overlap: int = CHUNK_OVERLAP
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.chunk_tokens < _LEAST_CHUNK or not 0 <= self.chunk_overlap < self.chunk_tokens / 2:
            raise BadInput(
                f"Chunks of {self.chunk_tokens} tokens cannot share {self.chunk_overlap}",
                f"Give at least {_LEAST_CHUNK} tokens, and an overlap under half of them",
            )
        check_metadata(self.metadata)


@dataclass(frozen=True, slots=True)
class ToRead:
    """A file that is to be read, and the name that its passages know it by."""

    path: Path
    source: str


@dataclass(slots=True)
class Documents:
    """The passages of all sources, and what was refused or dropped.

    Attributes:
        passages: by id; the same passage given twice stands once.
        refused: files that could not be read, with the reason.
        skipped: files and folders that are no documents, with the reason: of other kinds, hidden, without text.
        identical: how many passages were given more than once.
        columns: the names of the columns or keys of each table and corpus, by its source.
        notes: how many items within the files were dropped or defaulted, by reason.
    """

    passages: PassagesRead = field(default_factory=PassagesRead)
    refused: list[Refused] = field(default_factory=list)
    skipped: list[Refused] = field(default_factory=list)
    identical: int = 0
    columns: dict[str, dict[str, None]] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)

    def take(self, read: Loaded) -> None:
        """Take in what a file holds. Raises BadInput when one id stands for two texts."""
        self.refused.extend(read.refused)
        self.identical += read.identical
        for source, columns in read.columns.items():
            self.columns.setdefault(source, {}).update(columns)
        self.notes += read.notes
        self.add(read.passages)

    def add(self, passages: Iterable[Passage]) -> None:
        """Take passages in. Raises BadInput when one id stands for two texts."""
        for passage in passages:
            if passage.id not in self.passages:
                self.passages.add(passage)
                continue
            known = self.passages[passage.id]
            if (known.title, known.text) != (passage.title, passage.text):
                raise BadInput(
                    f"The id {passage.id!r} stands for two texts (in {known.source} and {passage.source})",
                    "Give each passage an id of its own",
                )
            self.identical += 1

    def refuse(self, path: Path, reason: str) -> None:
        """Keep the name of a file or folder that is not read, and why."""
        self.refused.append(Refused(readable_path(path), f"{readable_path(path)} {reason}"))

    def skip(self, path: Path, reason: str) -> None:
        """Keep the name of a file or folder that is no document, and why."""
        self.skipped.append(Refused(readable_path(path), f"{readable_path(path)} {reason}"))


def read_documents(sources: Sequence[Path], options: ReadOptions | None = None) -> Documents:
    """Read files and folders.

    A file that is named and cannot be read is an error; one that lies in a folder is refused by name, and the rest
    is read. Pages that a list of links names are read with that list, and not once more on their own.

    Args:
        sources: files and folders.
        options: how they are read.

    Raises:
        BadInput: a source does not exist or cannot be read, a line is malformed, one id stands for two texts, or no
            file has a column that is mapped.
        DependencyMissing: a file was named whose loader is not installed.
    """
    documents, options = Documents(), options or ReadOptions()
    with Child() as child:
        for source in sources:
            if _is_folder(source):
                _read_folder(source, documents, options, child)
            else:
                file = ToRead(source, readable_path(Path(source.name)))
                _take_or_refuse(file, read_file(file, options, child), documents)
    if not any(_has_rows(Path(refused.source)) for refused in documents.refused):
        _check_fields(options.fields, documents.columns)
    return documents


def _has_rows(path: Path) -> bool:
    kind = kinds().get(path.suffix.lower())
    return kind is not None and kind.has_rows


def _check_fields(fields: FieldMap, columns: Mapping[str, Collection[str]]) -> None:
    """Raise BadInput where no table has a column that is mapped, or a map is for files that are not there."""
    known = dict.fromkeys(name for names in columns.values() for name in names)
    missing = next((name for name in fields.columns() if name not in known), None)
    if missing is not None and columns:
        raise no_column(next(iter(columns)) if len(columns) == 1 else "", missing, known)
    unused = next((pattern for pattern, _ in fields.files if not any(matches(pattern, file) for file in columns)), None)
    if unused is not None and columns:
        raise BadInput(
            f"No table or corpus is called {unused!r}", f"There are: {', '.join(islice(columns, _SHOWN_FILES))}"
        )


def _is_folder(source: Path) -> bool:
    """Tell a folder from a file that may be read. Raises BadInput for anything else."""
    try:
        if source.is_dir():
            return True
        if not source.is_file():
            reason = "is no plain file" if source.exists() else "does not exist"
            raise BadInput(f"{readable_path(source)} {reason}", "Name a file or a folder")
    except OSError as fault:
        raise unopened(source, fault) from fault
    if source.suffix.lower() not in kinds():
        raise BadInput(f"{readable_path(source)} is of a kind that is not read", readable_hint())
    return False


def _read_folder(folder: Path, documents: Documents, options: ReadOptions, child: Child) -> None:
    files = [ToRead(path, readable_path(path.relative_to(folder))) for path in _files_below(folder, documents)]
    used: set[Path] = set()
    lists = [file for file in files if is_link_list(file.path)]
    for file, outcome in zip(lists, _read(lists, options, child), strict=True):
        _take_or_refuse(file, outcome, documents)
        used |= outcome.pages_used if isinstance(outcome, Loaded) else frozenset()
    others = [file for file in files if not is_link_list(file.path) and not (used and file.path.resolve() in used)]
    for file, outcome in zip(others, _read(others, options, child), strict=True):
        _take_or_refuse(file, outcome, documents)


def _take_or_refuse(file: ToRead, outcome: Loaded | BadInput, documents: Documents) -> None:
    if isinstance(outcome, UnknownColumn):
        raise outcome
    if isinstance(outcome, BadInput):
        path, reason = readable_path(file.path), str(outcome)
        documents.refused.append(Refused(path, reason if path in reason else f"{path}: {reason}"))
    else:
        documents.take(outcome)
        if not outcome.passages and not outcome.refused:
            # It is not refused, so that a sync removes the former passages of an emptied file.
            documents.skip(file.path, "holds no text")


def _read(files: Sequence[ToRead], options: ReadOptions, child: Child) -> Iterator[Loaded | BadInput]:
    for file in files:
        try:
            yield read_file(file, options, child)
        except BadInput as fault:
            yield fault


def read_file(file: ToRead, options: ReadOptions, child: Child) -> Loaded:
    """Return what a file holds, its documents split, with the metadata that every passage is given.

    Args:
        file: to read.
        options: how it is read.
        child: reads files that are no plain text.

    Raises:
        BadInput: it cannot be read, or a line of it is malformed.
    """
    load = load_file if kind_of(file.path).is_plain else child.load
    loaded = load(file.path, file.source, options.fields)
    passages = [*loaded.passages]
    for document in loaded.documents:
        loaded.notes.update(document.notes)
        passages += split_document(document, options.chunk_tokens, options.chunk_overlap)
    if options.metadata:
        passages = [replace(each, metadata={**each.metadata, **options.metadata}) for each in passages]
    return replace(loaded, documents=[], passages=passages)


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder that are read, in order of their paths; none is opened."""
    return _files_below(folder, Documents())


def _files_below(folder: Path, documents: Documents) -> Iterator[Path]:
    """Yield readable files in order of their paths; the others are kept by name, but for the files of workspaces."""

    def refuse(fault: OSError) -> None:
        documents.refuse(Path(fault.filename), f"cannot be read ({fault.strerror})")

    for root, folders, files in os.walk(folder, onerror=refuse):
        here = Path(root)
        is_workspace = _is_workspace(here)
        folders[:] = [
            name
            for name in sorted(folders)
            if not _is_workspace(here / name) and not (is_workspace and name in _WORKSPACE_FOLDERS)
        ]
        for name in folders:
            if name.startswith("."):
                documents.skip(here / name, "is hidden")
            elif (here / name).is_symlink():
                documents.refuse(here / name, "is a link to a folder, which is not followed")
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in sorted(files):
            path, suffix = here / name, Path(name).suffix.lower()
            if is_workspace and _WORKSPACE_FILE.fullmatch(name):
                continue
            if name.startswith("."):
                documents.skip(path, "is hidden")
            elif suffix not in kinds():
                kind = Path(readable_path(path)).suffix.lower() or "no suffix"
                documents.skip(path, f"is of a kind that is not read ({kind})")
            elif reason := _unreadable(path, folder):
                documents.refuse(path, reason)
            else:
                yield path


LINK_TO_NOTHING = "is a link to nothing"
"""The reason for a link whose document is gone, rather than out of reach for a moment."""

_WORKSPACE_FOLDERS = frozenset({"as-of", "build", "index", "shards"})
_WORKSPACE_FILE = re.compile(
    r"(?:manifest|record|tuning)\.json|CURRENT|lock|(?:record|replies|relationships|feedback)\.sqlite(?:-wal|-shm)?"
)


def _is_workspace(folder: Path) -> bool:
    try:
        return any((folder / name).exists() for name in ("record.sqlite", "record.json"))
    except OSError:
        return False


def _unreadable(path: Path, folder: Path) -> str:
    """Return why a file of a folder is not read: a link out of it, or no plain file (a pipe would never end)."""
    try:
        if not path.resolve().is_relative_to(folder.resolve()):
            return "is a link out of the folder"
        if path.is_symlink() and not path.exists():
            return LINK_TO_NOTHING
        return "" if path.is_file() else "is not a plain file"
    except RuntimeError:
        return "is a link that leads to itself"
    except OSError as fault:
        return f"cannot be read ({fault.strerror})"
