"""Every agent on a chat model, asked in one way: with a question, passages and the reason to ask again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agents.answerer import ChatAnswerer, ClosedBookAnswerer
from agents.answers.claims import Claim
from agents.chat.model import ChatModel
from agents.claim_judge import ChatClaimJudge
from agents.extractor import ChatExtractor
from agents.fact_filter import ChatFactFilter
from agents.final_predictor import ChatFinalPredictor, Draft
from agents.judge import ChatJudge
from agents.manager import ChatManager
from agents.predictor import ChatPredictor
from agents.roles import Feedback, NumberedPassage
from graph.schema import Fact, Passage, RelationType, ScoredFact

Passages = Sequence[NumberedPassage]
Ask = Callable[[ChatModel, str, Passages, Feedback | None], object]


def facts_of(passages: Passages) -> list[ScoredFact]:
    """Nine facts of each passage, the best first."""
    titles = [passage.title for passage in passages for _ in range(9)]
    facts = [Fact(title, "lies on", f"Lake {n}", RelationType.SPATIAL) for n, title in enumerate(titles, 1)]
    return [ScoredFact(fact, 1 - place / 100) for place, fact in enumerate(facts)]


def claims_of(passages: Passages) -> list[Claim]:
    """A claim that cites each passage, and repeats its first words."""
    return [Claim(n, passage.text[:75], (passage.number,), 0, 9) for n, passage in enumerate(passages[:3], 1)]


def draft_of(question: str, passages: Passages) -> Draft | None:
    """A draft that cites the last of several passages."""
    last = passages[-1]
    return Draft(f"{last.title} [{last.number}].", (last.number,), (question,)) if len(passages) > 1 else None


ASK: dict[str, Ask] = {
    "answerer": lambda m, question, passages, feedback: ChatAnswerer(m).answer(question, passages, feedback),
    "closed book": lambda m, question, passages, feedback: ClosedBookAnswerer(m).answer(question, passages, feedback),
    "final predictor": lambda m, question, passages, feedback: ChatFinalPredictor(m).answer(
        question, passages, draft_of(question, passages), feedback
    ),
    "predictor": lambda m, question, passages, feedback: ChatPredictor(m).predict(question, passages[-1], feedback),
    "judge": lambda m, question, passages, feedback: ChatJudge(m).judge(
        question, passages[-1], passages[-1].title, feedback
    ),
    "fact filter": lambda m, question, passages, feedback: ChatFactFilter(m).choose(
        question, facts_of(passages), len(passages), feedback
    ),
    "manager": lambda m, question, passages, feedback: ChatManager(m).weigh(question, feedback),
    "claim judge": lambda m, question, passages, feedback: ChatClaimJudge(m).assess(
        question, claims_of(passages), passages, len(passages), feedback
    ),
    "extractor": lambda m, question, passages, feedback: ChatExtractor(m).extract(
        Passage("p", passages[-1].title, passages[-1].text), feedback
    ),
}
OBJECTS = ("fact filter", "manager", "claim judge", "extractor")
"""The agents that want an object; the others want text."""
