"""The folder of a run of ``mara eval``: its settings, one row for each system and question, and the figures of all.

While a run is under way its rows are appended to a journal, each as soon as it is known; at the end they are put in
order. A run that was broken off goes on from its journal, and a finished one takes further systems.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from graph.errors import BadInput
from graph.workspace import write_atomically

FORMAT_VERSION = 1

SETTINGS = "run.json"
RESULTS = "results.jsonl"
TIMINGS = "timings.jsonl"
METRICS = "metrics.json"
REPORT = "report.md"
PLOTS = ("recall.png", "differences.png", "latency.png")

_JOURNAL = "journal.jsonl"
_LOCK = ".lock"
_OWN_FILES = (SETTINGS, RESULTS, TIMINGS, METRICS, REPORT, *PLOTS, _JOURNAL)
_OF_THE_SAMPLE = ("limit", "asked", "unresolved_gold", "without_gold")
_MOST_NAMED = 6
_OTHER_FOLDER = "Name another folder with --out, or start this run afresh with --restart"

Row = dict[str, Any]


class Key(NamedTuple):
    """What a row is about."""

    system: str
    question: str


@dataclass(frozen=True, slots=True)
class Answered:
    """What one system made of one question: the row of results, and that of timings."""

    result: Row
    timing: Row

    @property
    def key(self) -> Key:
        """The system and the question."""
        return Key(self.result["system"], self.result["id"])


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
    """Read a finished run. Raises BadInput where there is none, it is not finished, or a file is damaged."""
    settings = _read_settings(path)
    if settings is None:
        raise BadInput(f"There is no run at {path}", "Name the folder that `mara eval --out` wrote")
    results, timings = (_by_system(settings, path / name) for name in (RESULTS, TIMINGS))
    if any(len(rows) != settings["questions"]["asked"] for rows in results.values()):
        raise BadInput(f"The run at {path} is not finished", "Run the same `mara eval` again: it goes on")
    for system, rows in results.items():
        if [row["id"] for row in rows] != [row["id"] for row in timings[system]]:
            raise BadInput(f"{path / TIMINGS} does not fit {RESULTS} ({system})", "Run it again with --restart")
    return Run(path, settings, results, timings, _read_object(path / METRICS))


@contextmanager
def writing(path: Path, *, restart: bool = False) -> Iterator[RunFolder]:
    """Be the one process that writes a run, for the length of the block.

    Args:
        path: a new or empty folder, or that of an earlier run.
        restart: whether an earlier run is deleted.

    Raises:
        BadInput: the folder is a file, holds something else, or another process writes there.
    """
    from filelock import FileLock, Timeout

    if path.exists() and not path.is_dir():
        raise BadInput(f"{path} is a file", "Name a folder with --out")
    is_run = (path / SETTINGS).exists()
    if not is_run and path.is_dir() and any(entry.name != _LOCK for entry in path.iterdir()):
        raise BadInput(f"{path} holds something else than a run", "Name a new folder with --out")
    path.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path / _LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise BadInput(f"Another process writes the run at {path}", "Wait for it, or name another folder") from None
    try:
        if restart:
            for name in _OWN_FILES:
                (path / name).unlink(missing_ok=True)
        folder = RunFolder(path)
        try:
            yield folder
        finally:
            folder.close()
    finally:
        lock.release()


class RunFolder:
    """A run being written, see `writing`; safe across threads.

    Attributes:
        path: the folder.
        settings: what ``run.json`` holds; empty before `begin` where there was no run.
        answered: every row that is known so far.
    """

    def __init__(self, path: Path) -> None:
        """Open a folder. Raises BadInput where its settings cannot be read."""
        self.path = path
        self.settings = _read_settings(path) or {}
        self.answered: dict[Key, Answered] = {}
        self._lock = threading.Lock()
        self._journal: int | None = None
        self._closed = False

    @property
    def systems(self) -> list[str]:
        """The names of the systems so far, as given."""
        return list(self.settings.get("systems", ()))

    def begin(self, settings: Row) -> None:
        """Take the settings of what is to be asked, and read what is answered already.

        Args:
            settings: to be ``run.json``. Its systems and its questions may be more than those of an earlier run; all
                else must agree.

        Raises:
            BadInput: the settings differ from those that the run began with, or a file is damaged.
        """
        settings = json.loads(_dumps(settings))
        earlier = self.settings
        if earlier:
            differing = list(_differences(earlier, _as_far_as(earlier, settings)))
            if differing:
                raise BadInput(
                    f"The run at {self.path} was made otherwise: {'; '.join(differing[:_MOST_NAMED])}", _OTHER_FOLDER
                )
        self.settings = settings
        self._read_rows()
        if settings != earlier:
            write_atomically(self.path / SETTINGS, json.dumps(settings, ensure_ascii=False, indent=2) + "\n")

    def add(self, answered: Answered) -> None:
        """Keep a row: it is in the journal when this returns. Raises OSError where the disk takes no more.

        A row that comes when the folder is closed is dropped: it is late, and will be asked for again.
        """
        line = f"{_dumps({'result': answered.result, 'timing': answered.timing})}\n".encode()
        with self._lock:
            if self._closed:
                return
            if self._journal is None:
                self._journal = os.open(self.path / _JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            while line:
                line = line[os.write(self._journal, line) :]
            self.answered[answered.key] = answered

    def finish(self, questions: list[str], metrics: Row) -> None:
        """Put all rows in order, with their figures; the journal goes.

        Args:
            questions: ids, as asked. Every system has answered each of them.
            metrics: to be ``metrics.json``.
        """
        ordered = [self.answered[Key(system, question)] for system in self.systems for question in questions]
        write_atomically(self.path / TIMINGS, "".join(f"{_dumps(one.timing)}\n" for one in ordered))
        write_atomically(self.path / RESULTS, "".join(f"{_dumps(one.result)}\n" for one in ordered))
        write_atomically(self.path / METRICS, json.dumps(metrics, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
        self.close()
        (self.path / _JOURNAL).unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the journal."""
        with self._lock:
            self._closed = True
            if self._journal is not None:
                os.close(self._journal)
                self._journal = None

    def _read_rows(self) -> None:
        """Read what a finished run and a broken-off one have left; a row that was not written whole is cut off."""
        results, timings = (_read_rows(self.path / name) for name in (RESULTS, TIMINGS))
        timing_of = {Key(row["system"], row["id"]): row for row in timings}
        finished = [Answered(row, timing_of[key]) for row in results if (key := _key_of(row)) in timing_of]
        for one in (*finished, *_read_journal(self.path / _JOURNAL)):
            self.answered[one.key] = one


def _as_far_as(earlier: Row, settings: Row) -> Row:
    """Return settings as they were for an earlier run with fewer systems, or fewer questions of the same draw."""
    known = {name: settings["systems"][name] for name in earlier["systems"] if name in settings["systems"]}
    questions, before = settings["questions"], earlier["questions"]
    if before["asked"] < questions["asked"]:
        questions = {**questions, **{name: before.get(name) for name in _OF_THE_SAMPLE}}
    return {**settings, "systems": known, "questions": questions}


def _read_journal(path: Path) -> list[Answered]:
    """Return the rows of a journal, which is cut after the last whole one."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        os.truncate(path, len(whole))
    return [Answered(row["result"], row["timing"]) for row in _rows_of(whole, path, ("result", "timing"))]


def _read_settings(path: Path) -> Row | None:
    """Return what ``run.json`` holds; None where there is none. Raises BadInput where it cannot be used."""
    file = path / SETTINGS
    if not file.exists():
        return None
    settings = _read_object(file)
    if settings.get("format_version") != FORMAT_VERSION:
        raise BadInput(f"{file} has format {settings.get('format_version')!r}, not {FORMAT_VERSION}", _OTHER_FOLDER)
    questions = settings.get("questions")
    if not isinstance(settings.get("systems"), dict) or not isinstance(questions, dict) or "asked" not in questions:
        raise BadInput(f"{file} does not tell the systems and questions of a run", _OTHER_FOLDER)
    return settings


def _read_object(file: Path) -> Row:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise BadInput(
            f"{file} cannot be read ({fault})", "Run the same `mara eval` again, or with --restart"
        ) from fault
    if not isinstance(value, dict):
        raise BadInput(f"{file} is damaged", "Start the run afresh with --restart")
    return value


def _by_system(settings: Row, path: Path) -> dict[str, list[Row]]:
    """Return the rows of each system of a run, in its order."""
    rows: dict[str, list[Row]] = {system: [] for system in settings["systems"]}
    for row in _read_rows(path):
        rows.setdefault(row["system"], []).append(row)
    if rows.keys() != settings["systems"].keys():
        raise BadInput(f"{path} holds systems that {SETTINGS} does not name", "Run it again with --restart")
    return rows


def _read_rows(path: Path) -> list[Row]:
    return _rows_of(path.read_bytes(), path, ("id", "system")) if path.exists() else []


def _rows_of(data: bytes, path: Path, keys: tuple[str, str]) -> list[Row]:
    """Return JSON lines that each hold some keys. Raises BadInput with the number of one that does not."""
    rows = []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict) or not all(key in row for key in keys):
            raise BadInput(f"{path}, line {number} is damaged", "Start the run afresh with --restart")
        rows.append(row)
    return rows


def _key_of(row: Row) -> Key:
    return Key(row["system"], row["id"])


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _differences(earlier: object, now: object, name: str = "") -> Iterator[str]:
    """Yield what differs between two values of JSON, each with the path to it."""
    if isinstance(earlier, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys((*earlier, *now)):
            yield from _differences(earlier.get(key), now.get(key), f"{name}.{key}" if name else str(key))
    elif earlier != now:
        yield f"{name} was {earlier}, now {now}"
