"""The tokens that a chat model reads and writes: for indexing, and for a question in workflows `mara` and `ragenta`.

    python -m benchmarks.chat_tokens [DATA/SET ...] [--questions 20] [--qwen FILE]

The sample, and each folder with `corpus.jsonl` and `questions.jsonl`, is indexed and asked about through the tests'
scripted server, which replies what the offline agents find, in a model's form. So what is read is what any model would
read; what is written is an estimate. Of a folder with `openie.jsonl` the extractor writes these triples, which a model
found. Every claim is supported, and no follow-up asked. Counted are the texts of messages and replies, and apart from
them the schemas (`response_format`), by OpenAI's tokeniser o200k, which the package rs-bpe has, or by Qwen's
vocabulary: the file `qwen.tiktoken` of the package dashscope.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.resources import as_file, files
from itertools import islice
from pathlib import Path
from typing import Any

from agents.answerer import OfflineAnswerer
from agents.judge import KEPT, OfflineJudge
from agents.manager import OfflineManager
from agents.offline.extractor import OfflineExtractor
from agents.predictor import NOTHING, OfflinePredictor
from agents.roles import NumberedPassage
from benchmarks.evaluation.sets import Row, rows_of
from graph.environment import set_variables
from graph.schema import Passage
from graph.taxonomy import type_triple
from tests.scripted_server import ScriptedServer, role_of
from workflows.answering import ask
from workflows.context import Context
from workflows.indexing import index_sources
from workflows.settings.indexing import IndexingContext
from workflows.settings.ragenta import RagentaContext

Count = Callable[[str], int]

QWEN_PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Qwen's tokeniser cuts a text before its vocabulary is applied."""


@dataclass(slots=True)
class Tally:
    """The tokens of some requests.

    Attributes:
        longest: of the longest one, with its schema and its reply.
    """

    requests: int = 0
    read: int = 0
    schemas: int = 0
    written: int = 0
    longest: int = 0


@dataclass(slots=True)
class Model:
    """A model that replies what the offline agents find, and counts.

    Attributes:
        extracted: replies of the extractor by text, where a model found their triples.
        tallies: by role.
    """

    count: Count
    extracted: Mapping[str, str] = field(default_factory=dict)
    tallies: dict[str, Tally] = field(default_factory=dict)

    def reply(self, body: Mapping[str, Any]) -> str:
        """Reply to a request."""
        role = role_of(body)
        texts = [str(message["content"]) for message in body["messages"]]
        material = json.loads(texts[1].splitlines()[2])
        said = self.extracted.get(material.get("text", "")) if role == "extractor" else None
        written = said or REPLIES[role](material)
        read = sum(map(self.count, texts))
        schema = self.count(json.dumps(body["response_format"])) if "response_format" in body else 0
        replied = self.count(written)
        tally = self.tallies.setdefault(role, Tally())
        tally.requests += 1
        tally.read += read
        tally.schemas += schema
        tally.written += replied
        tally.longest = max(tally.longest, read + schema + replied)
        return written


def _extraction(material: Row) -> str:
    found = OfflineExtractor().extract(Passage("p", material["title"], material["text"]))
    return extraction_reply(found.entities, ((each.subject, each.predicate, each.object) for each in found.triples))


def extraction_reply(entities: Iterable[str], triples: Iterable[Iterable[str]]) -> str:
    """Return triples in the form of the extractor's reply."""
    statements = [
        {
            "subject": subject,
            "predicate": predicate,
            "object": object_,
            "relation": type_triple(subject, predicate, object_)[0].value,
            "confidence": 0.9,
        }
        for subject, predicate, object_ in triples
    ]
    return json.dumps({"entities": list(entities), "triples": statements}, ensure_ascii=False)


def _weights(material: Row) -> str:
    weights = OfflineManager().weigh(material["question"])
    by_type = [
        {relation: round(share, 2) for relation, share in shares.items()}
        for shares in (weights.factors.entity_entity, weights.factors.entity_passage)
    ]
    given = {"entity_entity": by_type[0], "entity_passage": by_type[1], "passage_weight": weights.passage_weight}
    return json.dumps(given)


def _answer(material: Row) -> str:
    passages = [NumberedPassage(each["number"], "", each["title"], each["text"]) for each in material["passages"]]
    return OfflineAnswerer().answer(material["question"], passages).text


def _passage(material: Row) -> NumberedPassage:
    return NumberedPassage(1, "", material["title"], material["text"])


def _judgement(material: Row) -> str:
    judged = OfflineJudge().judge(material["question"], _passage(material), "")
    return "Yes 0.9" if judged.score == KEPT else "No 0.9"


def _assessment(material: Row) -> str:
    claims = [
        {"number": each["number"], "supported_by": each["cited"], "relevant": True} for each in material["claims"]
    ]
    coverage = "FULLY ANSWERED" if claims else "NOT ANSWERED"
    component = {"text": "", "coverage": coverage, "claims": [each["number"] for each in claims]}
    return json.dumps({"structure": "single", "components": [component], "claims": claims, "follow_ups": []})


REPLIES: Mapping[str, Callable[[Row], str]] = {
    "extractor": _extraction,
    "fact filter": lambda asked: json.dumps({"facts": [each[0] for each in asked["facts"]][: asked["max_facts"]]}),
    "manager": _weights,
    "answerer": _answer,
    "predictor": lambda asked: OfflinePredictor().predict(asked["question"], _passage(asked)) or NOTHING,
    "judge": _judgement,
    "final predictor": _answer,
    "claim judge": _assessment,
}


@dataclass(frozen=True, slots=True)
class Measured:
    """The tokens of one set.

    Attributes:
        tallies: by what was done and the agent's role.
        failed: passages that were not extracted, and replies that were refused.
    """

    name: str
    passages: int
    questions: int
    tallies: Mapping[str, Mapping[str, Tally]]
    failed: int


def measure(name: str, folder: Path, count: Count, n_questions: int) -> Measured:
    """Index a folder's corpus and ask its first questions that have gold passages, in both workflows."""
    triples = rows_of(folder / "openie.jsonl") if (folder / "openie.jsonl").exists() else ()
    texts = {row["id"]: row["text"] for row in rows_of(folder / "corpus.jsonl")}
    extracted = {texts[row["id"]]: extraction_reply(row["entities"], row["triples"]) for row in triples}
    questions = [row["question"] for row in rows_of(folder / "questions.jsonl") if row.get("gold_ids", True)]
    model = Model(count, extracted)
    with ScriptedServer(model.reply) as server, tempfile.TemporaryDirectory() as place:
        set_variables({"OPENAI_BASE_URL": server.base_url, "MARA_CHAT_MODEL": "scripted"})
        report = index_sources([folder / "corpus.jsonl"], Path(place), settings=IndexingContext())
        tallies = {"indexing": _taken(model)}
        failed = len(texts) - report.extracted
        for context in (Context(workspace=place), RagentaContext(workspace=place)):
            for question in islice(questions, n_questions):
                failed += sum(error["kind"] != "LeftOut" for error in ask(question, context)["errors"])
            tallies["ragenta" if isinstance(context, RagentaContext) else "mara"] = _taken(model)
    return Measured(name, report.passages, min(n_questions, len(questions)), tallies, failed)


def _taken(model: Model) -> dict[str, Tally]:
    """Return the tallies so far, and begin anew."""
    taken, model.tallies = model.tallies, {}
    return taken


def rows(measured: Measured) -> Iterator[str]:
    """Yield the rows of a set: of 1,000 passages, and of a question, in all and by agent."""
    for done, by_role in measured.tallies.items():
        per = measured.passages / 1000 if done == "indexing" else measured.questions
        for role, tally in {**by_role, "all": _sum(by_role.values())}.items():
            amounts = (tally.requests, tally.read, tally.schemas, tally.written)
            told = " | ".join(f"{amount / per:,.0f}" for amount in amounts)
            yield f"| {measured.name} | {done} | {role} | {told} | {tally.longest:,} |"


def _sum(tallies: Collection[Tally]) -> Tally:
    return Tally(
        sum(each.requests for each in tallies),
        sum(each.read for each in tallies),
        sum(each.schemas for each in tallies),
        sum(each.written for each in tallies),
        max(each.longest for each in tallies),
    )


def counter(qwen: Path | None) -> Count:
    """Return what counts the tokens of a text."""
    if qwen is None:
        tokeniser = import_module("rs_bpe.bpe").openai.o200k_base()
        return lambda text: int(tokeniser.count(text))
    from tiktoken import Encoding
    from tiktoken.load import load_tiktoken_bpe

    ranks = load_tiktoken_bpe(str(qwen))
    encoding = Encoding("qwen", pat_str=QWEN_PIECES, mergeable_ranks=ranks, special_tokens={})
    return lambda text: len(encoding.encode_ordinary(text))


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", metavar="DATA/SET", nargs="*", type=Path)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--qwen", type=Path, metavar="FILE", help="count by this vocabulary")
    options = parser.parse_args()
    count = counter(options.qwen)
    print("| set | what | agent | requests | read | schemas | written | longest |\n|---|---|---|--:|--:|--:|--:|--:|")
    told = []
    with as_file(files("workflows.sample")) as sample:
        for name, folder in [("sample", sample), *((each.name, each) for each in options.sets)]:
            done = measure(name, folder, count, options.questions)
            print("\n".join(rows(done)), flush=True)
            told.append(
                f"{name}: {done.passages} passages, {done.questions} questions, {done.failed} replies of no use"
            )
    print("\n" + "\n".join(told))


if __name__ == "__main__":
    main()
