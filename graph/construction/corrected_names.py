"""What corrections mean for finding names in text: under which forms an entity is written, and in which passages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import cached_property

from graph.corrections.apply import Corrections
from graph.schema import Passage, entity_id
from graph.storage.record import Record
from graph.text import Mention, normalise_name, tokens


class CorrectedNames:
    """The names that corrections make others of; all by their normal forms."""

    def __init__(self, corrections: Corrections) -> None:
        self.corrections = corrections
        self._transitions = {form: corrections.transitions(form) for form in corrections.forms()}
        self._written_as: dict[str, set[str]] = defaultdict(set)
        self._forms: dict[str, list[str]] = defaultdict(list)
        for form in sorted(self._transitions):
            self._forms[" ".join(tokens(form))].append(form)
            for _, rename in self._transitions[form]:
                self._written_as[normalise_name(rename.into)].add(form)

    @staticmethod
    def of(record: Record) -> CorrectedNames:
        """Return those of a record's corrections."""
        return CorrectedNames(Corrections(record.corrections()))

    def aliases(self, name: str) -> list[str]:
        """Return the other forms that mean an entity's name in some passage."""
        return sorted(self._written_as.get(name, set()) - {name})

    def spelled(self, name: str) -> list[str]:
        """Return all forms under which an entity's name may be written."""
        return [name, *self.aliases(name)]

    def admits(self, words: Sequence[str], mention: Mention, name: str, passage: Passage) -> bool:
        """Tell whether a passage means an entity's name by what it spells; ``words`` are its tokens."""
        if not self._forms:
            return True
        forms = self._forms.get(" ".join(words[mention.start : mention.end]), ())
        if not any(form == name or form in self._written_as.get(name, ()) for form in forms):
            return True
        return any(normalise_name(self.corrections.meaning(form, passage)) == name for form in forms)

    @property
    def token_forms(self) -> Collection[str]:
        """The forms, tokens joined by spaces, that do not mean the same name in every passage, or another name."""
        return self._forms.keys()

    def differing_names(self, before: CorrectedNames) -> set[str]:
        """Return the entities' names that are written under other forms than before."""
        names = self._written_as.keys() | before._written_as.keys()
        return {name for name in names if self.aliases(name) != before.aliases(name)}

    def differing_spellings(self, before: CorrectedNames) -> set[str]:
        """Return the spellings, tokens joined by spaces, that may mean another name than before in some passage."""
        forms = self._transitions.keys() | before._transitions.keys()
        return {
            " ".join(tokens(form)) for form in forms if self._transitions.get(form) != before._transitions.get(form)
        }

    @cached_property
    def apart(self) -> frozenset[tuple[str, str]]:
        """(Smaller, larger entity id) of each two names that no edge of synonymy may join."""
        pairs = (sorted(map(entity_id, pair)) for pair in self.corrections.kept_apart())
        return frozenset((a, b) for a, b in pairs)
