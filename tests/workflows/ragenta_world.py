"""Models that behave in every role of workflow ragenta over the small world, and what they say there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from tests.scripted_server import Reply, ReplyLike, Script, ScriptedServer
from tests.workflows.small_world import QUICK_RETRIES, shown_to_model
from tests.workflows.small_world import well_behaved as well_behaved_on_walks
from workflows import ragenta
from workflows.settings.ragenta import RagentaContext

MakeContext = Callable[..., RagentaContext]

ONE_THING = "When was Marn founded?"
TWO_THINGS = "Who built the Tarn Dam, and where was the builder born?"
THE_BUILDER = "Who built the Tarn Dam?"
THE_BIRTHPLACE = "Where was the builder of the Tarn Dam born?"
FOLLOW_UP = "Where was Ada Brandt born?"
"""The question for the second thing, once the first is known."""

SAID = {
    "Marn": "Marn was founded in 1203",
    "Tarn Dam": "The Tarn Dam was built by Ada Brandt",
    "Ada Brandt": "Ada Brandt was born in Lisk",
}
"""The words of the final predictor from a passage, by its title; from the others it says nothing."""

SUPPORTS = {ONE_THING: "Marn", TWO_THINGS: "Tarn Dam", FOLLOW_UP: "Ada Brandt"}
"""The title of the passage that the judge says Yes to, for a question."""

COMPONENTS = {ONE_THING: {ONE_THING: "Marn"}, TWO_THINGS: {THE_BUILDER: "Tarn Dam", THE_BIRTHPLACE: "Ada Brandt"}}
"""The things that each question asks for, and the title of the passage that holds it."""

MARN_ANSWERED = "Marn was founded in 1203 [1]."
BUILDER_ANSWERED = "The Tarn Dam was built by Ada Brandt [1]."

YES = Reply.spelt(("Yes", {"Yes": -0.05, "No": -3.0}), (" 0.9", {}))
NO = Reply.spelt(("No", {"No": -0.05, "Yes": -3.0}), (" 0.9", {}))
YES_SCORE, NO_SCORE = 2.95, -2.95
NOTHING = "NOT IN THE PASSAGE"
REFUSED = "NOT IN THE PASSAGES"

ROLES = ("predictor", "judge", "final predictor", "claim judge")
CHAT_PATH = "/v1/chat/completions"

quick_ragenta: Any = (
    ragenta.build(QUICK_RETRIES)
    .compile(name=ragenta.WORKFLOW)
    .with_config(recursion_limit=ragenta.RECURSION_LIMIT, max_concurrency=ragenta.MAX_CONCURRENCY)
)
"""The workflow without the waits between its retries."""


def ragenta_on_a_thread() -> tuple[Any, Any]:
    """Return the workflow on a checkpointer of its own, and the config of a thread of it."""
    compiled = ragenta.build(QUICK_RETRIES).compile(checkpointer=InMemorySaver())
    return compiled, {
        "configurable": {"thread_id": "one"},
        "recursion_limit": ragenta.RECURSION_LIMIT,
        "max_concurrency": ragenta.MAX_CONCURRENCY,
    }


def predicts(body: Mapping[str, Any]) -> str:
    """Reply as a predictor that finds what is said of the passage."""
    said = SAID.get(shown_to_model(body)["title"])
    return f"{said}." if said else NOTHING


def judges(body: Mapping[str, Any]) -> Reply:
    """Reply as a judge that finds one passage helpful for each question."""
    shown = shown_to_model(body)
    return YES if shown["title"] == SUPPORTS[shown["question"]] else NO


def writes(body: Mapping[str, Any]) -> str:
    """Reply as a final predictor that says one sentence a passage, behind the draft where there is one."""
    shown = shown_to_model(body)
    draft = shown.get("draft", "")
    sentences = [
        f"{SAID[passage['title']]} [{passage['number']}]."
        for passage in shown["passages"]
        if passage["title"] in SAID and SAID[passage["title"]] not in draft
    ]
    return " ".join([*([draft] if draft else []), *sentences]) or REFUSED


def checks(body: Mapping[str, Any], *, follow_up: str = FOLLOW_UP) -> str:
    """Reply as a claim judge that knows what each passage says, and what the question asks for.

    ``follow_up`` is asked for each component that no claim answers.
    """
    shown = shown_to_model(body)
    title_of = {passage["number"]: passage["title"] for passage in shown["passages"]}
    components: list[dict[str, Any]] = []
    for text, title in COMPONENTS[shown["question"]].items():
        about = [claim["number"] for claim in shown["claims"] if SAID[title] in claim["text"]]
        components.append({"text": text, "coverage": "FULLY ANSWERED" if about else "NOT ANSWERED", "claims": about})
    verdicts = [
        {
            "number": claim["number"],
            "supported_by": [number for number, title in title_of.items() if SAID.get(title, "\0") in claim["text"]],
            "relevant": True,
        }
        for claim in shown["claims"]
    ]
    lacking = [place for place, each in enumerate(components, start=1) if not each["claims"]]
    return json.dumps(
        {
            "structure": "single" if len(components) == 1 else "multiple",
            "components": components,
            "claims": verdicts,
            "follow_ups": [{"component": place, "question": follow_up} for place in lacking],
        }
    )


def assessment(
    components: list[tuple[str, str, list[int]]],
    claims: list[tuple[int, list[int]]],
    follow_ups: list[tuple[int, str]] | None = None,
    irrelevant: tuple[int, ...] = (),
) -> str:
    """Return a claim judge's reply: components with coverage and claims, claims with what supports them."""
    return json.dumps(
        {
            "structure": "single" if len(components) == 1 else "multiple",
            "components": [{"text": t, "coverage": c, "claims": numbers} for t, c, numbers in components],
            "claims": [{"number": n, "supported_by": by, "relevant": n not in irrelevant} for n, by in claims],
            "follow_ups": [{"component": c, "question": question} for c, question in follow_ups or []],
        }
    )


def accepts(body: Mapping[str, Any]) -> str:
    """Reply as a claim judge that finds every claim supported by every passage, and nothing missing."""
    shown = shown_to_model(body)
    numbers = [passage["number"] for passage in shown["passages"]]
    claims = [claim["number"] for claim in shown["claims"]]
    return assessment([(shown["question"], "FULLY ANSWERED", claims)], [(claim, numbers) for claim in claims])


def well_behaved(**changes: Script) -> dict[str, Script]:
    """Return scripts of all roles that never go wrong; ``changes`` name roles with "_" for spaces."""
    scripts: dict[str, Script] = {
        **well_behaved_on_walks(),
        "predictor": predicts,
        "judge": judges,
        "final predictor": writes,
        "claim judge": checks,
    }
    return {**scripts, **{role.replace("_", " "): script for role, script in changes.items()}}


def in_turn(script: Script, *first: ReplyLike) -> Script:
    """Give these replies before what the script says."""
    turns: Iterator[int] = count()

    def reply(body: Mapping[str, Any]) -> ReplyLike:
        turn = next(turns)
        if turn < len(first):
            return first[turn]
        return script(body) if callable(script) else script[min(turn - len(first), len(script) - 1)]

    return reply


def malformed_once(script: Callable[[Mapping[str, Any]], ReplyLike], reply: ReplyLike) -> Script:
    """Give a reply to each request that comes without feedback, and then what the script says."""
    return lambda body: reply if len(body["messages"]) == 2 else script(body)


def judged_at(scores: Mapping[str, float]) -> Script:
    """Return a judge that gives each passage its score, by title."""

    def reply(body: Mapping[str, Any]) -> Reply:
        return Reply.spelt(("Yes", {"Yes": -1.0, "No": -1.0 - scores[shown_to_model(body)["title"]]}), (" 0.9", {}))

    return reply


def chat_requests(server: ScriptedServer) -> int:
    """Return how many requests were sent to the chat model, whatever came of them."""
    return sum(request.path == CHAT_PATH for request in server.requests)
