"""Reading documents: files and folders become passages; a file that cannot be read is refused by name."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from graph.errors import BadInput
from graph.schema import MetadataValue, Passage
from graph.sources.child import Child
from graph.sources.loaders import kinds, load_file, readable_hint
from graph.sources.loaders.document import Loaded, Refused
from graph.sources.loaders.fields import FieldMap, check_metadata, first_columns
from graph.sources.loaders.files import readable_path, unopened
from graph.sources.splitting import CHUNK_OVERLAP, CHUNK_TOKENS, split_document

_LEAST_CHUNK = 16


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

    passages: dict[str, Passage] = field(default_factory=dict)
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
            known = self.passages.setdefault(passage.id, passage)
            if known is passage:
                continue
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
    is read.

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
                _take(source, _read_file(source, readable_path(Path(source.name)), options, child), documents)
    if not any(_has_rows(Path(refused.source)) for refused in documents.refused):
        _check_fields(options.fields, documents.columns)
    return documents


def _has_rows(path: Path) -> bool:
    kind = kinds().get(path.suffix.lower())
    return kind is not None and kind.has_rows


def _check_fields(fields: FieldMap, columns: Mapping[str, Collection[str]]) -> None:
    """Raise BadInput where no table has a column that is mapped."""
    known = dict.fromkeys(name for names in columns.values() for name in names)
    missing = next((name for name in fields.columns() if name not in known), None)
    if missing is not None and columns:
        raise BadInput(f"No table or corpus has a column {missing!r}", f"There are: {first_columns(known)}")


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
    for path in [*_files_below(folder, documents)]:
        try:
            _take(path, _read_file(path, readable_path(path.relative_to(folder)), options, child), documents)
        except BadInput as fault:
            name, reason = readable_path(path), str(fault)
            documents.refused.append(Refused(name, reason if name in reason else f"{name}: {reason}"))


def _take(path: Path, loaded: Loaded, documents: Documents) -> None:
    documents.take(loaded)
    if not loaded.passages and not loaded.refused:
        # It is not refused, so that a sync removes the former passages of an emptied file.
        documents.skip(path, "holds no text")


def _read_file(path: Path, source: str, options: ReadOptions, child: Child) -> Loaded:
    """Return what a file holds, its documents split, with the metadata that every passage is given."""
    load = load_file if kinds()[path.suffix.lower()].is_plain else child.load
    loaded = load(path, source, options.fields)
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
