"""What every request of an agent has in common: a beginning that servers reuse, and material that fits the window."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

import jsonschema_rs
import pytest

from agents.answerer import ChatAnswerer, ClosedBookAnswerer
from agents.answers.claims import Claim
from agents.chat.material import most_tokens
from agents.chat.model import ChatModel
from agents.chat.usage import tallied
from agents.claim_judge import ChatClaimJudge
from agents.extractor import ChatExtractor
from agents.fact_filter import ChatFactFilter
from agents.final_predictor import ChatFinalPredictor, Draft
from agents.judge import ChatJudge
from agents.manager import ChatManager
from agents.predictor import ChatPredictor
from agents.roles import NumberedPassage
from graph.errors import MalformedReply
from graph.schema import Fact, Passage, RelationType, ScoredFact
from prompts import load_prompt
from tests.chatting import model_on
from tests.scripted_server import scripted

SENTENCE = "The weavers of Karv closed their guild after the great flood of that year. "
TALES = [NumberedPassage(n, f"p{n}", f"Tale {n}", SENTENCE * 12) for n in range(1, 6)]
FACTS = [ScoredFact(Fact(f"Karv {n}", "lies on", f"Lake {n}", RelationType.SPATIAL), 1 - n / 100) for n in range(1, 41)]
CLAIMS = [Claim(n, SENTENCE, (n,), 0, 9) for n in range(1, 4)]

Ask = Callable[[ChatModel, str, int], object]
ASK: dict[str, Ask] = {
    "answerer": lambda m, question, n: ChatAnswerer(m).answer(question, TALES[:n]),
    "final predictor": lambda m, question, n: ChatFinalPredictor(m).answer(
        question, TALES[:n], Draft(f"It closed [{n}].", (n,), (question,)) if n > 1 else None
    ),
    "closed book": lambda m, question, n: ClosedBookAnswerer(m).answer(question, TALES[:n]),
    "predictor": lambda m, question, n: ChatPredictor(m).predict(question, TALES[n]),
    "judge": lambda m, question, n: ChatJudge(m).judge(question, TALES[n], "Karv" * n),
    "fact filter": lambda m, question, n: ChatFactFilter(m).choose(question, FACTS[: 9 * n], n),
    "manager": lambda m, question, n: ChatManager(m).weigh(question),
    "claim judge": lambda m, question, n: ChatClaimJudge(m).assess(question, CLAIMS[:n], TALES[:n], n),
    "extractor": lambda m, question, n: ChatExtractor(m).extract(Passage("p", question, SENTENCE * n)),
}


def asked(server_reply: str, role: str, question: str, n: int) -> list[str]:
    """Return the messages that an agent sends, whatever comes of it."""
    with scripted([server_reply]) as server:
        with suppress(MalformedReply):
            ASK[role](model_on(server), question, n)
        return [message["content"] for message in server.requests[0].body["messages"]]


@pytest.mark.parametrize("role", ASK)
def test_two_requests_for_different_questions_share_the_whole_system_message(role: str) -> None:
    first = asked("x", role, "When did the guild of Karv close?", 1)
    second = asked("x", role, "Wer gründete die Werft?", 3)
    assert first[0].encode() == second[0].encode()
    assert first[1] != second[1]


@pytest.mark.parametrize("role", ["predictor", "judge"])
def test_all_passages_of_a_question_share_the_question_too(role: str) -> None:
    question = "When did the guild of Karv close?"
    requests = [asked("x", role, question, n) for n in (1, 3)]
    shared = f"Quoted material ({'question, passage and answer' if role == 'judge' else 'question and passage'}):\n"
    assert all(request[1].startswith(f'{shared}```json\n{{"question": "{question}", "title": ') for request in requests)


@pytest.mark.parametrize("role", ["fact filter", "manager", "claim judge", "extractor"])
def test_the_replies_of_the_prompts_examples_fit_the_schema_that_is_sent(role: str) -> None:
    with scripted(["x"]) as server:
        with pytest.raises(MalformedReply):
            ASK[role](model_on(server), "When?", 3)
        schema = server.requests[0].body["response_format"]["json_schema"]["schema"]
    text = json.dumps(schema).replace('"enum": [1, 2, 3]', '"minimum": 1').replace('"minItems": 3', '"minItems": 0')
    shape = json.loads(text.replace('"maxItems": 3', '"maxItems": 9'))
    replies = [line for line in load_prompt(role.replace(" ", "_")).template.splitlines() if line.startswith("{")][1::2]
    assert replies
    for reply in replies:
        jsonschema_rs.validate(shape, json.loads(reply))


@pytest.mark.parametrize("role", ["fact filter", "manager", "claim judge", "extractor"])
def test_no_list_and_no_text_of_a_schema_is_without_end(role: str) -> None:
    with scripted(["x"]) as server:
        with pytest.raises(MalformedReply):
            ASK[role](model_on(server), "When?", 3)
        left = [server.requests[0].body["response_format"]["json_schema"]["schema"]]
    while left:
        schema = left.pop()
        if schema.get("type") == "array":
            assert "maxItems" in schema
            left.append(schema["items"])
        if schema.get("type") == "string":
            assert "maxLength" in schema or "enum" in schema
        if schema.get("type") == "integer":
            assert "enum" in schema
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
            left.extend(schema["properties"].values())
        assert not {"title", "description", "default", "$ref", "$defs"} & schema.keys()


@pytest.mark.parametrize(
    ("role", "window", "told"),
    [
        ("answerer", 2_100, "The answerer was not shown 2 of 4 passages"),
        ("final predictor", 3_200, "The final predictor was not shown 2 of 4 passages"),
        ("fact filter", 1_400, "The fact filter was not shown 21 of 36 facts"),
        ("claim judge", 6_300, "The claim judge was not shown 1 of 4 passages"),
        ("predictor", 1_500, "The predictor was not shown the end of a passage"),
        ("judge", 1_400, "The judge was not shown the end of a passage"),
    ],
)
def test_material_is_fitted_to_the_window_whole_the_best_first_and_what_is_left_out_is_told(
    monkeypatch: pytest.MonkeyPatch, role: str, window: int, told: str
) -> None:
    monkeypatch.setenv("MARA_CONTEXT_TOKENS", str(window))
    with tallied() as tally:
        system, material = asked("x", role, "When did the guild of Karv close?", 4)
    assert most_tokens(system) + most_tokens(material) < window
    shown = json.loads(material.splitlines()[2])
    for passage in shown.get("passages", []):
        assert passage["text"] == SENTENCE * 12
    if "text" in shown:
        assert shown["text"].endswith("that year.")
        assert SENTENCE * 2 < shown["text"] < SENTENCE * 12
    assert [line.partition(":")[0] for line in tally.omissions] == [told]
    assert f"no more fits into the context window of {window:,} tokens" in tally.omissions[0]


@pytest.mark.parametrize("role", ["answerer", "predictor", "claim judge", "fact filter"])
def test_the_first_sentence_or_fact_is_shown_in_the_smallest_window_and_the_server_says_what_it_thinks_of_it(
    monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    monkeypatch.setenv("MARA_CONTEXT_TOKENS", "256")
    with tallied() as tally:
        shown = json.loads(asked("x", role, "When?", 1)[1].splitlines()[2])
    if role == "fact filter":
        assert shown["facts"] == [[1, "Karv 1", "lies on", "Lake 1"]]
    else:
        assert (shown.get("text") or shown["passages"][0]["text"]) == SENTENCE.strip()
    assert len(tally.omissions) == 1


def test_an_extractor_notes_that_it_did_not_see_the_end_of_a_passage(monkeypatch: pytest.MonkeyPatch) -> None:
    passage = Passage("p", "Karv", SENTENCE * 40)
    with scripted(['{"entities": ["Karv"], "triples": []}']) as server:
        agent = ChatExtractor(model_on(server))
        whole, key = agent.extract(passage), agent.key(passage)
        monkeypatch.setenv("MARA_CONTEXT_TOKENS", "4000")
        cut = agent.extract(passage)
        assert agent.key(passage) != key
    assert whole.notes == {}
    assert cut.notes == {"ends of passages not shown": 1}
    shown = json.loads(server.requests[1].text_of(1).splitlines()[2])["text"]
    assert passage.text.startswith(shown)
    assert shown.endswith("that year.")


def test_without_a_known_window_everything_is_shown_as_before() -> None:
    with tallied() as tally:
        assert len(json.loads(asked("x", "answerer", "When?", 5)[1].splitlines()[2])["passages"]) == 5
    assert tally.omissions == []
