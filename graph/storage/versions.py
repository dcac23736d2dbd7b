"""The versions of passages: since when what the record holds stands, and what stood there before, and until when.

A version stands from its first moment up to, and without, the one at which the next begins; of one passage no two
stand at once. Moments are those of `graph.moments`. The tables are made when a record is first written by somebody who
keeps versions: a record of before has none, and all that it held stands from then on, as far as anybody knows.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from graph.errors import BadInput
from graph.moments import ALWAYS, shown
from graph.schema import MetadataValue
from graph.storage.database import AMONG, Database
from graph.storage.entry import COLUMNS, Entry, from_row, hash_of

TABLES = (
    """CREATE TABLE standing (
        passage_id TEXT PRIMARY KEY REFERENCES passages(id) ON DELETE CASCADE ON UPDATE CASCADE, since TEXT NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE past_passages (
        version INTEGER PRIMARY KEY, since TEXT NOT NULL, until TEXT NOT NULL, embedding_model TEXT NOT NULL,
        id TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL, source TEXT NOT NULL, metadata TEXT NOT NULL,
        fingerprint TEXT NOT NULL, extractor TEXT NOT NULL, entities TEXT NOT NULL, triples TEXT NOT NULL,
        notes TEXT NOT NULL, failure TEXT NOT NULL, windows INTEGER NOT NULL, vector BLOB NOT NULL,
        CHECK (since < until)
    )""",
    "CREATE INDEX past_of_passage ON past_passages (id)",
    """CREATE TABLE past_facts (
        fact_id TEXT NOT NULL, version INTEGER NOT NULL REFERENCES past_passages(version) ON DELETE CASCADE,
        PRIMARY KEY (fact_id, version)
    ) WITHOUT ROWID""",
    "CREATE INDEX past_facts_of_version ON past_facts (version)",
)
TABLE_NAMES = ("past_facts", "past_passages", "standing")
_PAST_COLUMNS = f"since, until, embedding_model, {COLUMNS}"
_KEPT_FROM, _CHANGED = "note:versions_from", "note:versions_id"
_PRESENT = "passages LEFT JOIN standing ON passage_id = id"

Query = Callable[..., Iterator[Any]]
"""Runs a statement with its parameters, and yields the rows."""


@dataclass(frozen=True, slots=True)
class Span:
    """A time for which a passage stood as it was given, without its text.

    Attributes:
        version: the number of its row among the past ones; None for what the record holds now.
        since: its first moment; `graph.moments.ALWAYS` where no earlier state is known.
        until: the moment at which it ended; None while it stands.
        content: hash of what was given of it.
        words: hash of its title and text.
    """

    passage_id: str
    version: int | None
    since: str
    until: str | None
    source: str
    metadata: Mapping[str, MetadataValue]
    content: str
    words: str

    def stands_at(self, moment: str) -> bool:
        """Tell whether it stands at a moment."""
        return self.since <= moment and (self.until is None or moment < self.until)

    @property
    def document(self) -> str:
        """The id of its document, which is its own where it is no part of one."""
        return str(self.metadata.get("document", self.passage_id))

    @property
    def is_part(self) -> bool:
        """Whether a file was split into it: its document's id is then a hash of the text, and its source stays."""
        return "chunk" in self.metadata and "start" in self.metadata


class Versions:
    """The versions that a record keeps."""

    def __init__(self, db: Database, query: Query) -> None:
        """``db`` is the open record; what writes is called within a transaction of it."""
        self._db = db
        self._query = query

    @property
    def are_kept(self) -> bool:
        """Whether the record keeps versions."""
        return self._db.has_table("standing")

    @property
    def kept_from(self) -> str:
        """From when on it is known what stood; `graph.moments.ALWAYS` where the record began empty."""
        return self._noted(_KEPT_FROM)

    @property
    def state(self) -> str:
        """Another text after each removal from the versions kept; commits of passages do not change it."""
        return self._noted(_CHANGED)

    def count(self) -> int:
        """Return how many past versions are kept."""
        return int(next(self._query("SELECT count(*) FROM past_passages"))[0]) if self.are_kept else 0

    def latest(self) -> str:
        """Return the last moment at which something began or ended; `graph.moments.ALWAYS` where nothing did."""
        if not self.are_kept:
            return ALWAYS
        ((latest,),) = self._query(
            "SELECT max(moment) FROM (SELECT max(since) AS moment FROM standing"
            " UNION ALL SELECT max(until) FROM past_passages) AS moments"
        )
        return str(latest or ALWAYS)

    def begin(self, now: str) -> None:
        """Keep versions from now on. Passages already in the record stand from now on, as far as is known."""
        if self.are_kept:
            return
        self._db.define(TABLES)
        has_passages = self._db.execute("SELECT 1 FROM passages LIMIT 1").fetchone()
        self._note(_KEPT_FROM, now if has_passages else ALWAYS)

    def end(self) -> None:
        """Keep no versions any more, and erase those that there are."""
        for table in TABLE_NAMES if self.are_kept else ():
            # Rows are deleted first: what `secure_delete` overwrites are those of a DELETE.
            self._db.execute(f"DELETE FROM {table}")
            self._db.execute(f"DROP TABLE {table}")
        self._note(_KEPT_FROM, ALWAYS)
        self._note_change()

    def check(self, passage_ids: Iterable[str], moment: str, now: str) -> None:
        """Check that nothing of some passages is known to begin or end after a moment.

        Args:
            passage_ids: these passages; the record need not hold them.
            moment: when they are to begin or end.
            now: when what a record holds that kept no versions so far begins.

        Raises:
            BadInput: there is; the last one is named.
        """
        if not self.are_kept:
            known = dict(self._query("SELECT id, ? FROM passages", now))
        else:
            known = dict(self._query(f"SELECT id, {self._since()} FROM {_PRESENT}"))
            for key, until in self._query("SELECT id, max(until) FROM past_passages GROUP BY id"):
                known[key] = max(until, known.get(key, ALWAYS))
        later = sorted((known[key], key) for key in passage_ids if known.get(key, ALWAYS) > moment)
        if later:
            latest, first = later[-1]
            raise BadInput(
                f"{len(later)} passages stand, or ended, later than {shown(moment)}: {first!r} on {shown(latest)}",
                "Index the states of documents in their order, the oldest first, or give a later date",
            )

    def replace(self, wanted: Mapping[str, str], removed: Iterable[str], moment: str) -> dict[str, str]:
        """Move to the past what is about to be replaced by other content, or removed.

        Args:
            wanted: {id: hash of what is given} of the passages that are about to be written.
            removed: ids of passages that are about to be removed.
            moment: from which on the new content stands.

        Returns:
            {id of a wanted passage: the moment from which on it stands}.
        """
        since = dict.fromkeys(wanted, moment)
        present = f"SELECT {self._since()}, title, text, source, metadata FROM {_PRESENT} WHERE id = ?"
        for key in dict.fromkeys((*wanted, *removed)):
            row = self._db.execute(present, (key,)).fetchone()
            if row is None:
                continue
            began, *content = row
            if hash_of(*content) == wanted.get(key):
                since[key] = began
            elif began < moment:
                self._move(key, began, moment)
        return since

    def stand(self, since: Mapping[str, str]) -> None:
        """Note since when passages stand that were just written."""
        self._db.put("standing", ["passage_id"], ["since"], since.items())

    def digest(self, moment: str) -> str:
        """Return a hash of what stood at a moment: of its ids, content and extraction. Empty where nothing stood."""
        digest, has_passages = blake2b(digest_size=12), False
        rows = self._query(
            f"SELECT id, fingerprint FROM {_PRESENT} WHERE {self._since()} <= ?"
            " UNION ALL SELECT id, fingerprint FROM past_passages WHERE since <= ? AND until > ? ORDER BY 1",
            *(moment,) * 3,
        )
        for row in rows:
            digest.update(json.dumps(row).encode())
            has_passages = True
        return digest.hexdigest() if has_passages else ""

    def not_yet(self, moment: str) -> list[str]:
        """Return the ids of present passages that did not stand at a moment as they do now."""
        return [key for (key,) in self._query(f"SELECT id FROM {_PRESENT} WHERE {self._since()} > ?", moment)]

    def times(self, passage_ids: Collection[str]) -> dict[str, tuple[str, str]]:
        """Return {passage: the first moment at which it is known to have stood, when it last changed or ended}.

        Either is `graph.moments.ALWAYS` where it is not known. Passages of which nothing is known are left out.
        """
        if not self.are_kept:
            return {}
        times: dict[str, tuple[str, str]] = {}
        wanted = [*passage_ids]
        named = f"id {AMONG}"
        for key, first, last in self._query(
            f"SELECT id, {self._since()} AS since, {self._since()} FROM {_PRESENT} WHERE {named}"
            f" UNION ALL SELECT id, min(since), max(until) FROM past_passages WHERE {named} GROUP BY id",
            wanted,
            wanted,
        ):
            known = times.get(key, (first, last))
            times[key] = (min(first, known[0]), max(last, known[1]))
        return times

    def still_stands(self, moment: str) -> bool:
        """Tell whether what stood at a moment is what stands now."""
        ended = self._query("SELECT 1 FROM past_passages WHERE since <= ? AND until > ? LIMIT 1", moment, moment)
        return not list(ended) and not self.not_yet(moment)

    def past_entries(self, moment: str) -> Iterator[tuple[Entry, str]]:
        """Yield the entries of the past that stood at a moment, each with the model that made its vector."""
        columns = f"SELECT embedding_model, {COLUMNS} FROM past_passages"
        for model, *row in self._query(f"{columns} WHERE since <= ? AND until > ? ORDER BY id", moment, moment):
            yield from_row(row), str(model)

    def spans(self, passage_ids: Collection[str] | None = None) -> list[Span]:
        """Return the times for which passages stood, or some passages did, the earliest first."""
        return self._spans("", ()) if passage_ids is None else self._spans(f"WHERE id {AMONG}", ([*passage_ids],))

    def spans_of_fact(self, fact_id: str) -> list[Span]:
        """Return the times for which passages stood that hold a fact, the earliest first."""
        present = "WHERE id IN (SELECT passage_id FROM passage_facts WHERE fact_id = ?)"
        past = "WHERE version IN (SELECT version FROM past_facts WHERE fact_id = ?)"
        return self._spans(present, (fact_id,), past)

    def entry(self, span: Span) -> Entry:
        """Return what stood for a time, whole."""
        if span.version is None:
            rows = self._query(f"SELECT {COLUMNS} FROM passages WHERE id = ?", span.passage_id)
        else:
            rows = self._query(f"SELECT {COLUMNS} FROM past_passages WHERE version = ?", str(span.version))
        return from_row(next(rows))

    def fingerprint(self, span: Span) -> str:
        """Return the fingerprint that a past version was kept with."""
        rows = self._query("SELECT fingerprint FROM past_passages WHERE version = ?", str(span.version))
        return str(next(rows)[0])

    def facts(self, span: Span) -> set[str]:
        """Return the ids of the facts that are noted of a past version."""
        rows = self._query("SELECT fact_id FROM past_facts WHERE version = ?", str(span.version))
        return {str(key) for (key,) in rows}

    def restate(self, facts_of: Callable[[Entry], Iterable[str]]) -> None:
        """Note again which facts each past version holds; ``facts_of`` gives their ids, as corrections leave them."""
        for span in [span for span in self.spans() if span.version is not None]:
            self._db.execute("DELETE FROM past_facts WHERE version = ?", (span.version,))
            noted = ((key, span.version) for key in facts_of(self.entry(span)))
            self._db.executemany("INSERT INTO past_facts VALUES (?, ?) ON CONFLICT DO NOTHING", noted)

    def erase(self, spans: Iterable[Span]) -> int:
        """Erase past versions; return how many those were."""
        doomed = [(span.version,) for span in spans if span.version is not None]
        if not doomed:
            return 0
        self._db.executemany("DELETE FROM past_facts WHERE version = ?", doomed)
        self._db.executemany("DELETE FROM past_passages WHERE version = ?", doomed)
        self._note_change()
        return len(doomed)

    def _spans(self, where: str, parameters: tuple[object, ...], where_past: str | None = None) -> list[Span]:
        columns = "title, text, source, metadata"
        if not self.are_kept:
            rows = list(self._query(f"SELECT id, NULL, '', NULL, {columns} FROM passages {where}", *parameters))
        else:
            past = where if where_past is None else where_past
            rows = list(
                self._query(
                    f"SELECT id, NULL, {self._since()}, NULL, {columns} FROM {_PRESENT} {where}"
                    f" UNION ALL SELECT id, version, since, until, {columns} FROM past_passages {past} ORDER BY 3, 1",
                    *parameters * 2,
                )
            )
        return [_span(*row) for row in rows]

    def _move(self, key: str, since: str, until: str) -> None:
        """Copy a present passage, which is about to go, to the past."""
        ((version,),) = self._db.execute(
            f"INSERT INTO past_passages ({_PAST_COLUMNS})"
            f" SELECT ?, ?, (SELECT value FROM meta WHERE key = 'embedding_model'), {COLUMNS}"
            " FROM passages WHERE id = ? RETURNING version",
            (since, until, key),
        ).fetchall()
        facts = "SELECT fact_id, ? FROM passage_facts WHERE passage_id = ?"
        self._db.execute(f"INSERT INTO past_facts {facts}", (version, key))

    def _since(self) -> str:
        """Return the SQL of the moment since which a present passage stands.

        Versions of mara that keep no such moment write passages without one.
        """
        return f"coalesce(since, (SELECT value FROM meta WHERE key = '{_KEPT_FROM}'), '')" if self.are_kept else "''"

    def _noted(self, key: str) -> str:
        return next((str(value) for (value,) in self._query("SELECT value FROM meta WHERE key = ?", key)), "")

    def _note(self, key: str, text: str) -> None:
        self._db.put("meta", ["key"], ["value"], [(key, text)])

    def _note_change(self) -> None:
        self._note(_CHANGED, uuid.uuid4().hex)


def _span(key: str, version: int | None, since: str, until: str | None, *content: str) -> Span:
    title, text, source, metadata = content
    words = hash_of(title, text, "", "")
    return Span(key, version, since, until, source, json.loads(metadata), hash_of(*content), words)


def of_documents(spans: Iterable[Span], ids: Collection[str], sources: Collection[str] = ()) -> list[Span]:
    """Return the spans of those passages, documents and sources that are named.

    A document that a file was split into has another id with each text: who names one means all that came from there.
    """
    every, wanted = list(spans), set(ids)
    split = {span.source for span in every if span.is_part and span.document in wanted}
    return [
        span
        for span in every
        if span.source in sources
        or wanted & {span.passage_id, span.document}
        or (span.is_part and span.source in split)
    ]
