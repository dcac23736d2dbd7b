"""The words around an answer: in the language of its question, true to what happened, and taken off again."""

from __future__ import annotations

from typing import Any

from agents.roles import REFUSAL
from workflows.results import label_of, refusal_text
from workflows.settings.enums import ResultKind
from workflows.wording import WORDS, language_of


def test_the_language_of_a_question_is_told_by_its_function_words() -> None:
    for question, language in [
        ("Who founded Marn?", "en"),
        ("Wer hat Marn gegründet?", "de"),
        ("Qui a fondé Marn ?", "fr"),
        ("¿Quién fundó Marn?", "es"),
        ("Der Spiegel circulation", "en"),
        ("日産はいつ設立されましたか", "en"),
    ]:
        assert language_of(question) == language


def result(kind: ResultKind, *errors: tuple[str, str, str], question: str = "Who founded Marn?") -> dict[str, Any]:
    """A result of a kind with notes of (node, kind, message)."""
    hit = {"number": 1, "id": "p1", "title": "Mar*n", "text": "Marn.", "source": "a.md", "metadata": {"page": 3}}
    return {
        "question": question,
        "understood": None,
        "answer": REFUSAL if kind is ResultKind.REFUSAL else "It is old [1].",
        "answer_kind": kind.value,
        "passages": [hit],
        "citations": [],
        "errors": [{"node": node, "kind": kind, "message": message} for node, kind, message in errors],
    }


FELL_BACK = ("quote_passages", "Fallback", "The answerer's replies stayed malformed: the answer quotes")


def test_where_a_model_failed_that_is_the_reason_that_is_told() -> None:
    for fault, why in [
        (("MalformedReply", "The reply was cut at the token limit: write less"), "cut"),
        (("MalformedReply", "The reply is empty"), "empty"),
        (("SlowReply", "The chat endpoint sent no token for 5 s"), "slow"),
        (("BudgetSpent", "The question's time is over"), "spent"),
    ]:
        for words, question in ((WORDS["en"], "Who founded Marn?"), (WORDS["de"], "Wer hat Marn gegründet?")):
            notes = (("write_answer", *fault), FELL_BACK)
            quoted = result(ResultKind.EVIDENCE, *notes, question=question)
            assert label_of(quoted) == words.instead.format(words.failures[why])
            refused = refusal_text(result(ResultKind.REFUSAL, *notes, question=question))
            assert refused.startswith(f"{words.not_found}. {words.failed.format(words.failures[why])}")
        assert label_of(result(ResultKind.EVIDENCE)) == "Quotes from your documents (not checked by a model)", fault


def test_a_refusal_says_what_is_missing_names_the_closest_passages_and_what_to_try() -> None:
    missing = ("write_answer", "Evidence", "No evidence for 'Qui?': the passages found do not hold marn")
    shown = refusal_text(result(ResultKind.REFUSAL, missing, question="Qui a fondé Marn ?"), has_filter=True)
    assert shown == (
        "Introuvable dans les documents. Les passages trouvés ne mentionnent pas Marn.\n\n"
        "Passages les plus proches:\n\n- [1] Mar\\*n · a.md · page 3\n\n"
        "Essayez d’autres mots, ou ajoutez des documents à ce sujet."
        " Un filtre est actif : un filtre plus large peut trouver davantage."
    )
