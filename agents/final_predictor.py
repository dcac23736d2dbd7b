"""The final predictor on a chat model: the answer from the passages that were kept (RAGentA, agent 3)."""

from __future__ import annotations

from collections.abc import Sequence

from agents.answerer import (
    DEFAULT_BUDGET_CHARACTERS,
    REFUSAL,
    fitting_passages,
    passages_material,
    read_answer,
    refusal,
)
from agents.answers.citations import parse_citations
from agents.answers.unlinked import addresses_of
from agents.chat.agent import ChatAgent
from agents.chat.model import ChatModel
from agents.roles import Answer, Draft, Feedback, FinalAnswer, NumberedPassage
from graph.errors import MalformedReply


class ChatFinalPredictor(ChatAgent):
    """Asks a chat model for an answer with every claim cited; the reply is plain text, so it can be streamed.

    Args:
        model: who answers.
        budget_characters: how much passage text, titles included, fits into the prompt.
    """

    prompt = "final_predictor"
    material = "question and passages"
    reply_tokens = 800
    writes_answers = True

    def __init__(self, model: ChatModel, budget_characters: int = DEFAULT_BUDGET_CHARACTERS) -> None:
        super().__init__(model)
        self._budget_characters = budget_characters

    def answer(
        self,
        question: str,
        passages: Sequence[NumberedPassage],
        draft: Draft | None = None,
        feedback: Feedback | None = None,
    ) -> FinalAnswer:
        """Return the model's answer with its citations located; without passages, refuse and ask nothing.

        The best passages that fit into the budget are shown. With a draft, those that it cites go first, and may be
        cited even where they no longer fit.

        Raises:
            MalformedReply: the reply cites nothing, or a number that no shown passage has, or no longer what the
                draft cites with good reason; or it is empty, cut, an echo, or never ends its thinking.
        """
        if not passages:
            return FinalAnswer(refusal(), ())
        given = {passage.number for passage in passages}
        kept = set(parse_citations(draft.text, given).numbers) if draft else set()
        completing = {"draft": draft.text, "follow_up_questions": list(draft.follow_ups)} if draft else {}
        bare = self.messages({"question": question, **completing}, feedback, refusal=REFUSAL)
        ordered = sorted(passages, key=lambda passage: passage.number not in kept)
        shown = fitting_passages(ordered, self._room(bare, self._budget_characters))
        material = {"question": question, "passages": passages_material(shown), **completing}
        messages = self.messages(material, feedback, refusal=REFUSAL)
        seen = dict.fromkeys([*(passage.number for passage in shown), *sorted(kept)])
        needed = given.intersection(draft.cited if draft else ())

        def check(text: str) -> Answer:
            answer = read_answer(text, question, passages, seen.keys())
            if lost := sorted(needed.difference(citation.number for citation in answer.citations)):
                listed = ", ".join(map(str, lost))
                raise MalformedReply(f"The answer no longer cites {listed}: keep what the draft says from there")
            return answer

        prompt = "\n\n".join(str(message.text) for message in messages)
        return FinalAnswer(self._ask_text(messages, check, REFUSAL, addresses_of(passages)), tuple(seen), prompt)
