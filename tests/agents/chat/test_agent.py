"""The work that all agents on a chat model share, shown by a small one."""

from __future__ import annotations

import pytest

from agents.chat.agent import ChatAgent
from agents.roles import Feedback
from graph.errors import MalformedReply
from tests.chatting import TEXT, VERDICT, Verdict, model_on
from tests.scripted_server import scripted


class LakeAgent(ChatAgent):
    """An agent whose text must be about a lake, and whose object's share is at most 1."""

    prompt = "judge"
    material = "question"
    reply_tokens = 100

    def name_of(self, question: str, feedback: Feedback | None = None) -> str:
        return self._ask_text(self.messages({"question": question}, feedback), _name, "NOTHING")

    def verdict_on(self, question: str) -> Verdict:
        schema = Verdict.model_json_schema()
        return self._ask_object(Verdict, schema, self.messages({"question": question}), _same)


def _name(text: str) -> str:
    if not text.startswith("Lake"):
        raise MalformedReply("The reply names no lake")
    return text


def _same(verdict: Verdict) -> Verdict:
    if verdict.share > 1:
        raise MalformedReply("The share is above 1")
    return verdict


def test_an_agent_fills_its_prompt_quotes_its_material_and_checks_the_text_without_the_thinking() -> None:
    with scripted(["<think>Hm.</think>Lake Ven", "<think>Lake?</think>Sea"]) as server:
        agent = LakeAgent(model_on(server))
        assert agent.name_of("Which?", Feedback("no lake", "Sea")) == "Lake Ven"
        with pytest.raises(MalformedReply) as caught:
            agent.name_of("Which?")
        system, material, feedback = (message["content"] for message in server.requests[0].body["messages"])
    assert (caught.value.reason, caught.value.raw) == ("The reply names no lake", "Sea")
    assert "$" not in system
    assert material == 'Quoted material (question):\n```json\n{"question": "Which?"}\n```'
    assert '"no lake"' in feedback


def test_an_object_is_asked_for_by_schema_and_checked() -> None:
    wrong = TEXT.replace("0.5", "1.5")
    with scripted([TEXT, wrong]) as server:
        agent = LakeAgent(model_on(server))
        assert agent.verdict_on("Which?") == VERDICT
        with pytest.raises(MalformedReply, match="above 1") as caught:
            agent.verdict_on("Which?")
        wanted = server.requests[0].body["response_format"]["json_schema"]
    assert caught.value.raw == wrong
    assert wanted["name"] == "Verdict"
    assert "share" in wanted["schema"]["properties"]
