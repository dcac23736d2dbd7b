"""Question files: our JSON lines, and the shapes of HotpotQA, 2WikiMultihopQA, MuSiQue and HippoRAG."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from graph.errors import BadInput
from graph.schema import Passage, stable_id
from graph.sources.loaders.corpus import json_rows
from graph.sources.loaders.fields import TEXT_KEYS
from graph.sources.loaders.files import MAX_TEXT_BYTES, parse_json, read_text, readable_path
from graph.text import is_unicode
from workflows.context import check_question

_ANSWER_KEYS = (
    *("answers", "answer", "reference", "gold_ans", "obj"),
    *("answer_aliases", "possible_answers", "o_wiki_title", "o_aliases"),
)
_HOPS = re.compile(r"([1-9])hop[0-9]?(?![^\W_])")
_TYPE_IN_ID = re.compile(r"([1-9]hop[0-9]?)__")


class _Entry(BaseModel):
    """An entry without gold, as it is read."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    question: Annotated[str, AfterValidator(check_question)]
    id: str | None = Field(None, validation_alias=AliasChoices("id", "_id", "qid", "question_id"))


class _Paragraph(BaseModel):
    title: str | None = None
    text: str = Field("", validation_alias=AliasChoices(*TEXT_KEYS))
    is_supporting: bool | None = None


class _GoldEntry(_Entry):
    """The same with answers and gold passages; null is as good as nothing."""

    type: str | None = None
    hops: int | None = Field(None, ge=1, le=99)
    gold_ids: list[str] | None = None
    supporting_facts: list[tuple[str, Any]] | None = None
    context: list[tuple[str, str | list[str]]] | None = None
    paragraphs: list[_Paragraph] | None = Field(None, validation_alias=AliasChoices("paragraphs", "contexts"))


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

    Answers stand under ``answers``, ``answer``, ``reference``, ``gold_ans`` or PopQA's ``obj``, beside aliases.
    ``hops`` is the field of that name, what an id or type such as ``3hop1`` says, or how many gold passages are marked
    where that is 2 or more.

    Args:
        path: the file.
        gold: whether answers and gold passages are read, too.

    Raises:
        BadInput: the file cannot be read, holds no question, an entry is malformed, or two have one id; the message
            names file and line.
    """
    questions: list[AskedQuestion] = []
    places: dict[str, str] = {}
    for where, entry in _entries(path):
        question = _question(entry, where, _GoldEntry if gold else _Entry)
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
    entries = value if isinstance(value, list) else [value]
    return ((f"{where}, entry {number}", entry) for number, entry in enumerate(entries, start=1))


def _question(entry: Any, where: str, shape: type[_Entry]) -> AskedQuestion:
    """Return an entry's question; without gold, whatever else the entry holds is passed over."""
    if not is_unicode(json.dumps(entry, ensure_ascii=False)):
        raise BadInput(f"{where}: holds broken Unicode", "Correct the text's escapes")
    try:
        read = shape.model_validate(entry)
    except ValidationError as fault:
        first = fault.errors()[0]
        place = "".join(f"{part}: " for part in first["loc"])
        raise BadInput(f"{where}: {place}{first['msg']}", "Correct or remove it") from fault
    key = read.id or ""
    asked = key or stable_id("question", read.question)
    if not isinstance(read, _GoldEntry):
        return AskedQuestion(asked, read.question)
    gold, marked = _gold(read)
    named = _TYPE_IN_ID.match(key)
    kind = read.type if read.type is not None else named[1] if named else ""
    answers = [entry[name] for name in _ANSWER_KEYS if entry.get(name) is not None]
    texts = [str(text) for each in answers for text in (each if isinstance(each, list) else [each])]
    right = tuple(dict.fromkeys(text for text in texts if text.strip()))
    return AskedQuestion(asked, read.question, right, gold, kind, read.hops or _hops(key, kind, len(gold) * marked))


def _hops(key: str, kind: str, marked: int) -> int | None:
    named = _HOPS.match(kind) or _HOPS.match(key)
    if named:
        return int(named[1])
    return marked if marked >= 2 else None


def _gold(entry: _GoldEntry) -> tuple[tuple[Gold, ...], bool]:
    """Return the gold passages of an entry, each once, and whether it marks them as gold.

    The first of these that the entry has: ``gold_ids``; ``supporting_facts``, a list of [title, sentence], with the
    text that ``context`` has under those titles; ``paragraphs`` or ``contexts``, a list of {title, text,
    is_supporting}; ``context``, a list of [title, [sentences]]. Where an entry brings passages and marks none of them,
    all are gold.
    """
    context = [
        Gold(title=title, text=body if isinstance(body, str) else " ".join(body)) for title, body in entry.context or ()
    ]
    if entry.gold_ids is not None:
        return _once(Gold(id=key) for key in entry.gold_ids), True
    if entry.supporting_facts is not None:
        titles = dict.fromkeys(title for title, _ in entry.supporting_facts)
        found = ([gold for gold in context if gold.title == title] or [Gold(title=title)] for title in titles)
        return _once(gold for of_title in found for gold in of_title), True
    if entry.paragraphs is not None:
        marked = any(each.is_supporting is not None for each in entry.paragraphs)
        supporting = [each for each in entry.paragraphs if each.is_supporting or not marked]
        return _once(Gold(title=each.title or "", text=each.text) for each in supporting), marked
    return _once(context), False


def _once(gold: Iterable[Gold]) -> tuple[Gold, ...]:
    return tuple(dict.fromkeys(gold))


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
        under one made of title and text that no passage has. Gold without id is the passages of the same title and
        text, else the one passage of that title, else those of that title that hold the text or are a part of it, as
        the chunks of a longer document are.
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
        titled = self._by_title.get(title, [])
        exact = [key for key, own in titled if own == text]
        if exact or (title and len(titled) == 1):
            return exact or [titled[0][0]]
        return [key for key, own in titled if own and text and (own in text or text in own)]

    @cached_property
    def _by_title(self) -> Mapping[str, list[tuple[str, str]]]:
        """The (id, squeezed text) of the passages of each squeezed title."""
        titled = defaultdict(list)
        for passage in self._passages:
            titled[_squeezed(passage.title)].append((passage.id, _squeezed(passage.text)))
        return dict(titled)


def _squeezed(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())
