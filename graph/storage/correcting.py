"""Making and undoing corrections: one transaction, which changes what the passages concerned state and no others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from graph.corrections.apply import Corrections, Stated
from graph.corrections.kinds import Apart, Correction, Pin, Split, What
from graph.embedding.embeddings import Embedder
from graph.errors import BadInput
from graph.schema import entity_id
from graph.storage.database import Database
from graph.storage.entry import Entry
from graph.storage.record import Record
from graph.storage.record_tables import add_correction, undo_corrections
from graph.storage.writer import Writer
from graph.text import normalise_name


@dataclass(frozen=True, slots=True)
class Restated:
    """One passage that corrections change.

    Attributes:
        entry: it.
        before, after: what it stated, and what it states now.
    """

    entry: Entry
    before: Stated
    after: Stated


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes of making or undoing corrections; nothing is written yet.

    Attributes:
        made: the corrections that are new, with the ids that they get.
        undone: those that are not to stand any more.
        known: those of the wanted ones that stand already.
        restated: the passages concerned.
    """

    made: tuple[Correction, ...]
    undone: tuple[Correction, ...]
    known: tuple[Correction, ...]
    restated: tuple[Restated, ...]

    def commit(self, record: Record, embedder: Embedder) -> None:
        """Write it in one transaction, with vectors for the names and facts that the record lacks.

        Raises:
            EmbeddingMismatch: the record holds another model's vectors.
        """
        if not (self.made or self.undone):
            return

        def change(db: Database) -> None:
            for each in self.made:
                add_correction(db, each.what, each.note, each.made_at)
            undo_corrections(db, [each.id for each in self.undone], _now())

        Writer(record, embedder).restate([(each.entry, each.after) for each in self.restated], change)


def plan_corrections(record: Record, wanted: Sequence[tuple[What, str]]) -> Plan:
    """Return what making some corrections would change; each is given with a note, and comes after those before it.

    One that stands already, word for word, is left as it is.

    Raises:
        BadInput: one contradicts a correction that stands.
    """
    recorded = record.corrections()
    standing = {each.what: each for each in recorded if each.stands}
    first = max((each.id for each in recorded), default=0) + 1
    new = {what: note for what, note in wanted if what not in standing}
    made = tuple(Correction(first + i, what, note, _now()) for i, (what, note) in enumerate(new.items()))
    before = Corrections(recorded)
    after = Corrections((*recorded, *made))
    _check_consistent(after, first)
    known = tuple(dict.fromkeys(standing[what] for what, _ in wanted if what in standing))
    return Plan(made, (), known, _restated(record, before, after, after, made))


def plan_undoing(record: Record, ids: Collection[int]) -> Plan:
    """Return what undoing some corrections would change.

    Raises:
        BadInput: there is no such correction, or it was undone already.
    """
    recorded = {each.id: each for each in record.corrections()}
    unknown = [str(id) for id in sorted(ids) if id not in recorded]
    if unknown:
        raise BadInput(f"There is no correction {', '.join(unknown)}", "`mara correct list` names them")
    gone = tuple(recorded[id] for id in sorted(ids))
    over = [str(each.id) for each in gone if not each.stands]
    if over:
        raise BadInput(f"Correction {', '.join(over)} was undone before", "`mara correct list` shows which stand")
    before = Corrections(recorded.values())
    after = Corrections(each for each in recorded.values() if each not in gone)
    return Plan((), gone, (), _restated(record, before, after, before, gone))


def _restated(
    record: Record, before: Corrections, after: Corrections, known_to: Corrections, changed: Iterable[Correction]
) -> tuple[Restated, ...]:
    """Return the passages that state something else than before; ``known_to`` has the changed corrections."""
    forms = {form for each in changed for form in known_to.forms_of(each.id)}
    pinned = {each.what.passage for each in changed if isinstance(each.what, Pin)}
    # A name that is corrected away is not among those that a passage holds.
    keys = record.passages_with("names", map(entity_id, forms)) | pinned | record.corrected().keys()
    restated = []
    for entry in record.entries(keys):
        said, says = (each.stated(entry.passage, entry.extraction) for each in (before, after))
        if said != says:
            restated.append(Restated(entry, said, says))
    return tuple(restated)


def _check_consistent(corrections: Corrections, first_new: int) -> None:
    """Raise BadInput where names are merged that are kept apart; from ``first_new`` on, none is made yet."""
    for each in corrections.standing:
        what = each.what
        names = what.names if isinstance(what, Apart) else (what.name, what.into) if isinstance(what, Split) else ()
        meant: dict[str, str] = {}
        for name in names:
            other = meant.setdefault(normalise_name(corrections.meaning(name)), name)
            if other != name:
                renaming = (corrections.history(normalise_name(one), None) for one in (name, other))
                ids = {each.id, *(id for steps in renaming for id, _ in steps)}
                standing = ", ".join(str(id) for id in sorted(ids) if id < first_new)
                raise BadInput(
                    f"{other!r} and {name!r} would be merged and kept apart, and correction {standing} stands",
                    "Leave the new one out, or undo those that it contradicts: `mara correct undo ID`",
                )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
