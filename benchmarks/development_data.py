"""The development sets of the figures, made from the public files that hold them; nothing is downloaded.

    git clone https://github.com/OSU-NLP-Group/HippoRAG
    git -C HippoRAG checkout 3d95d255a8db0c1699b853cfb4fbe5056708162d
    git clone https://github.com/IBM/mt-rag-benchmark
    python -m benchmarks.development_data DATA [--hipporag HippoRAG] [--mtrag mt-rag-benchmark]

DATA gets `musique_train100` and `hotpot_train100` from the first repository, at the commit that is known to hold their
files, and `mtrag_dev` from the second. Of each file that is written it is told whether it is, to the byte, that of the
figures.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.evaluation.sets import Row, rows_of
from workflows.runs.run_folder import json_lines

MUSIQUE = "data/musique_train.json"
TRIPLES = "output/openie_musique_train_results_ner_gpt-3.5-turbo-1106_1890.json"
HOTPOT = "data/hotpotqa_train.json"
MTRAG = "mtragun-human/generation_tasks/reference.jsonl"

COLLECTIONS = ("fiqa", "ibmcloud")
"""What is in the name of a task's collection; tasks of others were kept aside."""

SHA256 = {
    "hotpot_train100/corpus.jsonl": "cc5fa0b6d3b23d808580aa0ba6faf701674b96c62571f5834c3406da7e751030",
    "hotpot_train100/questions.jsonl": "c295c4e89185538a0bd64be4d3d671b80804c904e26c55081be7f9e8ccb1fdca",
    "mtrag_dev/corpus.jsonl": "5fff9a16db204590c48e7236a39c6662f07f4019f1c1ce4340e9deda133ba78e",
    "mtrag_dev/questions.jsonl": "154abe719077bcca9e7881450802bf853db789be0be65e0cf17000344893f4b2",
    "musique_train100/corpus.jsonl": "a09f4654d1e4647aaceecb6122ec1f1240688801f167e075688979463834f4e0",
    "musique_train100/openie.jsonl": "f08e107161ef6e825c417b7bfa6c42955411396ecf42e3f1a3a08ee0ac1d84b1",
    "musique_train100/questions.jsonl": "e9053d8b6d020626207ca7a1d7721b527802910e3900f6688aae32f7cf3244d9",
}
"""The files that the figures were measured with."""

_NO_LETTERS = re.compile(r"[^A-Za-z]")

Made = Mapping[str, list[Row]]
"""The rows of a set's files."""


@dataclass(frozen=True, slots=True)
class DevelopmentSet:
    """A set, and how it is made of a repository.

    Attributes:
        name: of its folder.
        files: what is read, within the repository.
        licence: of the texts.
        make: returns the set's files, from what was read in the order of ``files``.
    """

    name: str
    files: tuple[str, ...]
    licence: str
    make: Callable[..., Made]


def musique(tasks: list[Row], triples: Row) -> Made:
    """Return MuSiQue: the documents whose triples were extracted, and the questions with their supporting paragraphs.

    A triple that is not of three texts is left out.
    """
    docs = triples["docs"]
    ids = {(doc["title"], doc["text"]): f"mt{number}" for number, doc in enumerate(docs)}
    corpus = [{"id": id_, "title": title, "text": text} for (title, text), id_ in ids.items()]
    extracted = [
        {
            "id": ids[doc["title"], doc["text"]],
            "entities": doc["extracted_entities"],
            "triples": [parts for parts in doc["extracted_triples"] if _is_triple(parts)],
        }
        for doc in docs
    ]
    questions = [
        {
            "id": task["id"],
            "question": task["question"],
            "answers": [task["answer"], *task["answer_aliases"]],
            "type": task["id"].partition("__")[0],
            "gold_ids": [
                ids[each["title"], each["paragraph_text"]] for each in task["paragraphs"] if each["is_supporting"]
            ],
        }
        for task in tasks
    ]
    return {"corpus": corpus, "openie": extracted, "questions": questions}


def _is_triple(parts: Any) -> bool:
    return isinstance(parts, list) and len(parts) == 3 and all(isinstance(part, str) and part.strip() for part in parts)


def hotpot(tasks: list[Row]) -> Made:
    """Return HotpotQA: each title of the questions' contexts once, in their order, its sentences as one text."""
    texts: dict[str, str] = {}
    for title, sentences in (context for task in tasks for context in task["context"]):
        texts.setdefault(title, "".join(sentences).strip())
    ids = {title: f"ht{number}" for number, title in enumerate(texts)}
    questions = []
    for task in tasks:
        supporting = {title for title, _ in task["supporting_facts"]}
        questions.append(
            {
                "id": task["_id"],
                "question": task["question"],
                "answers": [task["answer"]],
                "type": task["type"],
                "gold_ids": [ids[title] for title, _ in task["context"] if title in supporting],
            }
        )
    corpus = [{"id": ids[title], "title": title, "text": text} for title, text in texts.items()]
    return {"corpus": corpus, "questions": questions}


def mtrag(tasks: list[Row]) -> Made:
    """Return MTRAG-UN: the passages that two collections' tasks were answered from, and their last turns as questions.

    Passages have no title: those of manuals begin with it.
    """
    texts: dict[str, str] = {}
    questions = []
    for task in tasks:
        if not any(name in task["Collection"].casefold() for name in COLLECTIONS):
            continue
        texts |= {each["document_id"]: each["text"].strip() for each in task["contexts"]}
        *before, asked = task["input"]
        questions.append(
            {
                "id": task["task_id"].replace("<::>", "-"),
                "question": asked["text"],
                "messages": [
                    {"role": "user" if turn["speaker"] == "user" else "assistant", "content": turn["text"]}
                    for turn in before
                ],
                "gold_ids": [each["document_id"] for each in task["contexts"]],
                "answers": [target["text"] for target in task["targets"]],
                "answerability": _label(task, "answerability"),
                "turn": sum(turn["speaker"] == "user" for turn in task["input"]),
                "type": _label(task, "multiturn"),
            }
        )
    return {"corpus": [{"id": id_, "title": "", "text": text} for id_, text in texts.items()], "questions": questions}


def _label(task: Row, letters: str) -> str:
    """Return a label by the letters of its name, from the task or its last turn's enrichments; empty where none is.

    MTRAG writes "Multi-Turn" and "Answerability", MTRAG-UN "answerability"; a label is a list of one.
    """
    fields = {**task["input"][-1].get("enrichments", {}), **task}
    found = next((held for name, held in fields.items() if _NO_LETTERS.sub("", name).casefold() == letters), "")
    return str(next(iter(found), "")) if isinstance(found, list) else str(found)


HIPPORAG = (
    DevelopmentSet(
        "musique_train100",
        (MUSIQUE, TRIPLES),
        "questions and passages CC BY 4.0 (MuSiQue), triples MIT (HippoRAG)",
        musique,
    ),
    DevelopmentSet("hotpot_train100", (HOTPOT,), "CC BY-SA 4.0 (HotpotQA)", hotpot),
)
MT_RAG_BENCHMARK = (DevelopmentSet("mtrag_dev", (MTRAG,), "Apache-2.0 (MTRAG-UN)", mtrag),)


def make(each: DevelopmentSet, repository: Path, data: Path) -> Iterator[str]:
    """Write a set's files; yield what is told of each.

    Raises:
        SystemExit: the repository lacks a file.
    """
    lacking = [file for file in each.files if not (repository / file).is_file()]
    if lacking:
        raise SystemExit(f"{repository} has no file {', '.join(lacking)}: is it the repository, and the commit?")
    yield f"{each.name}: {each.licence}"
    for name, rows in each.make(*(_read(repository / file) for file in each.files)).items():
        path = data / each.name / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json_lines(rows), encoding="utf-8")
        same = hashlib.sha256(path.read_bytes()).hexdigest() == SHA256[f"{each.name}/{path.name}"]
        yield f"  {path.name}: {len(rows):,} rows, {'that' if same else 'NOT that'} of the figures"


def _read(path: Path) -> Any:
    return list(rows_of(path)) if path.suffix == ".jsonl" else json.loads(path.read_text(encoding="utf-8"))


def main() -> None:
    """Make the sets of the repositories that are given, and tell of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("--hipporag", type=Path, metavar="DIR", help="a clone of OSU-NLP-Group/HippoRAG at that commit")
    parser.add_argument("--mtrag", type=Path, metavar="DIR", help="a clone of IBM/mt-rag-benchmark")
    options = parser.parse_args()
    if not (options.hipporag or options.mtrag):
        parser.error("name a repository: --hipporag, --mtrag")
    for repository, sets in ((options.hipporag, HIPPORAG), (options.mtrag, MT_RAG_BENCHMARK)):
        for each in sets if repository else ():
            for line in make(each, repository, options.data):
                print(line)


if __name__ == "__main__":
    main()
