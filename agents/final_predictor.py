"""The final predictor: the answer from the passages that were kept (RAGentA, agent 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from agents.agent import Agent
from agents.answerer import (
    DEFAULT_BUDGET_CHARACTERS,
    OfflineReader,
    answer_shown,
    fitting_passages,
    located_citations,
    passages_material,
    read_answer,
)
from agents.answers.citations import parse_citations, strip_citations
from agents.answers.quotes import RELATED, unmarked
from agents.answers.unlinked import addresses_of
from agents.chat.agent import ChatAgent
from agents.roles import REFUSAL, Answer, Feedback, NumberedPassage, refusal
from graph.errors import MalformedReply


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer that is to be completed from more passages.

    Attributes:
        text: the answer so far, with its citations.
        cited: numbers that it cites with good reason: they have to stay.
        follow_ups: the questions that the new passages were found with.
    """

    text: str
    cited: tuple[int, ...]
    follow_ups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """An answer, and what it was written from.

    Attributes:
        answer: with its citations.
        written_from: numbers of the passages that were looked at: all that were given, but for those without room.
        prompt: what a model was asked; empty where none was.
    """

    answer: Answer
    written_from: tuple[int, ...]
    prompt: str = ""


class FinalPredictor(Protocol):
    """Writes the answer from the passages that were kept, every claim cited (RAGentA, agent 3)."""

    def answer(
        self,
        question: str,
        passages: Sequence[NumberedPassage],
        draft: Draft | None = None,
        feedback: Feedback | None = None,
    ) -> FinalAnswer:
        """Return the answer; its citations name only the given passages, whose numbers may have gaps.

        Args:
            question: what is asked.
            passages: the best first.
            draft: what is to be completed; None for an answer from nothing.
            feedback: why the last reply was refused.

        Raises MalformedReply.
        """


class ChatFinalPredictor(ChatAgent):
    """Asks a chat model for an answer with every claim cited; the reply is plain text, so it can be streamed.

    Attributes:
        budget_characters: how much passage text, titles included, fits into the prompt.
    """

    prompt = "final_predictor"
    material = "question and passages"
    reply_tokens = 800
    writes_answers = True
    budget_characters = DEFAULT_BUDGET_CHARACTERS

    def answer(
        self,
        question: str,
        passages: Sequence[NumberedPassage],
        draft: Draft | None = None,
        feedback: Feedback | None = None,
    ) -> FinalAnswer:
        """Return the model's answer with its citations located; without passages, refuse and ask nothing.

        The best passages that fit into the budget are shown. With a draft, those that it cites go first, and may be
        cited even where they no longer fit. A reply that was cut is an answer as far as it goes, where that cites.

        Raises:
            MalformedReply: the reply cites no shown passage, or no longer what the draft cites with good reason; or it
                is empty, an echo, or never ends its thinking.
        """
        if not passages:
            return FinalAnswer(refusal(), ())
        numbers = {passage.number for passage in passages}
        cited = set(parse_citations(draft.text, numbers).numbers) if draft else set()
        completing = {"draft": draft.text, "follow_up_questions": list(draft.follow_ups)} if draft else {}
        bare = self.messages({"question": question, **completing}, feedback, refusal=REFUSAL)
        ordered = sorted(passages, key=lambda passage: passage.number not in cited)
        shown = fitting_passages(ordered, self._room(bare, self.budget_characters))
        material = {"question": question, "passages": passages_material(shown), **completing}
        messages = self.messages(material, feedback, refusal=REFUSAL)
        seen = dict.fromkeys([*(passage.number for passage in shown), *sorted(cited)])
        needed = numbers.intersection(draft.cited if draft else ())

        def check(text: str, cut_at: int | None = None) -> Answer:
            answer = read_answer(text, question, passages, seen.keys(), cut_at)
            if lost := sorted(needed.difference(citation.number for citation in answer.citations)):
                listed = ", ".join(map(str, lost))
                raise MalformedReply(f"The answer no longer cites {listed}: keep what the draft says from there")
            return answer

        prompt = "\n\n".join(str(message.text) for message in messages)
        cut = partial(check, cut_at=self.reply_tokens)
        written = self._ask_text(messages, check, REFUSAL, addresses_of(passages), cut)
        return FinalAnswer(written, tuple(seen), prompt)


class OfflineFinalPredictor(OfflineReader):
    """Quotes evidence as the offline answerer does."""

    def answer(
        self,
        question: str,
        passages: Sequence[NumberedPassage],
        draft: Draft | None = None,
        feedback: Feedback | None = None,
    ) -> FinalAnswer:
        """Return the quotes or a refusal; a draft stays as it is, and evidence for its follow-ups is appended."""
        seen = tuple(passage.number for passage in passages)
        if draft is None:
            return FinalAnswer(self._quote(question, passages), seen)
        answers = [self._quote(asked, passages) for asked in draft.follow_ups]
        return FinalAnswer(_appended(draft, [each for each in answers if not each.refused], passages, question), seen)


def _appended(draft: Draft, answers: Sequence[Answer], passages: Sequence[NumberedPassage], question: str) -> Answer:
    """The draft with more paragraphs behind it, and the citations of both."""
    new = dict.fromkeys(paragraph for each in answers for paragraph in each.text.split("\n\n"))
    paragraphs = [*draft.text.rstrip().split("\n\n"), *(paragraph for paragraph in new if paragraph not in draft.text)]
    text = "\n\n".join(sorted(paragraphs, key=lambda paragraph: paragraph.startswith(RELATED)))
    cited = located_citations(draft.text, question, passages, {passage.number for passage in passages})
    citations = {citation.number: citation for each in (*answers,) for citation in each.citations}
    citations |= {citation.number: citation for citation in cited}
    order = dict.fromkeys([*(citation.number for citation in cited), *citations])
    notes = tuple(note for each in answers for note in each.notes)
    ordered = tuple(citations[number] for number in order)
    return Answer(text, strip_citations(unmarked(text)).strip(), ordered, is_evidence=True, notes=notes)


FINAL_PREDICTOR: Agent[FinalPredictor, FinalAnswer] = Agent(
    name="final_predictor",
    key="answer",
    chat=lambda model, run: ChatFinalPredictor(model, run.answer_tokens),
    offline=OfflineFinalPredictor.of_run,
    shown=lambda written: answer_shown(written.answer),
    instead="the answer quotes the best passages",
)
