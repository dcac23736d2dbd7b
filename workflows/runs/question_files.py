"""Question files: our JSON lines, and the shapes of HotpotQA, 2WikiMultihopQA, MuSiQue and HippoRAG."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from graph.errors import BadInput
from graph.schema import Passage, stable_id
from graph.sources.loaders.corpus import json_rows
from graph.sources.loaders.fields import TEXT_KEYS
from graph.sources.loaders.files import MAX_TEXT_BYTES, parse_json, read_text, readable_path
from graph.text import is_unicode
from workflows.context import check_question

_ID_KEYS = ("id", "_id", "qid", "question_id")
_ANSWER_KEYS = (
    *("answers", "answer", "reference", "gold_ans", "obj"),
    *("answer_aliases", "possible_answers", "o_wiki_title", "o_aliases"),
)
_MOST_HOPS = 99
_HOPS = re.compile(r"([1-9])hop[0-9]?(?![^\W_])")
_TYPE_IN_ID = re.compile(r"([1-9]hop[0-9]?)__")


@dataclass(frozen=True, slots=True)
class Gold:
    """A gold passage as a question file names it: by id, or by title and text, or by title alone; empty is unknown."""

    id: str = ""
    title: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question with the answers and passages that it is measured by.

    Attributes:
        id: as the file gives it, else a hash of the question's text.
        question: what is asked.
        answers: each is right; empty where the file tells none.
        gold: the passages that hold the answer, as the file names them; empty where it tells none.
        type: what kind of question it is, in the file's word; empty where it tells none.
        hops: how many passages it takes, from 1 to 99; None where the file does not tell.
    """

    id: str
    question: str
    answers: tuple[str, ...] = ()
    gold: tuple[Gold, ...] = ()
    type: str = ""
    hops: int | None = None


def read_questions(path: Path, *, gold: bool = True) -> list[AskedQuestion]:
    """Read a question file: ``.jsonl``, one object a line, or ``.json``, a list of objects.

    Answers stand under ``answers``, ``answer``, ``reference``, ``gold_ans`` or PopQA's ``obj``, beside aliases; for
    gold see `read_gold`. ``hops`` is the field of that name, the length of MuSiQue's ``question_decomposition``, what
    an id or type such as ``3hop1`` says, or how many gold passages are marked where that is 2 or more.

    Raises:
        BadInput: the file cannot be read, holds no question, an entry is malformed, or two have one id; the message
            names file and line.
    """
    questions: list[AskedQuestion] = []
    places: dict[str, str] = {}
    for where, entry in _entries(path):
        question = _question(entry, where, with_gold=gold)
        if question.id in places:
            raise BadInput(
                f"{where}: its id {question.id!r} is that of {places[question.id]} too",
                "Give each question an id of its own; without ids, each question once",
            )
        places[question.id] = where
        questions.append(question)
    if not questions:
        raise BadInput(f"{readable_path(path)} holds no question", "Give objects of {question, ...}")
    return questions


def draw(questions: Sequence[AskedQuestion], limit: int | None, seed: int) -> list[AskedQuestion]:
    """Return a sample of that many questions in their order, the same on every machine; None for all.

    A sample of one seed holds every smaller one of that seed.

    Raises:
        BadInput: the limit is under 1.
    """
    if limit is None:
        return list(questions)
    if limit < 1:
        raise BadInput(f"The limit is {limit}", "Ask 1 question or more")
    drawn = sorted(questions, key=lambda each: stable_id("draw", str(seed), each.id))[:limit]
    chosen = {question.id for question in drawn}
    return [question for question in questions if question.id in chosen]


def _entries(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield (file and place, value) of each entry."""
    suffix = path.suffix.lower()
    if suffix == ".jsonl":
        return json_rows(path)
    where = readable_path(path)
    if suffix != ".json":
        raise BadInput(
            f"{where} is no question file", "Give .jsonl, one question a line, or .json, a list of questions"
        )
    text = read_text(path, MAX_TEXT_BYTES)
    hint = "Correct the file; JSON lines need the suffix .jsonl"
    value = parse_json(text, where, hint) if text.strip() else []
    if isinstance(value, Mapping) and "question" in value:
        value = [value]
    if not isinstance(value, list):
        raise BadInput(f"{where} is no list of questions", "Give a list of {question, answers, ...}")
    return ((f"{where}, entry {number}", entry) for number, entry in enumerate(value, start=1))


def _question(entry: Any, where: str, *, with_gold: bool) -> AskedQuestion:
    """Return an entry's question; without gold, whatever else the entry holds is passed over."""
    if not isinstance(entry, Mapping):
        hint = "A file of one list needs the suffix .json" if isinstance(entry, list) else "Correct or remove it"
        raise BadInput(f"{where}: not an object with a question", hint)
    text, key = _text(entry, where), _id(entry, where)
    asked = AskedQuestion(key or stable_id("question", text), text)
    words = [key]
    if with_gold:
        gold, marked = read_gold(entry, where)
        answers, kind = _answers(entry, where), _type(entry, key, where)
        words += [kind, *answers, *(part for each in gold for part in (each.id, each.title, each.text))]
        hops = _hops(entry, key, kind, len(gold) if marked else 0, where)
        asked = replace(asked, answers=answers, gold=gold, type=kind, hops=hops)
    if not is_unicode("".join(words)):
        raise BadInput(f"{where}: holds broken Unicode", "Correct the text's escapes")
    return asked


def _text(entry: Mapping[str, Any], where: str) -> str:
    text = entry.get("question")
    if not isinstance(text, str):
        raise BadInput(f"{where}: no question", "Give its text under 'question'")
    try:
        return check_question(text)
    except BadInput as fault:
        raise BadInput(f"{where}: {fault.message[:1].lower()}{fault.message[1:]}", "Correct or remove it") from fault


def _id(entry: Mapping[str, Any], where: str) -> str:
    """Return the id, empty where the entry has none."""
    value = next((entry[key] for key in _ID_KEYS if entry.get(key) is not None), None)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise BadInput(f"{where}: its id is no text", "Give it an id, or none at all")
    return str(value)


def _answers(entry: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Return the right answers, each once; null and an empty text where one answer stands say that there is none."""
    answers: dict[str, None] = {}
    for key in _ANSWER_KEYS:
        value = entry.get(key)
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        listed = value if isinstance(value, list) else [value]
        texts = [str(each) if type(each) in (int, float) and math.isfinite(each) else each for each in listed]
        if not all(isinstance(answer, str) and answer.strip() for answer in texts):
            raise BadInput(
                f"{where}: {key!r} is no answer",
                "Give a text, a number or a list of them; leave out what is not known",
            )
        answers.update(dict.fromkeys(texts))
    return tuple(answers)


def _type(entry: Mapping[str, Any], key: str, where: str) -> str:
    value = entry.get("type")
    if value is None:
        named = _TYPE_IN_ID.match(key)
        return named[1] if named else ""
    if not isinstance(value, str):
        raise BadInput(f"{where}: its type is no text", "Give a word, or none at all")
    return value


def _hops(entry: Mapping[str, Any], key: str, kind: str, marked: int, where: str) -> int | None:
    value = entry.get("hops")
    if value is not None:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_HOPS:
            raise BadInput(f"{where}: 'hops' is no number from 1 to {_MOST_HOPS}", "Correct it, or leave it out")
        return value
    steps = entry.get("question_decomposition")
    if isinstance(steps, list) and steps:
        return min(len(steps), _MOST_HOPS)
    named = _HOPS.match(kind) or _HOPS.match(key)
    if named:
        return int(named[1])
    return min(marked, _MOST_HOPS) if marked >= 2 else None


def read_gold(entry: Mapping[str, Any], where: str) -> tuple[tuple[Gold, ...], bool]:
    """Return the gold passages of a question file's entry, each once, and whether the file marks them as gold.

    The first of these that the entry has: ``gold_ids``; ``supporting_facts``, a list of [title, sentence] or two
    columns, with the text that ``context`` has under those titles; ``paragraphs`` or ``contexts``, a list of {title,
    text, is_supporting}; ``context``, a list of [title, [sentences]] or two columns. Where an entry brings passages
    and marks none of them, all are gold.

    Raises:
        BadInput: one is malformed; the message begins with ``where``.
    """
    if entry.get("gold_ids") is not None:
        return _once(Gold(id=key) for key in _gold_ids(entry["gold_ids"], where)), True
    facts = entry.get("supporting_facts")
    if facts is not None:
        titles = dict.fromkeys(title for title, _ in _pairs(facts, "title", "sent_id", f"{where}, supporting_facts"))
        return _once(_of_titles(list(titles), _context(entry.get("context"), where))), True
    for key in ("paragraphs", "contexts"):
        if entry.get(key) is not None:
            return _supporting(entry[key], f"{where}, {key}")
    return _once(_context(entry.get("context"), where)), False


def _once(gold: Iterable[Gold]) -> tuple[Gold, ...]:
    return tuple(dict.fromkeys(gold))


def _gold_ids(value: Any, where: str) -> list[str]:
    if not isinstance(value, list):
        raise BadInput(f"{where}: 'gold_ids' is no list", "Give a list of passage ids")
    for key in value:
        if isinstance(key, bool) or not isinstance(key, str | int) or not str(key).strip():
            raise BadInput(f"{where}: a gold id is no text", "Give a list of passage ids")
    return [str(key) for key in value]


def _of_titles(titles: list[str], context: list[Gold]) -> Iterable[Gold]:
    """Yield the context's passages of each title, and a title that the context lacks alone."""
    for title in titles:
        yield from [gold for gold in context if gold.title == title] or [Gold(title=title)]


def _context(value: Any, where: str) -> list[Gold]:
    if value is None:
        return []
    if isinstance(value, str):
        return [Gold(text=value)] if value.strip() else []
    pairs = _pairs(value, "title", "sentences", f"{where}, context")
    return [Gold(title=title, text=_joined(body, f"{where}, context")) for title, body in pairs]


def _pairs(value: Any, first: str, second: str, where: str) -> list[tuple[str, Any]]:
    """Return pairs that stand in a list, or in two columns. Raises BadInput where they are none."""
    if isinstance(value, Mapping):
        firsts, seconds = value.get(first), value.get(second)
        if isinstance(firsts, list) and isinstance(seconds, list) and len(firsts) == len(seconds):
            value = [[left, right] for left, right in zip(firsts, seconds, strict=True)]
    if not isinstance(value, list):
        raise BadInput(f"{where}: malformed", f"Give a list of [{first}, {second}], or two columns")
    for number, pair in enumerate(value, start=1):
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and pair[0].strip()):
            raise BadInput(f"{where} {number}: malformed", f"Give [{first}, {second}]")
    return [(left, right) for left, right in value]


def _joined(body: Any, where: str) -> str:
    if isinstance(body, str):
        return body
    if not isinstance(body, list) or not all(isinstance(sentence, str) for sentence in body):
        raise BadInput(f"{where}: its sentences are no texts", "Give [title, [sentences]]")
    return " ".join(body)


def _supporting(value: Any, where: str) -> tuple[tuple[Gold, ...], bool]:
    """Return the paragraphs that are marked as supporting, or all where none carries a mark, and whether one does."""
    if not isinstance(value, list):
        raise BadInput(f"{where}: no list", "Give a list of {title, text, is_supporting}")
    paragraphs = [_paragraph(item, f"{where} {number}") for number, item in enumerate(value, start=1)]
    marked = any(mark is not None for _, mark in paragraphs)
    return _once(gold for gold, mark in paragraphs if mark or not marked), marked


def _paragraph(item: Any, where: str) -> tuple[Gold, bool | None]:
    """Return the passage and its mark, None where it carries none."""
    fields = item if isinstance(item, Mapping) else {}
    title, mark = fields.get("title"), fields.get("is_supporting")
    title = "" if title is None else title
    text = next((fields[key] for key in TEXT_KEYS if isinstance(fields.get(key), str)), "")
    if not isinstance(title, str) or not (title.strip() or text.strip()) or not isinstance(mark, bool | None):
        raise BadInput(f"{where}: malformed", "Give {title, text, is_supporting}, the last true or false")
    return Gold(title=title, text=text), mark


@dataclass(frozen=True, slots=True)
class ResolvedGold:
    """The gold of one question in a workspace.

    Attributes:
        ids: each once, in the order of the file; those that the workspace lacks included.
        unresolved: how many of the file's gold passages the workspace lacks, or cannot tell from others.
    """

    ids: tuple[str, ...]
    unresolved: int


class GoldLookup:
    """Finds the gold passages of questions among those of a workspace.

    A title is compared without regard to case and white space, a text likewise, so that it does not matter how the
    sentences of one were joined.

    Args:
        passages: of the workspace; read again at the first question that names gold by title or text.
    """

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._passages = passages
        self._ids = frozenset(passage.id for passage in passages)

    def resolve(self, question: AskedQuestion) -> ResolvedGold:
        """Return the ids of a question's gold passages.

        A passage that the workspace lacks is gold all the same, and not found: under the id that the file names, or
        under one made of title and text that no passage has. Gold without id is the passages of the same title and text
        (a gold without title: of the same text), else the one passage of that title, else those of that title that hold
        the text or are a part of it, as the chunks of a longer document are.
        """
        ids: dict[str, None] = {}
        unresolved = 0
        for each in question.gold:
            known = [each.id] if each.id in self._ids else [] if each.id else self._named(each)
            unresolved += not known
            ids.update(dict.fromkeys(known or [each.id or stable_id("missing", each.title, each.text)]))
        return ResolvedGold(tuple(ids), unresolved)

    def _named(self, gold: Gold) -> list[str]:
        title, text = _squeezed(gold.title), _squeezed(gold.text)
        if text:
            same = self._by_text.get(stable_id("text", text), [])
            exact = [key for key, key_title in same if not title or key_title == title]
            if exact:
                return exact
        titled = self._by_title.get(title, []) if title else []
        if len(titled) == 1:
            return [titled[0].id]
        if not text:
            return []
        squeezed = ((passage.id, _squeezed(passage.text)) for passage in titled)
        return [key for key, own in squeezed if own and (own in text or text in own)]

    @cached_property
    def _by_title(self) -> Mapping[str, list[Passage]]:
        titled = defaultdict(list)
        for passage in self._passages:
            titled[_squeezed(passage.title)].append(passage)
        return dict(titled)

    @cached_property
    def _by_text(self) -> Mapping[str, list[tuple[str, str]]]:
        """The (id, title) of the passages of each text, by a hash of it."""
        written = defaultdict(list)
        for title, passages in self._by_title.items():
            for passage in passages:
                written[stable_id("text", _squeezed(passage.text))].append((passage.id, title))
        return dict(written)


def _squeezed(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())
