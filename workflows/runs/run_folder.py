"""The folder of a long run: one writer, settings to agree with, and a row for each question as soon as it is known.

While a run is under way its rows are in a journal; at the end they are written in order. An interrupted run resumes
from its journal, and a finished one takes further questions.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph.errors import BadInput
from graph.storage.workspace import Workspace, write_atomically
from graph.text import is_unicode
from workflows.settings.enums import Format

FORMAT_VERSION = 1

TIMINGS = "timings.jsonl"
JOURNAL = "journal.jsonl"

LOCK = ".lock"
"""The file by which one process at a time writes into a folder."""

OTHER_FOLDER = "Name another folder with --out, or start this run again with --restart"
"""The hint if a run cannot be resumed."""

_MOST_NAMED = 6
_OF_THE_SAMPLE = ("limit", "asked", "unresolved_gold", "without_gold")

Row = dict[str, Any]
Key = tuple[str, ...]
"""The fields of a row that tell it from the others of its run."""


@dataclass(frozen=True, slots=True)
class RunKind:
    """The files of a kind of run in its folder.

    Attributes:
        settings: the file of its settings.
        row: what the journal calls a row; its timing stands beside it.
        key: the fields that tell a row from the others.
        files: what it writes beside its settings, timings and journal.
        finished: reads the rows that a finished run wrote into a folder; none if there are none.
    """

    settings: str
    row: str
    key: tuple[str, ...]
    files: tuple[str, ...]
    finished: Callable[[Path], list[Row]]


@dataclass(frozen=True, slots=True)
class Answered:
    """The outcome of one question: its row, and the time it took."""

    row: Row
    timing: Row


class RunFolder:
    """A run being written, see `writing`; safe across threads.

    Attributes:
        path: the folder.
        settings: what its file of settings holds; empty before `begin` if there was no run.
        answered: every answer that is known so far.
    """

    def __init__(self, path: Path, kind: RunKind) -> None:
        """Open a folder. Raises BadInput if its settings cannot be read."""
        self.path = path
        self.settings = read_settings(path, kind)
        self.answered: dict[Key, Answered] = {}
        self._kind = kind
        self._lock = threading.Lock()
        self._journal: int | None = None
        self._closed = False

    def begin(self, settings: Row) -> None:
        """Take the settings of what is to be asked, and read what is answered already.

        Args:
            settings: to be written. Its systems and its questions may be more than those of an earlier run; all else
                must agree.

        Raises:
            BadInput: the settings differ from those that the run began with, or a file is damaged.
        """
        settings = json.loads(dumps(settings))
        earlier = self.settings
        if earlier:
            changed = differences(earlier, _as_far_as(earlier, settings))
            named = [f"{name} was {before}, now {after}" for name, before, after in changed]
            if named:
                raise BadInput(
                    f"The run at {self.path} was made otherwise: {'; '.join(named[:_MOST_NAMED])}", OTHER_FOLDER
                )
        self.settings = settings
        self._read_rows()
        if settings != earlier:
            write_atomically(self.path / self._kind.settings, dumps(settings, indent=2) + "\n")

    def add(self, answered: Answered) -> None:
        """Keep an answer: it is in the journal when this returns, whatever becomes of the process.

        One that comes when the folder is closed is dropped: it is late, and will be asked for again. Raises OSError if
        the disk takes no more; what it took of the row is removed.
        """
        line = f"{dumps({self._kind.row: answered.row, 'timing': answered.timing})}\n".encode()
        with self._lock:
            if self._closed:
                return
            if self._journal is None:
                self._journal = os.open(self.path / JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            before = os.fstat(self._journal).st_size
            try:
                while line:
                    line = line[os.write(self._journal, line) :]
            except OSError:
                os.ftruncate(self._journal, before)
                raise
        self.answered[self._key(answered.row)] = answered

    def finish(self, keys: Sequence[Key], files: Mapping[str, str]) -> None:
        """Write the timings in order, and other files; the journal goes.

        Args:
            keys: all that was asked, in order; each is answered.
            files: text by name.
        """
        write_atomically(self.path / TIMINGS, json_lines(self.answered[key].timing for key in keys))
        for name, text in files.items():
            write_atomically(self.path / name, text)
        self.close()
        (self.path / JOURNAL).unlink(missing_ok=True)

    def close(self) -> None:
        """Take no more rows."""
        with self._lock:
            self._closed = True
            if self._journal is not None:
                os.close(self._journal)
                self._journal = None

    def _key(self, row: Row) -> Key:
        return tuple(row[name] for name in self._kind.key)

    def _read_rows(self) -> None:
        """Read what a finished run and an interrupted one have left."""
        timings = {self._key(row): row for row in read_rows(self.path / TIMINGS, *self._kind.key)}
        finished = [
            Answered(row, timings[key]) for row in self._kind.finished(self.path) if (key := self._key(row)) in timings
        ]
        for one in (*finished, *(Answered(row[self._kind.row], row["timing"]) for row in self._read_journal())):
            self.answered[self._key(one.row)] = one

    def _read_journal(self) -> list[Row]:
        """Return the rows of the journal; one at its end that was not written whole is cut off."""
        journal = self.path / JOURNAL
        if not journal.exists():
            return []
        data = journal.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            os.truncate(journal, len(whole))
        return _rows_of(whole, journal, (self._kind.row, "timing"))


@contextmanager
def writing(path: Path, kind: RunKind, *, restart: bool = False) -> Iterator[RunFolder]:
    """Be the one process that writes a run, for the length of the block; the folder is made if there is none.

    Args:
        path: a new or empty folder, or that of an earlier run.
        kind: of the run.
        restart: whether an earlier run is deleted.

    Raises:
        BadInput: the folder is a file, holds something else, or another process writes there.
    """
    from filelock import FileLock, Timeout

    if path.exists() and not path.is_dir():
        raise BadInput(f"{path} is a file", "Name a folder with --out")
    is_run = (path / kind.settings).exists()
    if not is_run and path.is_dir() and any(entry.name != LOCK for entry in path.iterdir()):
        raise BadInput(f"{path} holds something else than a run", "Name a new folder with --out")
    path.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise BadInput(f"Another process writes the run at {path}", "Wait for it, or name another folder") from None
    try:
        if restart:
            for name in (kind.settings, TIMINGS, JOURNAL, *kind.files):
                (path / name).unlink(missing_ok=True)
        with closing(RunFolder(path, kind)) as folder:
            yield folder
    finally:
        lock.release()


def read_settings(path: Path, kind: RunKind) -> Row:
    """Return the settings of a run; empty if there is none. Raises BadInput if they are damaged or another format."""
    file = path / kind.settings
    if not file.exists():
        return {}
    settings = read_object(file)
    if settings.get("format_version") != FORMAT_VERSION:
        raise BadInput(f"{file} has format {settings.get('format_version')!r}, not {FORMAT_VERSION}", OTHER_FOLDER)
    return settings


def read_object(file: Path) -> Row:
    """Return the object that a JSON file holds. Raises BadInput where it cannot be read or holds none."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise BadInput(f"{file} cannot be read ({fault})", "Run the same command again, or with --restart") from fault
    if not isinstance(value, dict):
        raise BadInput(f"{file} is damaged", "Start the run again with --restart")
    return value


def read_rows(path: Path, *keys: str) -> list[Row]:
    """Return the rows of a file of JSON lines, none if there is no file. Raises BadInput for one without the keys."""
    return _rows_of(path.read_bytes(), path, keys) if path.exists() else []


def _rows_of(data: bytes, path: Path, keys: Sequence[str]) -> list[Row]:
    """Return JSON lines that each hold some keys. Raises BadInput with the number of one that does not."""
    rows = []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict) or not all(key in row for key in keys):
            raise BadInput(f"{path}, line {number} is damaged", "Start the run again with --restart")
        rows.append(row)
    return rows


def json_lines(rows: Iterable[Row]) -> str:
    """Return rows as JSON, one a line."""
    return "".join(f"{dumps(row)}\n" for row in rows)


def dumps(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON; if a model broke a surrogate pair, its halves are escaped, so that it can be stored.

    Raises ValueError for what is no number.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    return text if is_unicode(text) else json.dumps(value, allow_nan=False, indent=indent)


def rounded(value: Any, decimals: int = 9) -> Any:
    """Return plain values with their fractions rounded, so that rows do not differ by how a machine adds up."""
    if isinstance(value, float):
        return round(float(value), decimals) + 0.0
    if isinstance(value, Mapping):
        return {key: rounded(part, decimals) for key, part in value.items()}
    return [rounded(part, decimals) for part in value] if isinstance(value, list | tuple) else value


def counted(names: Iterable[str | None]) -> dict[str, int]:
    """Return how often each name occurs, by name; empty ones are left out."""
    return dict(sorted(Counter(name for name in names if name).items()))


def _as_far_as(earlier: Row, settings: Row) -> Row:
    """Return settings as they were for an earlier run with fewer systems, or fewer questions of the same draw."""
    questions, before = settings["questions"], earlier["questions"]
    if before["asked"] < questions["asked"]:
        settings = {**settings, "questions": {**questions, **{name: before.get(name) for name in _OF_THE_SAMPLE}}}
    if "systems" in settings:
        known = {name: system for name, system in settings["systems"].items() if name in earlier["systems"]}
        settings = {**settings, "systems": known}
    return settings


def differences(earlier: object, now: object, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield what differs between two values of JSON: the path to it, and both values; None where one has none."""
    one, other = ({} if value is None else value for value in (earlier, now))
    if earlier != now and isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys((*one, *other)):
            yield from differences(one.get(key), other.get(key), f"{name}.{key}" if name else str(key))
    elif earlier != now:
        yield name, earlier, now


def finished_rows(folder: Path) -> list[Row]:
    """Return the rows of the first file of answers in a batch's folder, whatever its format; none if there is none."""
    form = next((form for form in Format if (folder / form.file).exists()), None)
    if form is Format.JSON:
        return _read_list(folder / form.file)
    return read_rows(folder / form.file, "id", "failed") if form else []


def text_of(form: Format, rows: Sequence[Row]) -> str:
    """Return the text of the file of answers in a format."""
    return dumps(rows, indent=2) + "\n" if form is Format.JSON else json_lines(rows)


BATCH = RunKind(
    settings="batch.json",
    row="row",
    key=("id",),
    files=tuple(form.file for form in Format),
    finished=finished_rows,
)


def _read_list(file: Path) -> list[Row]:
    rows = None
    with suppress(ValueError):
        rows = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(rows, list) or not all(isinstance(row, dict) and {"id", "failed"} <= row.keys() for row in rows):
        raise BadInput(f"{file} is damaged", "Start the run again with --restart")
    return rows


RESULTS = "results.jsonl"
METRICS = "metrics.json"
REPORT = "report.md"

_KEY = ("system", "id")

EVALUATION = RunKind(
    settings="run.json",
    row="result",
    key=_KEY,
    files=(RESULTS, METRICS, REPORT),
    finished=lambda folder: read_rows(folder / RESULTS, *_KEY),
)


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        folder: where it is.
        settings: what ``run.json`` holds.
        results: the rows of each system, systems as given, questions as asked.
        timings: likewise.
        metrics: what ``metrics.json`` holds.
    """

    folder: Path
    settings: Row
    results: dict[str, list[Row]]
    timings: dict[str, list[Row]]
    metrics: Row


def load_run(path: Path) -> Run:
    """Read a finished run. Raises BadInput if there is none, it is not finished, or a file is damaged."""
    settings = read_settings(path, EVALUATION)
    if not settings:
        raise BadInput(f"There is no run at {path}", "Name the folder that `mara eval --out` wrote")
    results, timings = (_by_system(settings, path / name) for name in (RESULTS, TIMINGS))
    if any(len(rows) != settings["questions"]["asked"] for rows in results.values()):
        raise BadInput(f"The run at {path} is not finished", "Run the same `mara eval` again: it resumes")
    return Run(path, settings, results, timings, read_object(path / METRICS))


def _by_system(settings: Row, path: Path) -> dict[str, list[Row]]:
    """Return the rows of each system of a run, in its order."""
    rows: dict[str, list[Row]] = {system: [] for system in settings["systems"]}
    for row in read_rows(path, *_KEY):
        rows[row["system"]].append(row)
    return rows


def check_output(path: Path, *suffixes: str) -> None:
    """Refuse a file that is no place for what a command writes, so that nothing of mara's own is overwritten.

    Args:
        path: the file to write.
        suffixes: what its name ends in, one of them, in any case.

    Raises:
        BadInput: the name ends otherwise, the file cannot be written, or lies in a workspace or a run.
    """
    if path.suffix.lower() not in suffixes:
        raise BadInput(f"{path} does not end in {' or '.join(suffixes)}", f"End the name in {', '.join(suffixes)}")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise BadInput(f"{path} cannot be written", "Name a file in a folder that is there and may be written")
    check_outside(path.resolve())


def write_output(path: Path, text: str) -> None:
    """Write what a command makes, whole or not at all. Raises BadInput where it cannot be written."""
    try:
        write_atomically(path.resolve(), text)
    except OSError as fault:
        raise BadInput(f"{path} cannot be written ({fault.strerror})", "Name another file") from fault


def check_outside(path: Path) -> None:
    """Raise BadInput if a file would be written into a workspace, at any depth, or beside the settings of a run."""
    folder = Path(os.path.realpath(path.parent))
    if any(Workspace(each).record_path.exists() for each in (folder, *folder.parents)):
        raise BadInput(f"{path} lies in a workspace", "Name a file outside: mara manages what is in there")
    if any((folder / kind.settings).exists() for kind in (EVALUATION, BATCH)):
        raise BadInput(f"{path} lies in the folder of a run", "Name a file outside: mara manages what is in there")
