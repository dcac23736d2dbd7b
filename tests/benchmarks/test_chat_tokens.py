from __future__ import annotations

import json

import pytest

from benchmarks.chat_tokens import Measured, measure
from graph.environment import set_variables

PASSAGES = {
    "berg": ("Anna Berg", "Anna Berg was born in Oslo in 1933. She wrote the novel Blue Tin."),
    "oslo": ("Oslo", "Oslo is a city in Norway. It lies on a fjord."),
    "tin": ("Blue Tin", "Blue Tin is a novel of 1961 about a mine in Karv."),
}
QUESTIONS = ("Where was Anna Berg born?", "Who wrote the novel Blue Tin?")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    folder = tmp_path_factory.mktemp("set")
    corpus = [{"id": id_, "title": title, "text": text} for id_, (title, text) in PASSAGES.items()]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)), encoding="utf-8")
    asked = [{"question": question} for question in QUESTIONS]
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, asked)), encoding="utf-8")
    try:
        return measure("small", folder, lambda text: len(text.split()), 2)
    finally:
        set_variables({"OPENAI_BASE_URL": None, "MARA_CHAT_MODEL": None})


def requests(measured: Measured, what: str) -> dict[str, int]:
    return {role: tally.requests for role, tally in measured.tallies[what].items()}


def test_every_passage_is_a_request_and_every_reply_is_of_use(measured: Measured) -> None:
    assert requests(measured, "indexing") == {"extractor": len(PASSAGES)}
    assert measured.failed == 0


def test_a_question_is_three_requests_and_two_a_passage_and_two_with_checked_claims(measured: Measured) -> None:
    assert requests(measured, "mara") == dict.fromkeys(("fact filter", "manager", "answerer"), 2)
    judged = 2 * len(PASSAGES)
    expected = {"predictor": judged, "judge": judged, "final predictor": 2, "claim judge": 2}
    assert requests(measured, "ragenta") == expected


def test_what_is_read_is_the_prompt_and_the_passage(measured: Measured) -> None:
    tally = measured.tallies["indexing"]["extractor"]
    words = sum(len(f"{title} {text}".split()) for title, text in PASSAGES.values())
    assert tally.read > 3 * 400 + words, "the prompt has some 700 words"
    assert tally.longest < tally.read + tally.schemas + tally.written
