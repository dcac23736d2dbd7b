"""The answerer: a cited answer from numbered passages, or an explicit refusal; and one without passages to compare."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, Self

from agents.agent import Agent, Run
from agents.answers.citations import (
    locate_quote,
    parse_citations,
    strip_citations,
    without_half_citation,
    without_marks,
    without_unknown,
)
from agents.answers.claims import citing_sentences
from agents.answers.unlinked import addresses_of
from agents.chat.agent import ChatAgent
from agents.chat.material import Room
from agents.offline.alignment import Embed
from agents.offline.evidence import Evidence, find_evidence
from agents.offline.questions import split_question
from agents.offline.quoting import number_on, quote_evidence
from agents.offline.tables import OtherRows
from agents.roles import REFUSAL, Answer, Citation, Feedback, NumberedPassage, refusal
from graph.embedding.bert import PACKAGED_MODEL
from graph.errors import MalformedReply
from graph.schema import Passage

NOT_KNOWN = "NOT KNOWN"
"""The whole of an answer that says that the model does not know it."""

DEFAULT_BUDGET_CHARACTERS = 12_000

LEAST_LIKENESS = 0.37
"""The least cosine of evidence with the packaged embedding model; that of other models lies elsewhere."""

_MAX_LISTED = 10
_LINE_MARKER = re.compile(r"^\s*(?:[-+*•>#]+|[0-9]{1,3}[.)])\s+")


class Answerer(Protocol):
    """Writes a cited answer from numbered passages, or says that they do not hold it."""

    def answer(self, question: str, passages: Sequence[NumberedPassage], feedback: Feedback | None = None) -> Answer:
        """Return the answer; its citations name only the given passages. Raises MalformedReply."""


class ChatAnswerer(ChatAgent):
    """Asks a chat model for an answer from the passages; the reply is plain text, so it can be streamed.

    Attributes:
        budget_characters: how much passage text, titles included, fits into the prompt; see `fitting_passages`.
    """

    prompt = "answerer"
    material = "question and passages"
    reply_tokens = 320
    writes_answers = True
    budget_characters = DEFAULT_BUDGET_CHARACTERS

    def answer(self, question: str, passages: Sequence[NumberedPassage], feedback: Feedback | None = None) -> Answer:
        """Return the model's answer with its citations located; without passages, refuse and ask nothing.

        A reply that was cut is an answer as far as it goes, where that cites.

        Raises:
            MalformedReply: the reply cites no shown passage, or is empty or an echo.
        """
        if not passages:
            return refusal()
        bare = self.messages({"question": question}, feedback, refusal=REFUSAL)
        shown = fitting_passages(passages, self._room(bare, self.budget_characters))
        material = {"question": question, "passages": passages_material(shown)}
        citable = {passage.number for passage in shown}
        messages = self.messages(material, feedback, refusal=REFUSAL)

        def check(text: str, cut_at: int | None = None) -> Answer:
            return read_answer(text, question, passages, citable, cut_at)

        cut = partial(check, cut_at=self.reply_tokens)
        return self._ask_text(messages, check, REFUSAL, addresses_of(passages), cut)


def fitting_passages(passages: Sequence[NumberedPassage], room: Room) -> tuple[NumberedPassage, ...]:
    """Return the first passages that fit into a prompt, whole, and tell what does not.

    The first always stays, cut at the end of a sentence if it must be.
    """
    shown = within_room(passages, room)
    tell_left_out(passages, shown, room)
    return shown


def within_room(passages: Sequence[NumberedPassage], room: Room) -> tuple[NumberedPassage, ...]:
    """Return the passages of `fitting_passages`, without a word about the others."""
    fitting = room.count([passage.title + passage.text for passage in passages])
    first = passages[0]
    return tuple(passages[:fitting]) or (replace(first, text=room.without(first.title).cut(first.text)),)


def tell_left_out(passages: Sequence[NumberedPassage], shown: Collection[NumberedPassage], room: Room) -> None:
    """Tell how many passages a prompt has no room for, and of how many it does not show the end."""
    left_out = len(passages) - len(shown)
    cut = len(set(shown).difference(passages))
    parts = [f"{left_out} of {len(passages)} passages"] * (left_out > 0)
    parts += [f"the end of {'a passage' if cut == 1 else f'{cut} passages'}"] * (cut > 0)
    if parts:
        room.tell(" and ".join(parts))


def passages_material(passages: Sequence[NumberedPassage]) -> list[dict[str, object]]:
    """Return passages as a prompt shows them; to be `quoted`."""
    return [{"number": passage.number, "title": passage.title, "text": passage.text} for passage in passages]


def read_answer(
    text: str, question: str, passages: Sequence[NumberedPassage], shown: Set[int], cut_at: int | None = None
) -> Answer:
    """Return a model's words as an answer, each cited passage located; or the refusal, where they are that.

    Citations of other numbers are dropped, where the answer also cites one that it may.

    Args:
        text: what the model wrote, without its thinking.
        question: what was asked; it tells sentences apart that hold the same short answer.
        passages: all that may be cited, and more.
        shown: numbers of those that may be cited.
        cut_at: the tokens at which the words were cut; None where they were not.

    Raises:
        MalformedReply: the answer cites nothing, or nothing that is in ``shown``.
    """
    text = without_marks(text).strip()
    if cut_at is not None:
        text = without_half_citation(text)
    if is_refusal(text):
        return refusal()
    if any(map(is_refusal, text.splitlines())):
        raise MalformedReply(f"The reply refuses and answers: write {REFUSAL} alone, or leave it out")
    parsed = parse_citations(text, shown)
    if parsed.out_of_range and not parsed.numbers:
        listed = ", ".join(map(str, parsed.out_of_range[:_MAX_LISTED]))
        known = ", ".join(map(str, sorted(shown)))
        raise MalformedReply(f"The answer cites {listed}, but the passages are numbered {known}")
    if not parsed.numbers:
        raise MalformedReply(f"The answer cites no passage: cite by number in brackets, or write {REFUSAL} alone")
    text = without_unknown(text, shown)
    citations = located_citations(text, question, passages, shown)
    plain = strip_citations(text).strip()
    return Answer(text, plain, citations, dropped=parsed.out_of_range, cut_at=cut_at)


def located_citations(
    text: str, question: str, passages: Iterable[NumberedPassage], citable: Container[int]
) -> tuple[Citation, ...]:
    """Return the citations of an answer, each with the sentence of its passage that holds the citing words, if any.

    Args:
        text: the answer.
        question: what was asked; it tells sentences apart that hold the same short answer.
        passages: all that may be cited, and more.
        citable: numbers of those that may be cited; other citations are left out.
    """
    by_number = {passage.number: passage for passage in passages}
    sentences = citing_sentences(text)
    citations = []
    for number in parse_citations(text, citable).numbers:
        passage = by_number[number]
        span = locate_quote(sentences.get(number, ""), passage.text, question) or (None, None)
        citations.append(Citation(number, passage.id, *span))
    return tuple(citations)


def is_refusal(text: str, words: str = REFUSAL) -> bool:
    """Tell whether a text is a refusal in these words, whatever stands around them as marks."""
    return _LINE_MARKER.sub("", strip_citations(text)).strip(" \t\n.*_").casefold() == words.casefold()


class ClosedBookAnswerer(ChatAgent):
    """Asks a chat model the question alone: what it knows by itself, to compare answers from passages with."""

    prompt = "closed_book"
    material = "question"
    reply_tokens = 320

    def answer(self, question: str, passages: Sequence[NumberedPassage], feedback: Feedback | None = None) -> Answer:
        """Return what the model knows, without citations; it is shown no passage, whatever is given.

        Raises:
            MalformedReply: the reply is empty, cut or an echo.
        """
        messages = self.messages({"question": question}, feedback, refusal=NOT_KNOWN)
        return self._ask_text(messages, _read_without_passages, NOT_KNOWN)


def _read_without_passages(text: str) -> Answer:
    """Return a reply as an answer; a citation in it would cite nothing, and is removed."""
    plain = strip_citations(without_marks(text)).strip()
    if not plain:
        raise MalformedReply("The reply holds no answer")
    if is_refusal(plain, NOT_KNOWN):
        return Answer(NOT_KNOWN, NOT_KNOWN, (), refused=True)
    return Answer(plain, plain, ())


class OfflineReader:
    """The base of the offline agents that look for evidence.

    Args:
        embed: gives unit vectors of texts; None compares words alone.
        least_likeness: the least cosine of evidence, on the scale of that embedding.
    """

    def __init__(self, embed: Embed | None = None, least_likeness: float = 0.0) -> None:
        self._embed = embed
        self._least_likeness = least_likeness

    @classmethod
    def of_run(cls, run: Run) -> Self:
        """Return the agent that compares sentences with the index's embedding model."""
        return cls(run.index.embed, LEAST_LIKENESS if run.index.embedder.model_id == PACKAGED_MODEL else 0.0)

    def _find(
        self, question: str, passages: Sequence[NumberedPassage], other_rows: OtherRows | None = None
    ) -> list[Evidence]:
        """The evidence for each part of a question."""
        parts = split_question(question)
        return [find_evidence(part, passages, self._embed, self._least_likeness, other_rows) for part in parts]

    def _quote(self, question: str, passages: Sequence[NumberedPassage]) -> Answer:
        """The answer that quotes the evidence, or a refusal where there is none.

        Each sentence stands as in its passage, less any citation of its own, which would read as one of this answer.
        """
        return quote_evidence(self._find(question, passages))


class OfflineAnswerer(OfflineReader):
    """Quotes evidence, each sentence followed by its citation; deterministic, and says nothing of its own.

    Where a question asks for rows of a table, all of them are listed that the run may see: those that were not found
    are read, and numbered behind those that were.
    """

    _rows_of: Callable[[str], Iterable[Passage]] | None = None

    @classmethod
    def of_run(cls, run: Run) -> Self:
        """Return the agent that compares sentences with the index's embedding model, and reads its tables."""
        reader = super().of_run(run)
        reader._rows_of = partial(passages_of_source, run)
        return reader

    def answer(self, question: str, passages: Sequence[NumberedPassage], feedback: Feedback | None = None) -> Answer:
        """Return the evidence for each part of the question, or a refusal where there is none."""
        rows_of = self._rows_of
        if rows_of is None:
            return self._quote(question, passages)
        known = {passage.id: passage for passage in passages}

        def other_rows(source: str) -> list[NumberedPassage]:
            rows = rows_of(source)
            return [known.get(row.id) or NumberedPassage(0, row.id, row.title, row.text, source) for row in rows]

        evidence = self._find(question, passages, other_rows)
        numbered, beyond = number_on(evidence, max((passage.number for passage in passages), default=0))
        return replace(quote_evidence(numbered), beyond=beyond)


MOST_READ = 10_000
"""Passages of a source that are read for the rows of its tables; of a larger one, rows are only quoted."""


def passages_of_source(run: Run, source: str) -> list[Passage]:
    """Return the passages of a source that a run may see, in the order of their ids; none of a very large one."""
    selection, graph = run.selection, run.index.graph
    places = graph.passages_from(source, MOST_READ)
    return [graph.passages[place] for place in places if selection is None or selection.passages[place]]


def answer_shown(answer: Answer) -> dict[str, Any]:
    """Return what a trace shows of an answer."""
    return {
        "answer": answer.text,
        "refused": answer.refused,
        "citations": [{"number": cited.number, "passage_id": cited.passage_id} for cited in answer.citations],
    }


ANSWERER: Agent[Answerer, Answer] = Agent(
    name="answerer",
    key="answer",
    chat=lambda model, run: ChatAnswerer(model, run.answer_tokens),
    offline=OfflineAnswerer.of_run,
    shown=answer_shown,
    instead="the answer quotes the best passages",
)
