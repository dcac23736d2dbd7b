"""Questions that a workspace can answer, made from its facts and titles: plain English, the same each time, no model.

Facts are of whatever quality their extractor has, so a question is made only of one whose words are sure to read well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from graph.construction.knowledge_graph import GraphFact, KnowledgeGraph
from graph.retrieve.selection import Selection
from graph.schema import RelationType
from graph.text import is_date, normalise_name

SUGGESTED = 4

_LOOKED_AT = 20_000
"""Facts that are looked at, of however many: they lie in the order of their ids, which is none of the corpus."""

_JOINING = (RelationType.ATTRIBUTION, RelationType.HIERARCHICAL)
"""The types of facts whose two names are asked about together: a place or a day joins too little."""

_LINKS = 20
_APART = 100
_LONGEST_NAME = 50

_MADE = (
    "built|composed|created|designed|developed|directed|discovered|edited|founded|invented|painted|produced|published"
    "|written"
)
"""The participles that say who made something."""

_PAST = {"written": "wrote"}
_BASE = {"died": "die", "began": "begin", "ended": "end", "opened": "open"}
_WAS = r"(?:is |was )?"
_BY = re.compile(rf"{_WAS}({_MADE}) by")
_AT_A_TIME = re.compile(
    rf"{_WAS}(born|built|completed|composed|created|discovered|established|founded|invented|launched|published|rebuilt"
    r"|released|signed|written)(?: in| on)?"
)
_DONE_AT_A_TIME = re.compile(rf"({'|'.join(_BASE)})(?: in| on)?")
_AT_A_PLACE = re.compile(rf"{_WAS}(born|buried|headquartered|located) (?:in|at|near)")
_DIED_AT = re.compile(r"died (?:in|at)")
_TO = re.compile(r"(flow|belong|drain|lead|empty)(?:s|ies) (into|to)")
_OF = re.compile(rf"{_WAS}(?:the )?(capital|county seat|largest city) of")

_NAME = re.compile(r"[^\W\d_][\w'’.&-]*(?: [\w'’.&-]+)*")


@dataclass(frozen=True, slots=True)
class _Asked:
    """A fact as a question, of which the fact's object is the answer.

    Attributes:
        words: with ``{}`` for the subject.
        stated: what follows the subject where a text says the same.
    """

    words: str
    stated: str

    def is_said(self, name: str, text: str) -> bool:
        """Tell whether a text says so in plain words: a fact may have the wrong subject."""
        subject = rf"(?:\b{re.escape(name)}|(?:^|[.;] )(?:it|he|she))(?: \([^()]*\)|,[^,.]*,)?"
        return re.search(rf"{subject},? {self.stated}\b", text, re.IGNORECASE) is not None


def _asked(fact: GraphFact) -> _Asked | None:
    """Return the question that a fact answers; None where none reads well."""
    predicate, answer = normalise_name(fact.fact.predicate), fact.fact.object
    if made := _BY.fullmatch(predicate):
        verb = made[1]
        return _Asked(f"Who {_PAST.get(verb, verb)} {{}}?", rf"(?:{_done(f'{verb} by')}|{verb} by)")
    if is_date(answer):
        if then := _AT_A_TIME.fullmatch(predicate):
            return _Asked(f"When was {{}} {then[1]}?", _done(then[1]))
        if then := _DONE_AT_A_TIME.fullmatch(predicate):
            return _Asked(f"When did {{}} {_BASE[then[1]]}?", then[1])
    elif answer[:1].isupper():
        if there := _AT_A_PLACE.fullmatch(predicate):
            was = "is" if there[1] in ("headquartered", "located") else "was"
            return _Asked(f"Where {was} {{}} {there[1]}?", _done(f"{there[1]} (?:in|at|near)"))
        if there := _DIED_AT.fullmatch(predicate):
            return _Asked("Where did {} die?", predicate)
        if to := _TO.fullmatch(predicate):
            return _Asked(f"What does {{}} {to[1]} {to[2]}?", predicate)
        if of := _OF.fullmatch(predicate):
            return _Asked(f"What is {{}} the {of[1]} of?", _done(f"{of[1]} of"))
    return None


def _done(words: str) -> str:
    return rf"(?:is|was) (?:[^.;]{{0,{_APART}}}? )?{words}"


@dataclass(frozen=True, slots=True)
class _Suggestions:
    graph: KnowledgeGraph
    selection: Selection | None

    def facts(self) -> Iterator[GraphFact]:
        rows = range(len(self.graph.facts)) if self.selection is None else self.selection.facts.rows.tolist()
        return (self.graph.facts.rows[row] for row in islice(rows, _LOOKED_AT))

    def seen(self, passages: Iterable[int]) -> list[int]:
        """Return those of some passages that the visitor sees."""
        return [each for each in passages if self.selection is None or self.selection.passages[each]]

    def named(self, fact: GraphFact, asked: _Asked | None = None) -> str:
        """Return the subject as its own passage, one of the fact's, writes it, where that says what is asked, too."""
        for place in self.seen(fact.passages):
            name = self.title(place, fact.subject)
            bare = name.removeprefix("the ")
            if name and (asked is None or asked.is_said(bare, self.graph.passages[place].text)):
                return name
        return ""

    def title(self, place: int, entity: int) -> str:
        """Return an entity's name, with the article that it has, where it is the title of a passage."""
        passage = self.graph.passages[place]
        name = re.sub(r" \([^()]*\)$", "", passage.title)
        if normalise_name(name) != self.graph.entity_names[entity] or len(name) > _LONGEST_NAME:
            return ""
        if not _NAME.fullmatch(name) or not name[0].isupper():
            return ""
        mention = re.search(rf"(\bthe )?{re.escape(name)}\b(?! (?:are|were|have)\b)", passage.text, re.IGNORECASE)
        return f"{'the ' if mention[1] else ''}{name}" if mention else ""

    def titled(self, entity: int) -> str:
        """Return an entity's name as a passage of that title writes it; empty where the visitor sees none."""
        places = self.seen(self.graph.passages_with(entity).tolist()[:_LINKS])
        return next(filter(None, (self.title(place, entity) for place in places)), "")


def suggested(graph: KnowledgeGraph, selection: Selection | None) -> list[str]:
    """Return up to `SUGGESTED` questions, first one that joins two names; fewer where fewer read well.

    Args:
        graph: of the workspace.
        selection: the passages that the visitor sees; None for all. Whatever a question says stands in one of them.
    """
    suggestions = _Suggestions(graph, selection)
    joined: list[str] = []
    single: dict[str, str] = {}
    named: set[str] = set()
    for fact in suggestions.facts():
        asked = _asked(fact)
        joins = not joined and asked is None and fact.fact.relation in _JOINING
        name = suggestions.named(fact, asked) if asked or joins else ""
        if asked and name and name not in named:
            named.add(name)
            single.setdefault(asked.words, asked.words.format(name))
        other = suggestions.titled(fact.object) if name and joins else ""
        if other and other != name:
            joined.append(f"How are {name} and {other} connected?")
        if joined and len(single) >= SUGGESTED:
            break
    return [*joined, *single.values()][:SUGGESTED]
