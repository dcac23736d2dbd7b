"""Reading documents: text, Markdown and corpus files become passages; what cannot be read is refused by name."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graph.errors import BadInput
from graph.schema import MetadataValue, Passage, stable_id
from graph.text import is_unspaced, tokens

CHUNK_TOKENS, CHUNK_OVERLAP = 220, 40
"""Length of a chunk and of what it shares with the next, in tokens of the embedding model, about."""

READABLE = frozenset({".txt", ".md", ".markdown", ".jsonl", ".json"})
_TENTHS_PER_WORD, _TENTHS_PER_CHARACTER = 13, 10
_TITLE_LIMIT = 100
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_MATTER_TITLE = re.compile(r"^title:[ \t]*(\S.*)$", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}[ \t]+(\S.*)$", re.MULTILINE)
_ID_KEYS, _TEXT_KEYS = ("id", "_id", "idx"), ("text", "passage", "contents", "content", "paragraph_text")


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that was not read, and why."""

    source: str
    reason: str


@dataclass(slots=True)
class Documents:
    """What was found at the sources.

    Attributes:
        passages: by id; the same passage given twice stands once.
        refused: files that could not be read, with the reason.
        skipped: files of other kinds, by suffix.
        identical: how many passages were given more than once.
    """

    passages: dict[str, Passage] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    identical: int = 0

    def add(self, passages: Iterable[Passage]) -> None:
        """Take passages in. Raises BadInput when one id stands for two texts."""
        for passage in passages:
            known = self.passages.setdefault(passage.id, passage)
            if known is passage:
                continue
            if (known.title, known.text) != (passage.title, passage.text):
                raise BadInput(
                    f"The id {passage.id!r} stands for two texts (in {known.source} and {passage.source})",
                    "Give each passage an id of its own",
                )
            self.identical += 1


def read_documents(sources: Sequence[Path]) -> Documents:
    """Read files and folders.

    A file that is named and cannot be read is an error; one that lies in a folder is refused by name, and the rest
    is read.

    Raises:
        BadInput: a source does not exist or cannot be read, a line is malformed, or one id stands for two texts.
    """
    documents = Documents()
    for source in sources:
        if source.is_dir():
            for path in _files_below(source, documents):
                try:
                    passages = _read_file(path, readable_path(path.relative_to(source)))
                except BadInput as fault:
                    documents.refused.append(Refused(readable_path(path), str(fault)))
                else:
                    documents.add(passages)
        elif not source.is_file() and source.exists():
            raise BadInput(f"{source} is no plain file", "Name a file or a folder")
        elif not source.exists():
            raise BadInput(f"{source} does not exist", "Name a file or a folder")
        elif source.suffix.lower() not in READABLE:
            raise BadInput(f"{source} is of a kind that is not read", f"Readable: {', '.join(sorted(READABLE))}")
        else:
            documents.add(_read_file(source, readable_path(Path(source.name))))
    return documents


def _files_below(folder: Path, documents: Documents) -> Iterator[Path]:
    """Yield readable files in order of their paths; hidden ones, workspaces and what lies behind links are left out."""

    def refuse(fault: OSError) -> None:
        place = readable_path(Path(fault.filename))
        documents.refused.append(Refused(place, f"{place} cannot be read ({fault.strerror})"))

    for root, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and not (Path(root) / name / "record.sqlite").exists()
        )
        for name in sorted(files):
            suffix = Path(name).suffix.lower()
            if name.startswith("."):
                continue
            path = Path(root) / name
            if suffix in READABLE:
                reason = _unreadable(path, folder)
                if reason:
                    documents.refused.append(Refused(readable_path(path), f"{readable_path(path)} {reason}"))
                else:
                    yield path
            else:
                documents.skipped[suffix] = documents.skipped.get(suffix, 0) + 1


def _unreadable(path: Path, folder: Path) -> str:
    """Return why a file of a folder is not read: a link out of it, or no plain file (a pipe would never end)."""
    if not path.resolve().is_relative_to(folder.resolve()):
        return "is a link out of the folder"
    return "" if path.is_file() else "is not a plain file"


def readable_path(path: Path) -> str:
    """Return a path as text that can be stored and printed, with a mark for bytes that are not UTF-8."""
    return os.fsencode(path.as_posix()).decode("utf-8", "replace")


def _read_file(path: Path, source: str) -> list[Passage]:
    text = read_text(path)
    suffix = path.suffix.lower()
    if suffix == ".jsonl":
        return [_corpus_passage(row, source, f"{readable_path(path)}, line {n}") for n, row in json_lines(text, path)]
    if suffix == ".json":
        return _read_corpus(text, readable_path(path), source)
    title, body = _markdown_title(text) if suffix in (".md", ".markdown") else _plain_title(text)
    return split_document(title, body, source)


def read_text(path: Path) -> str:
    """Return a file's text. Raises BadInput when it cannot be opened or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as fault:
        raise BadInput(
            f"{readable_path(path)} is not UTF-8 text (byte {fault.start})",
            "Convert it, for example with iconv -t UTF-8",
        ) from fault
    except OSError as fault:
        raise BadInput(
            f"{readable_path(path)} cannot be read ({fault.strerror})", "Check the file and its permissions"
        ) from fault


def json_lines(text: str, path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (line number, value) of each line that is not blank. Raises BadInput naming file and line."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as fault:
                raise BadInput(
                    f"{readable_path(path)}, line {number}: not valid JSON ({fault})", "Mend or remove that line"
                ) from fault


def _read_corpus(text: str, path: str, source: str) -> list[Passage]:
    """Read the corpus shapes of HippoRAG: a list of objects, or {title: text or sentences}."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise BadInput(f"{path}: not valid JSON ({fault})", "Mend the file") from fault
    if isinstance(value, list):
        return [_corpus_passage(row, source, f"{path}, item {n}") for n, row in enumerate(value, start=1)]
    if isinstance(value, dict) and all(isinstance(body, str | list) for body in value.values()):
        rows = ({"title": title, "text": _joined(body)} for title, body in value.items())
        return [_corpus_passage(row, source, f"{path}, {row['title']!r}") for row in rows]
    raise BadInput(f"{path} is no corpus", "Give a list of {id, title, text}, or an object of title: text")


def _joined(body: Any) -> Any:
    return "".join(body) if isinstance(body, list) and all(isinstance(part, str) for part in body) else body


def _corpus_passage(row: Any, source: str, where: str) -> Passage:
    """Return the passage of one corpus entry: given whole, with scalars under other keys as metadata."""
    if not isinstance(row, Mapping):
        raise BadInput(f"{where}: not an object", "Give {id, title, text}")
    text_key = next((key for key in _TEXT_KEYS if isinstance(row.get(key), str)), None)
    if text_key is None:
        raise BadInput(f"{where}: no text", f"Give the passage under one of: {', '.join(_TEXT_KEYS)}")
    title, text = row.get("title") or "", row[text_key]
    id_key = next((key for key in _ID_KEYS if isinstance(row.get(key), str | int)), None)
    if not isinstance(title, str) or not (title.strip() or text.strip()):
        raise BadInput(f"{where}: empty, or its title is no text", "Mend or remove it")
    used = {"title", text_key, id_key}
    metadata: dict[str, MetadataValue] = {
        key: value for key, value in row.items() if key not in used and isinstance(value, str | int | float | bool)
    }
    key = str(row[id_key]) if id_key else stable_id("passage", source, f"{title}\n{text}")
    passage = Passage(key, title.strip(), text, source, metadata)
    try:
        "\n".join([passage.id, title, text, *map(str, metadata.values())]).encode("utf-8")
    except UnicodeEncodeError as fault:
        raise BadInput(f"{where}: holds broken Unicode", "Mend the text's escapes") from fault
    if not passage.id.strip():
        raise BadInput(f"{where}: its id is empty", "Give it an id, or none at all")
    return passage


def _markdown_title(text: str) -> tuple[str, str]:
    """Return the title (front matter, else first heading) and the text without front matter."""
    front = _FRONT_MATTER.match(text)
    body = text[front.end() :] if front else text
    named = _FRONT_MATTER_TITLE.search(front[1]) if front else None
    title = _unquoted(named[1].strip()) if named else ""
    heading = _HEADING.search(body)
    return title or (_heading_text(heading[1]) if heading else ""), body


def _unquoted(value: str) -> str:
    return value[1:-1].strip() if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _heading_text(heading: str) -> str:
    """Return a heading's text without the number signs that may close it: those of "C#" belong to the text."""
    text = heading.rstrip()
    unclosed = text.rstrip("#")
    return unclosed.rstrip() if unclosed.endswith((" ", "\t")) else text


def _plain_title(text: str) -> tuple[str, str]:
    """Return a first line that stands alone and reads like a heading as the title, and the rest as text."""
    first, _, rest = text.lstrip().partition("\n")
    line, after, _ = rest.partition("\n")
    if (
        after
        and not line.strip()
        and 0 < len(first.strip()) <= _TITLE_LIMIT
        and first.strip()[-1] not in ".!?:;,。！？"
    ):
        return first.strip(), rest
    return "", text


def split_document(title: str, text: str, source: str) -> list[Passage]:
    """Split a document into passages that the embedding model can read whole.

    Each keeps its place: ``document`` id, ``chunk`` number from 0, number of ``chunks``, and the characters
    ``start`` to ``end`` of the document's text. A document that fits is one passage without them.
    """
    if not text.strip():
        return []
    limit = max(CHUNK_OVERLAP + 1, CHUNK_TOKENS - estimate_tokens(title))
    if estimate_tokens(text) <= limit:
        return [Passage(stable_id("passage", source, f"{title}\n{text.strip()}"), title, text.strip(), source)]
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(
        chunk_size=10 * limit,
        chunk_overlap=10 * CHUNK_OVERLAP,
        length_function=_tenths_of_tokens,
        separators=["\n\n", "\n", ". ", "。", "। ", " ", ""],
        keep_separator="end",
    )
    chunks = splitter.split_text(text)
    document = stable_id("document", source, text)
    return [
        Passage(
            stable_id("passage", source, f"{title}\n{chunk}"),
            title,
            chunk,
            source,
            {
                "document": document,
                "chunk": number,
                "chunks": len(chunks),
                "start": start,
                "end": start + len(chunk),
            },
        )
        for number, (chunk, start) in enumerate(zip(chunks, _starts(text, chunks), strict=True))
    ]


def _starts(text: str, chunks: Iterable[str]) -> Iterator[int]:
    """Yield where each chunk stands; the splitter's own offsets hold for lengths in characters alone."""
    start = -1
    for chunk in chunks:
        start = text.index(chunk, start + 1)
        yield start


def estimate_tokens(text: str) -> int:
    """Estimate a text's tokens for the embedding model: 1.3 a word, 1 a character of unspaced scripts."""
    return round(_tenths_of_tokens(text) / 10)


def _tenths_of_tokens(text: str) -> int:
    found = tokens(text)
    unspaced = sum(map(is_unspaced, found))
    return _TENTHS_PER_CHARACTER * unspaced + _TENTHS_PER_WORD * (len(found) - unspaced)
