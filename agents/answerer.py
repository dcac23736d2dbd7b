"""The answerer on a chat model: a cited answer from numbered passages, or an explicit refusal."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from agents.chat import ChatModel, ask_text, prompt_messages, quoted
from agents.citations import citing_sentence, parse_citations, strip_citations
from agents.roles import Answer, Citation, Feedback, NumberedPassage
from graph.errors import MalformedReply
from graph.text import sentence_spans, tokens
from prompts import fill

REFUSAL = "NOT IN THE PASSAGES"
"""The whole of an answer that says that the passages do not hold it."""

DEFAULT_BUDGET_CHARACTERS = 12_000

MIN_OVERLAP = 0.3
"""The least share of a citing sentence's content tokens that a quoted sentence must hold."""

_MAX_QUOTES = 2
_MAX_LISTED = 10
_MAX_QUOTE_CHARACTERS = 600
_STOPS = ".!?。！？।"
_FUNCTION_WORDS = frozenset(
    tokens("""
    a about after all also an and any are as at be been before between both but by can could did do does during each
    for from had has have he her his how i if in into is it its many may more most much no not of on one or other our
    s she so some such than that the their them then there these they this those through to under until up was we were
    what when where whether which while who whom whose why will with would you your
""")
)


class ChatAnswerer:
    """Asks a chat model for an answer from the passages; the reply is plain text, so it can be streamed.

    Args:
        model: who answers.
        budget_characters: how much passage text, titles included, fits into the prompt; see `within_budget`.
    """

    def __init__(self, model: ChatModel, budget_characters: int = DEFAULT_BUDGET_CHARACTERS) -> None:
        self._model = model
        self._budget_characters = budget_characters

    def answer(self, question: str, passages: Sequence[NumberedPassage], feedback: Feedback | None = None) -> Answer:
        """Return the model's answer with its citations located; without passages, refuse and ask nothing.

        Raises:
            MalformedReply: the reply cites nothing, or a number that no shown passage has, or is empty or cut.
        """
        if not passages:
            return _refusal()
        shown = within_budget(passages, self._budget_characters)
        material = {
            "question": question,
            "passages": [{"number": passage.number, "title": passage.title, "text": passage.text} for passage in shown],
        }
        system = fill("answerer", refusal=REFUSAL)
        text = ask_text(self._model, prompt_messages(system, quoted("question and passages", material), feedback))
        if strip_citations(text).strip().rstrip(".").casefold() == REFUSAL.casefold():
            return _refusal()
        return _cited_answer(text, question, passages, {passage.number for passage in shown})


def within_budget(passages: Sequence[NumberedPassage], budget_characters: int) -> tuple[NumberedPassage, ...]:
    """Return the first passages that fit into a budget of characters; the first always stays, cut if it must be."""
    first = passages[0]
    shown = [replace(first, text=first.text[: max(0, budget_characters - len(first.title))])]
    used = len(first.title) + len(first.text)
    for passage in passages[1:]:
        used += len(passage.title) + len(passage.text)
        if used > budget_characters:
            break
        shown.append(passage)
    return tuple(shown)


def quote_passages(question: str, passages: Sequence[NumberedPassage]) -> Answer:
    """Return the sentences that share most content tokens with the question, cited: the fallback without a model.

    At most two sentences are quoted, the best first; a passage's title counts as part of its sentences when they are
    compared, and earlier passages win ties. Citations within the quoted text are left out. Refuses where no sentence
    shares a token.
    """
    wanted = _content_tokens(question)
    ranked = sorted(
        (-len(wanted & _content_tokens(f"{passage.title} {passage.text[start:end]}")), position, start, end)
        for position, passage in enumerate(passages)
        for start, end in sentence_spans(passage.text)
    )
    best = [entry for entry in ranked if entry[0] < 0][:_MAX_QUOTES]
    if not best:
        return _refusal()
    quotes = []
    citations: dict[int, Citation] = {}
    for _, position, start, end in best:
        passage = passages[position]
        end = min(end, start + _MAX_QUOTE_CHARACTERS)
        quotes.append(_with_citation(strip_citations(passage.text[start:end]), passage.number))
        citations.setdefault(passage.number, Citation(passage.number, passage.id, start, end))
    text = " ".join(quotes)
    return Answer(text, strip_citations(text), tuple(citations.values()))


def locate_quote(claim_sentence: str, passage_text: str, context: str = "") -> tuple[int, int] | None:
    """Return (start, end) of the passage's sentence that shares most content tokens with a citing sentence.

    Ties go to the sentence that shares more with ``context`` (the question, for a claim of one word), then to the
    earlier one. None when it holds less than `MIN_OVERLAP` of the claim's content tokens, or there are none.
    """
    claim = _content_tokens(strip_citations(claim_sentence))
    asked = _content_tokens(context)
    best: tuple[int, int] | None = None
    best_score = (0, 0)
    for start, end in sentence_spans(passage_text):
        found = _content_tokens(passage_text[start:end])
        score = (len(claim & found), len(asked & found))
        if score[0] and score > best_score:
            best, best_score = (start, end), score
    return best if claim and best_score[0] >= MIN_OVERLAP * len(claim) else None


def _cited_answer(text: str, question: str, passages: Sequence[NumberedPassage], shown: Set[int]) -> Answer:
    """The answer with each cited passage located, if it cites shown passages alone. Raises MalformedReply."""
    parsed = parse_citations(text, max(shown))
    unknown = [number for number in (*parsed.numbers, *parsed.out_of_range) if number not in shown]
    if unknown:
        listed = ", ".join(map(str, unknown[:_MAX_LISTED]))
        known = ", ".join(map(str, sorted(shown)))
        raise MalformedReply(f"The answer cites {listed}, but the passages are numbered {known}", text)
    if not parsed.numbers:
        raise MalformedReply(f"The answer cites no passage; cite as in [1], or write {REFUSAL} alone", text)
    by_number = {passage.number: passage for passage in passages}
    citations = []
    for number in parsed.numbers:
        passage = by_number[number]
        span = locate_quote(citing_sentence(text, number), passage.text, question) or (None, None)
        citations.append(Citation(number, passage.id, *span))
    return Answer(text, strip_citations(text).strip(), tuple(citations))


def _refusal() -> Answer:
    return Answer(REFUSAL, REFUSAL, (), refused=True)


def _with_citation(sentence: str, number: int) -> str:
    """The sentence with a citation before its final stop."""
    sentence = sentence.strip()
    body = sentence.rstrip(_STOPS)
    return f"{body} [{number}]{sentence[len(body) :]}"


def _content_tokens(text: str) -> frozenset[str]:
    return frozenset(tokens(text)) - _FUNCTION_WORDS
