"""Every parser of replies, passages and questions, each as a function of one text; and what texts are made of."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pydantic import SecretStr

from agents.answerer import ChatAnswerer, OfflineAnswerer
from agents.answers.citations import parse_citations, quotable, strip_citations, without_marks
from agents.answers.claims import citing_sentences, join_claims, plain_text, split_claims, strip_marks
from agents.chat.material import quoted
from agents.chat.model import ChatModel, ChatReply
from agents.chat.replies import ThinkFilter, TokenLogprobs, parse_object, without_thinking
from agents.chat.usage import Usage
from agents.claim_judge import ChatClaimJudge, claims_of, is_supported
from agents.extractor import ChatExtractor
from agents.fact_filter import ChatFactFilter, FactFilterReply
from agents.final_predictor import ChatFinalPredictor, Draft
from agents.judge import ChatJudge
from agents.manager import ChatManager, OfflineManager
from agents.offline.comparison import Side, compare
from agents.offline.entities import scan_entities, title_names
from agents.offline.evidence import best_sentence, find_evidence
from agents.offline.extractor import OfflineExtractor
from agents.offline.questions import AnswerKind, answer_kind, holds_kind, parse_question, split_question
from agents.offline.words import days_in, language_of, word_spans
from agents.predictor import ChatPredictor
from agents.roles import NumberedPassage
from graph.construction.bm25 import terms
from graph.construction.shards import ShardReader
from graph.corrections.apply import Stated
from graph.metadata_filter import parse_where
from graph.own_types import own_types_of
from graph.schema import Fact, Passage, RelationType, ScoredFact
from graph.sentences import sentence_spans
from graph.sources.loaders.document import Document, sane_title
from graph.sources.loaders.html import decode_page, normalised_address, parse_html
from graph.sources.loaders.markdown import parse_markdown
from graph.sources.splitting import estimate_tokens, split_document
from graph.storage.entry import Entry
from graph.taxonomy import question_cues, type_triple
from graph.text import NameMatcher, date_spans, is_date, normalise_name, title_name, token_spans, tokens, year_in

Parser = Callable[[str], object]

TEXT = "The Danish geologist Anna Berg was born in Moor in 1933. She died in Graz."
SHOWN = (NumberedPassage(1, "p", "Anna Berg", TEXT),)
FACTS = (ScoredFact(Fact("Anna Berg", "born in", "Moor", RelationType.SPATIAL), 1.0),)
QUESTION = "In which year was the geologist of Moor born?"
MATCHER = NameMatcher.of([("Anna Berg", 0), ("Anna Berg Moor Anna", 1), ("a a a", 2), ("Moor", 3)])

# What the patterns and scans of the parsers know, and what they do not.
FRAGMENTS: tuple[str, ...] = (
    *" \n\t\r\u0085\u2028\u00a0aAzé1,.;:!?()[]{}<>\"'`*_#-–—|/\\&%$=+~^@…。、，’‘“”„«»「」中",
    *"カー・あ한ไاאди́\u00ad\u200b\u200f\ufeff٢½",
    *("II", "Bob", "Bob, ", "Anna Berg", "Bob ", "a ", "<think>", "</think>", "<thi", "```", "```a\n"),
    *("\n```\n", "```json\n", '{"a": ', '"a": 1, ', '\\"', "\\u0041", "[1]", "[1", "[1, ", "[1-", " [1]"),
    *("([1]", "【1】", "[1][1]", "[unsupported]", " [unsupported]", "[unsup", "1 ", "NOT IN THE PASSAGES"),
    *("NOT IN THE PASSAGE\n", "yes ", "Yes 0.9", "- ", "* ", "> ", "# ", "1. ", "12. May ", "**", ". ", "? "),
    *(".\n", "\n\n", "\n \n", "Mr. ", "St.", "e.g. ", "A.", "A. ", "U.S.", "al. ", '!"', "。」", "’s ", "'s "),
    *("of ", "of the ", "and ", " and ", "the ", "is ", "was born ", "in ", "who ", "which ", "which year "),
    *("how many ", "name the ", "tell me ", "the name of ", "do you know ", "her ", "it ", "? and who "),
    *(", and when ", "as a ", "by ", "May ", "5 May 1990", "1990", "1990-", "1990–91", "3rd ", "19th century"),
    *(" BC", "1990年", "5 km", "1,000", "$5", "3.5", "(born ", "(1990", "(a) ", " (", "Bob (", " | ", "---\n"),
    *("title: ", "  - a\n", "<p>", "</p>", "<table><tr><td>", "<main", "<a href='x'>", "<br>", "&amp;", "&#"),
    *("<!--", "<pre>", "<h1>", "role=", "http://a/", "../", "?a=", "%41", "a=1 "),
)


class Saying(ChatModel):
    """A chat model that says one text, whatever it is asked."""

    def __init__(self, text: str) -> None:
        super().__init__("saying", 0.0, address=None, api_key=SecretStr("none"), timeout_s=1.0)
        self._text = text

    def _reply(self, *about: Any, **more: Any) -> ChatReply:
        tokens = [TokenLogprobs(self._text[at : at + 3], ()) for at in range(0, len(self._text), 3)]
        return ChatReply(self._text, False, Usage(1), tuple(tokens))


def _streamed(text: str) -> list[str]:
    spoken = ThinkFilter()
    return [spoken.feed(text[start : start + 4]) for start in range(0, len(text), 4)]


def _rewritten(text: str) -> str:
    claims = split_claims(text)
    marked = join_claims(text, claims, mark=range(0, len(claims), 2))
    return join_claims(marked, split_claims(marked), remove=range(1, len(claims), 2))


def _evidence(text: str) -> object:
    passage = Passage("p", "Anna Berg", text)
    entry = Entry(passage, OfflineExtractor().extract(passage), 1, np.zeros(4, dtype=np.float32))
    stated = Stated.of(passage, entry.extraction)
    reader = ShardReader()
    reader.read(entry, stated)
    with TemporaryDirectory() as folder:
        reader.save(Path(folder), 4)
    return reader


def _extracted_reply(text: str) -> object:
    triple = {"subject": text, "predicate": text, "object": "Bob"}
    reply = json.dumps({"entities": [text, "Bob"], "triples": [triple]})
    return ChatExtractor(Saying(reply)).extract(Passage("p", "Moor", TEXT))


OWN = own_types_of(
    {
        "relations": {"SUPPLIES": {"cues": ["suppl*", "deliver* to", "was born* in", "of the"]}},
        "entities": {"Code": {"cues": ["geolog*"], "shapes": ["@@-###", "* AG", "MV *-*"]}},
    }
)
REPLIES: dict[str, Parser] = {
    "thinking": without_thinking,
    "object": lambda text: parse_object(text, FactFilterReply),
    "string in an object": lambda text: parse_object(json.dumps({"facts": [text]}), FactFilterReply),
    "answerer": lambda text: ChatAnswerer(Saying(text)).answer(QUESTION, SHOWN),
    "final predictor": lambda text: ChatFinalPredictor(Saying(f"It [1] {text}")).answer(
        QUESTION, SHOWN, Draft(f"{text} [1]", (1,), ())
    ),
    "predictor": lambda text: ChatPredictor(Saying(text)).predict(QUESTION, SHOWN[0]),
    "judge": lambda text: ChatJudge(Saying(text)).judge(QUESTION, SHOWN[0], text),
    "manager": lambda text: ChatManager(Saying(text)).weigh(QUESTION),
    "claim judge": lambda text: ChatClaimJudge(Saying(text)).assess(QUESTION, split_claims(TEXT), SHOWN, 2),
    "fact filter": lambda text: ChatFactFilter(Saying(text)).choose(QUESTION, FACTS, 3),
    "extractor": lambda text: ChatExtractor(Saying(text)).extract(Passage("p", "Moor", TEXT)),
    "names in an extraction": _extracted_reply,
    "stream": _streamed,
    "citations": lambda text: parse_citations(text, range(9)),
    "no citations": strip_citations,
    "quote": quotable,
    "no marks": without_marks,
    "claims": split_claims,
    "claims of a text": lambda text: claims_of(text, (1,)),
    "claims rewritten": _rewritten,
    "no marks behind claims": strip_marks,
    "plain text": plain_text,
    "citing sentence": citing_sentences,
    "fed back": lambda text: quoted("reply", text),
}
PASSAGES: dict[str, Parser] = {
    "name": normalise_name,
    "name of a title": title_name,
    "places of tokens": token_spans,
    "sentences": sentence_spans,
    "terms": terms,
    "date": is_date,
    "dates": date_spans,
    "year": year_in,
    "entities": scan_entities,
    "extractor": lambda text: OfflineExtractor().extract(Passage("p", "Anna Berg", text)),
    "extractor of own types": lambda text: OfflineExtractor(OWN).extract(Passage("p", "Anna Berg", text)),
    "own type of a predicate": OWN.relation_of,
    "names of a title": title_names,
    "type of a triple": lambda text: type_triple(text, text, text),
    "evidence": _evidence,
    "known names": lambda text: MATCHER.find(tokens(text)),
    "support": lambda text: is_supported("Anna Berg was born in Moor in 1933.", text),
    "evidence for a question": lambda text: find_evidence(QUESTION, [NumberedPassage(1, "p", "Moor", text)], None),
    "days": days_in,
    "words and codes": word_spans,
    "kinds held": lambda text: [holds_kind(text, kind, frozenset()) for kind in AnswerKind],
    "compared": lambda text: compare("Which is older?", [Side("Moor", text), Side("Graz", text[::-1])]),
    "quotes": lambda text: OfflineAnswerer().answer(QUESTION, [NumberedPassage(1, "p", "Moor", text)]),
    "chunks": lambda text: split_document(Document("Moor", TEXT * 40 + text, "moor.txt")),
    "length in tokens": estimate_tokens,
    "property": sane_title,
    "Markdown": lambda text: parse_markdown(text, "moor.md"),
    "front matter": lambda text: parse_markdown(f"---\n{text}\n---\nMoor", "moor.md"),
    "web page": lambda text: parse_html(text, "moor.html", "moor.html"),
    "comment of a web page": lambda text: parse_html(f"<!-- {text} --><p>Moor", "moor.html", "moor.html"),
    "encoding of a web page": lambda text: decode_page(text.encode(), "moor.html"),
    "address": lambda text: normalised_address(text, "http://moor/"),
}
QUESTIONS: dict[str, Parser] = {
    "parts": split_question,
    "kind of answer": answer_kind,
    "question": parse_question,
    "choice": lambda text: parse_question(f"Which is older, {text} or Moor?"),
    "question of a passage": lambda text: best_sentence(text, SHOWN[0]),
    "language": language_of,
    "relations": question_cues,
    "condition": lambda text: parse_where([text]),
    "manager": lambda text: OfflineManager().weigh(text),
    "manager of own types": lambda text: OfflineManager(OWN).weigh(text),
}
