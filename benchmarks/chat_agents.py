"""How often a chat model's first replies are of use: every agent, with and without grammar and log-probabilities.

    MARA_CHAT_MODEL=local python -m benchmarks.chat_agents [--requests 10] [--agent NAME ...] [--raw FILE.jsonl]

Any model of the environment: `local` needs none beside. The bundled questions and passages are asked about; what the
model reads is what the offline agents found, so that every model is asked the same. A reply is malformed where its
agent refuses it, by the reason that the agent gives. Nothing is asked twice. Seconds and tokens are medians.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import as_file, files
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from agents.answerer import ChatAnswerer, OfflineAnswerer
from agents.answers.claims import split_claims
from agents.answers.unlinked import Addresses
from agents.chat.model import MAX_REPLY_TOKENS, ChatModel, ChatReply
from agents.claim_judge import ChatClaimJudge
from agents.extractor import ChatExtractor
from agents.fact_filter import ChatFactFilter
from agents.final_predictor import ChatFinalPredictor
from agents.judge import ChatJudge
from agents.manager import ChatManager
from agents.predictor import ChatPredictor
from agents.roles import NumberedPassage
from graph.errors import MalformedReply, SlowReply
from graph.schema import Passage, ScoredFact
from workflows.admin.demo import sample_questions
from workflows.context import Context, Question
from workflows.indexing import index_sources
from workflows.retrieval import graph
from workflows.runtime.resources import OFFLINE, chat_model_of, open_workspace_index
from workflows.settings.indexing import IndexingContext
from workflows.states.conversion import facts_of, numbered

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

MAX_FACTS, MAX_FOLLOW_UPS = 4, 3
_NUMBER = re.compile(r"\d+(?:, \d+)*")


@dataclass(frozen=True, slots=True)
class Material:
    """The material of the agents: a question, and the passages that retrieval without a model found for it."""

    question: str
    facts: tuple[ScoredFact, ...]
    passages: tuple[NumberedPassage, ...]


@dataclass(frozen=True, slots=True)
class AgentRequests:
    """An agent, as it is asked once, and what may be left out of its requests.

    Attributes:
        ask: asks it about a piece of the material.
        grammar: whether its requests have a schema.
        logprobs: whether its requests ask for log-probabilities.
    """

    ask: Callable[[ChatModel, Material], object]
    grammar: bool = False
    logprobs: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one request.

    Attributes:
        reason: why the reply was refused; empty for one of use.
    """

    agent: str
    grammar: bool
    logprobs: bool
    reason: str
    seconds: float
    prompt_tokens: int
    reply_tokens: int
    raw: str


class ObservedModel(ChatModel):
    """A chat model that leaves out of every request what is not to be tried, and keeps the last reply."""

    def __init__(self, model: ChatModel, *, grammar: bool, logprobs: bool) -> None:
        super().__init__(model.name, model.temperature, address=None, api_key=SecretStr(""), timeout_s=1.0)
        self._model = model
        self._grammar = grammar
        self._logprobs = logprobs
        self.last: ChatReply | None = None

    @property
    def context_tokens(self) -> int | None:
        """The window of the model itself."""
        return self._model.context_tokens

    def ask(
        self,
        messages: Sequence[BaseMessage],
        response_format: dict[str, Any] | None = None,
        *,
        top_logprobs: int = 0,
        max_tokens: int = MAX_REPLY_TOKENS,
        addresses: Addresses | None = None,
    ) -> ChatReply:
        """Return the model's reply, and keep it."""
        self.last = None
        self.last = self._model.ask(
            messages,
            response_format if self._grammar else None,
            top_logprobs=top_logprobs if self._logprobs else 0,
            max_tokens=max_tokens,
            addresses=addresses,
        )
        return self.last


def _assess(model: ChatModel, material: Material) -> object:
    claims = split_claims(OfflineAnswerer().answer(material.question, material.passages[:5]).text)
    return ChatClaimJudge(model).assess(material.question, claims, material.passages[:5], MAX_FOLLOW_UPS)


def _extract(model: ChatModel, material: Material) -> object:
    best = material.passages[0]
    return ChatExtractor(model).extract(Passage(best.id, best.title, best.text))


AGENTS: Mapping[str, AgentRequests] = {
    "fact filter": AgentRequests(lambda m, x: ChatFactFilter(m).choose(x.question, x.facts, MAX_FACTS), grammar=True),
    "manager": AgentRequests(lambda m, x: ChatManager(m).weigh(x.question), grammar=True),
    "answerer": AgentRequests(lambda m, x: ChatAnswerer(m).answer(x.question, x.passages[:5])),
    "predictor": AgentRequests(lambda m, x: ChatPredictor(m).predict(x.question, x.passages[0])),
    "judge": AgentRequests(lambda m, x: ChatJudge(m).judge(x.question, x.passages[0], ""), logprobs=True),
    "final predictor": AgentRequests(lambda m, x: ChatFinalPredictor(m).answer(x.question, x.passages[:5])),
    "claim judge": AgentRequests(_assess, grammar=True),
    "extractor": AgentRequests(_extract, grammar=True),
}


def read_material(workspace: Path) -> Iterator[Material]:
    """Yield the sample's questions with the facts and passages that the offline agents find."""
    context = Context(workspace=str(workspace), model=OFFLINE)
    index = open_workspace_index(context)
    for each in sample_questions():
        found = graph.invoke(Question(question=each["question"]), context=context)
        facts = tuple(ScoredFact(fact.fact, score) for fact, score in facts_of(found["facts"], index, None))
        yield Material(each["question"], facts, tuple(numbered(found["passages"])))


def try_agent(name: str, model: ChatModel, materials: Iterable[Material]) -> Iterator[Outcome]:
    """Yield what comes of every request, with all that its agent asks for, and without."""
    agent = AGENTS[name]
    materials = list(materials)
    for grammar in (True, False) if agent.grammar else (False,):
        for logprobs in (True, False) if agent.logprobs else (False,):
            observed = ObservedModel(model, grammar=grammar, logprobs=logprobs)
            for material in materials:
                outcome = Outcome(name, grammar, logprobs, "", 0, 0, 0, "")
                yield _asked(agent, observed, material, outcome)


def _asked(agent: AgentRequests, model: ObservedModel, material: Material, outcome: Outcome) -> Outcome:
    start = time.perf_counter()
    reason = ""
    try:
        agent.ask(model, material)
    except MalformedReply as refused:
        reason = refused.reason
    except SlowReply as slow:
        reason = slow.message
    seconds = time.perf_counter() - start
    if model.last is None:
        return replace(outcome, reason=reason, seconds=seconds)
    usage = model.last.usage
    return replace(
        outcome,
        reason=reason,
        seconds=seconds,
        prompt_tokens=usage.prompt_tokens,
        reply_tokens=usage.completion_tokens,
        raw=model.last.raw,
    )


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10, help="of each agent and row, at most 20")
    parser.add_argument("--agent", action="append", choices=list(AGENTS), help="only this agent; may be repeated")
    parser.add_argument("--raw", type=Path, help="write every reply to this file, as JSON lines")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "sample"
        with as_file(files("workflows.sample").joinpath("corpus.jsonl")) as corpus:
            index_sources([corpus], workspace, settings=IndexingContext(model=OFFLINE))
        materials = list(islice(read_material(workspace), options.requests))
        context = Context(workspace=str(workspace))
        model, warmer = (chat_model_of(context, each) for each in (context.temperature, context.manager_temperature))
        if model is None or warmer is None:
            sys.exit("No chat model is configured: set MARA_CHAT_MODEL=local, or OPENAI_BASE_URL")
        print(f"Model: {model.name}; load {os.getloadavg()[0]:.1f} at the start")
        print("| agent | grammar | log-probabilities | requests | valid | malformed | s | prompt | reply | tokens/s |")
        print("| --- | --- | --- | --: | --: | --- | --: | --: | --: | --: |", flush=True)
        with open(options.raw or os.devnull, "w", encoding="utf-8") as raw:
            for name in options.agent or AGENTS:
                outcomes = []
                for outcome in try_agent(name, warmer if name == "manager" else model, materials):
                    raw.write(json.dumps(asdict(outcome), ensure_ascii=False) + "\n")
                    outcomes.append(outcome)
                for row in rows(outcomes):
                    print(row, flush=True)


def rows(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield a row of the table for each way in which an agent was asked."""
    ways = dict.fromkeys((each.agent, each.grammar, each.logprobs) for each in outcomes)
    for agent, grammar, logprobs in ways:
        asked = [each for each in outcomes if (each.agent, each.grammar, each.logprobs) == (agent, grammar, logprobs)]
        refused = Counter(_kind(each.reason) for each in asked if each.reason)
        told = "; ".join(f"{count} {reason}" for reason, count in refused.most_common())
        medians = [median(getattr(each, name) for each in asked) for name in ("prompt_tokens", "reply_tokens")]
        seconds = median(each.seconds for each in asked)
        written = sum(each.reply_tokens for each in asked) / sum(each.seconds for each in asked)
        can = AGENTS[agent]
        cells = [
            agent,
            ("yes" if grammar else "no") if can.grammar else "",
            ("yes" if logprobs else "no") if can.logprobs else "",
            str(len(asked)),
            str(len(asked) - refused.total()),
            told,
            f"{seconds:.1f}",
            *(f"{value:,.0f}" for value in medians),
            f"{written:.0f}",
        ]
        yield f"| {' | '.join(cells)} |"


def _kind(reason: str) -> str:
    """The common part of reasons of one kind."""
    return _NUMBER.sub("n", reason.partition(":")[0])


if __name__ == "__main__":
    main()
