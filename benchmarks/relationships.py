"""The relationship graph at size: loading, opening, recording, searching: `python -m benchmarks.relationships`.

    python -m benchmarks.relationships [--documents 100000] [--rounds 200] [--seconds 10] [--json FILE]

The graph is made up: documents of one chunk with ten edges a document (a chunk's, a source's, five EXPLAINS and three
RELATED_TO), whose concepts follow Zipf's law, and a tenth as many messages as documents, in conversations of twenty.
EXPLAINS and RELATED_TO are computed from a generation of the knowledge graph, by the first search of a process. Each
search is of another conversation or user. At the end, two processes search while this one records turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import describe_machine
from graph.construction.edges import EDGE_TYPES, KIND_INDEX, EdgeKind, Edges, sort_edges
from graph.construction.knowledge_graph import KnowledgeGraph, StoredPassages, table_of_passages
from graph.relations import PassageLink as Link
from graph.relationships.concept_view import RELATED_PER_CONCEPT
from graph.relationships.conversation_search import conversation_search
from graph.relationships.conversations import Cited
from graph.relationships.discovery import discover
from graph.relationships.history import NewTurn, record_turn
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, Node, NodeType, PropertyValue, time_text
from graph.schema import ENTITY_RELATIONS, Passage, RelationType, entity_id
from graph.storage.workspace import Workspace
from graph.text import NameMatcher
from tests.snapshots import facts_of, save

EXPLAINED, RELATED = 5, 3
"""EXPLAINS and RELATED_TO edges, each a document."""

_PAGE = 50_000
_TURNS_A_CONVERSATION = 10
_MENTIONED, _CITED = 3, 2
_CONVERSATIONS_A_USER = 5
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)

Item = TypeVar("Item")
Ints = NDArray[np.int64]
Timings = dict[str, float]


class World:
    """The made-up graph: the same for the same number of documents."""

    def __init__(self, documents: int) -> None:
        self.documents = documents
        self.concepts = 2 * documents
        self._random = np.random.default_rng(7)

    def nodes(self) -> Iterator[Node]:
        """Yield sources, documents and chunks."""
        now = time_text(_BEGAN)
        for n in range(max(1, self.documents // 100)):
            yield Node(NodeType.SOURCE, f"source-{n}", {"name": f"{n}.jsonl", "type": "file", "uri": f"{n}.jsonl"})
        for n in range(self.documents):
            times: dict[str, PropertyValue] = {"created_at": now, "updated_at": now, "version": 1}
            path = f"{n // 100}.jsonl"
            yield Node(NodeType.DOCUMENT, _document(n), {"path": path, "title": f"Title {n}", **times})
            chunk: dict[str, PropertyValue] = {
                "chunk_index": 0,
                "path": path,
                "fingerprint": f"entry-{n:024x}",
                "created_at": now,
            }
            yield Node(NodeType.CHUNK, _document(n), chunk)

    def edges(self) -> Iterator[Edge]:
        """Yield two edges a document."""
        for n in range(self.documents):
            document = (NodeType.DOCUMENT, _document(n))
            yield Edge(EdgeType.CHUNK_OF, (NodeType.CHUNK, _document(n)), document)
            yield Edge(EdgeType.SOURCED_FROM, document, (NodeType.SOURCE, f"source-{n // 100}"))

    def graph(self) -> KnowledgeGraph:
        """Return the generation that five EXPLAINS and three RELATED_TO edges a document follow from."""
        names = sorted((f"concept{n}" for n in range(self.concepts)), key=entity_id)
        place_of = np.empty(self.concepts, dtype=np.int64)
        place_of[[int(name.removeprefix("concept")) for name in names]] = np.arange(self.concepts)
        explained = self._zipf((self.documents, EXPLAINED))
        concepts = place_of[[_distinct(row, self.concepts) for row in explained]].ravel()
        documents = np.repeat(np.arange(self.documents), EXPLAINED)
        mention = KIND_INDEX[EdgeKind(RelationType.PRIMARY, Link.MENTION)]
        related = np.sort(place_of[self._related()], axis=1)
        kinds = np.arange(len(related)) % len(ENTITY_RELATIONS)
        columns = {
            "source": np.concatenate([concepts, related[:, 0]]),
            "target": np.concatenate([documents + self.concepts, related[:, 1]]),
            "kind": np.concatenate([np.full(len(concepts), mention), kinds]),
            "weight": np.concatenate([self._random.random(len(concepts)).round(4), np.full(len(related), 0.5)]),
            "count": np.ones(len(concepts) + len(related)),
            "offset": np.full(len(concepts) + len(related), -1),
        }
        return KnowledgeGraph(
            generation=1,
            embedding_model="made up",
            entity_names=names,
            entity_labels=[name.title() for name in names],
            triple_passages=np.ones(self.concepts, dtype=np.int32),
            name_passages=np.ones(self.concepts, dtype=np.int32),
            name_shares=np.ones(self.concepts, dtype=np.float32),
            passages=StoredPassages(
                table_of_passages(
                    Passage(_document(n), f"Title {n}", "", f"{n // 100}.jsonl") for n in range(self.documents)
                )
            ),
            passage_vectors=np.ones((self.documents, 1), dtype=np.float32),
            facts=facts_of({}),
            aliases=[],
            names=NameMatcher({}, {}),
            edges=sort_edges(Edges(**{name: columns[name].astype(kind) for name, kind in EDGE_TYPES.items()})),
            commit_id="made up",
        )

    def _related(self) -> Ints:
        """Return pairs of concepts, so many to a concept at most as indexing leaves there."""
        left = RELATED * self.documents
        degrees = np.zeros(self.concepts, dtype=np.int64)
        seen: dict[tuple[int, int], None] = {}
        while left:
            for a, b in self._zipf((4 * left, 2)).tolist():
                pair = (min(a, b), max(a, b))
                if left and a != b and pair not in seen and max(degrees[a], degrees[b]) < RELATED_PER_CONCEPT:
                    seen[pair] = None
                    degrees[[a, b]] += 1
                    left -= 1
        return np.array(list(seen), dtype=np.int64)

    def turns(self, n: int, first: int = 0) -> Iterator[NewTurn]:
        """Yield so many turns of conversations; a question names the concepts that it mentions."""
        for number in range(first, first + n):
            conversation = number // _TURNS_A_CONVERSATION
            at = _BEGAN + timedelta(minutes=number)
            cited = self._random.integers(self.documents, size=_CITED).tolist()
            yield NewTurn(
                key=f"turn-{number}",
                question=" ".join(f"concept{each}" for each in self._zipf((_MENTIONED,)).tolist()),
                answer="Two documents say so [1][2].",
                asked_at=time_text(at),
                answered_at=time_text(at + timedelta(seconds=3)),
                conversation=f"conversation-{conversation}",
                user=f"user-{conversation // _CONVERSATIONS_A_USER}",
                cited=[Cited(place, _document(each)) for place, each in enumerate(cited, start=1)],
            )

    def _zipf(self, shape: tuple[int, ...]) -> Ints:
        """Return concepts, the n-th about as often as 1 / n."""
        return np.asarray(self.concepts ** self._random.random(shape) - 1, dtype=np.int64)


class NamedConcepts:
    """Finds the concepts that a text names: what finding names in a corpus takes is no part of this."""

    def concepts_in(self, text: str) -> Mapping[str, float]:
        """Return {concept id: 1} of the words that are names."""
        return {entity_id(word): 1.0 for word in text.split() if word.startswith("concept")}


def main() -> None:
    """Measure, and print a table; with ``--json``, write the figures to a file, too."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=200, help="searches and recordings of each kind")
    parser.add_argument("--seconds", type=float, default=10, help="how long processes read while one writes")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        _read(arguments.read, arguments.documents, arguments.seconds)
        return
    machine = describe_machine()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), arguments.documents, arguments.rounds, arguments.seconds)
    found["machine"] = asdict(machine)
    print(f"{machine.processor}, {machine.cores} cores, load {machine.load:.1f}")
    for line in told(found):
        print(line)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2), encoding="utf-8")


def measure(root: Path, documents: int, rounds: int, seconds: float) -> dict[str, Any]:
    """Return all figures; times in milliseconds, loads in rows a second."""
    world = World(documents)
    publish(world.graph(), root)
    with RelationshipRecord.of(root, create=True) as record:
        loads = {"nodes": _load(world.nodes(), record.put_nodes), "edges": _load(world.edges(), record.link_all)}
        n_turns = documents // 20
        for turn in world.turns(n_turns):
            record_turn(record, turn, NamedConcepts())
        counts = record.counts()
    opening = [_timed(_open, root) for _ in range(5)]
    first = [_first_search(root, documents) for _ in range(3)]
    with RelationshipRecord.of(root) as record:
        similarities = _similarities(documents)
        searched, discovered, recorded = [], [], []
        for number, turn in enumerate(world.turns(rounds, first=n_turns)):
            of = number * 37 % (n_turns // _TURNS_A_CONVERSATION)
            searched.append(_timed(conversation_search, record, f"conversation-{of}", similarities))
            user = f"user-{of // _CONVERSATIONS_A_USER}"
            discovered.append(_timed(partial(discover, record, user_id=user)))
            recorded.append(_timed(record_turn, record, turn, NamedConcepts()))
    figures = {
        "open": opening,
        "first search of a process": first,
        "record a turn (two messages)": recorded,
        "conversation-aware search": searched,
        "discovery": discovered,
    }
    return {
        "counts": counts,
        "bytes": sum(path.stat().st_size for path in root.iterdir()),
        "rows_a_second": loads,
        "ms": {name: spread(times) for name, times in figures.items()},
        "at_once": _at_once(root, world, n_turns + rounds, seconds),
    }


def spread(times: list[float]) -> Timings:
    """Return the median, the 95th percentile and the range of some times."""
    return {
        "p50": statistics.median(times),
        "p95": float(np.percentile(times, 95)),
        "least": min(times),
        "most": max(times),
    }


def told(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the figures as lines of text."""
    counts = found["counts"]
    edges = sum(counts[of] for of in EdgeType)
    size = f"{found['bytes'] / 1e6:,.0f} MB"
    yield f"{counts['Document']:,} documents, {edges:,} edges, {counts['Message']:,} messages; {size}"
    for name, rate in found["rows_a_second"].items():
        yield f"{name:44} {rate:10,.0f} a second"
    for name, each in {**found["ms"], **found["at_once"]["ms"]}.items():
        spread_of = f"{each['least']:.2f} to {each['most']:.2f}"
        yield f"{name:44} p50 {each['p50']:8.2f} ms  p95 {each['p95']:8.2f}  ({spread_of})"
    at_once = found["at_once"]
    reads, writes = f"{at_once['reads']:,} searches", f"{at_once['writes']:,} turns"
    yield f"two processes made {reads} while one wrote {writes}; errors: {at_once['errors']}"


def _load(items: Iterable[Item], put: Callable[[list[Item]], None]) -> float:
    """Write all items, page by page; return how many a second, their making left out."""
    seconds, count, left = 0.0, 0, iter(items)
    while page := list(islice(left, _PAGE)):
        seconds += _timed(put, page) / 1000
        count += len(page)
    return count / seconds


def publish(graph: KnowledgeGraph, root: Path) -> None:
    """Write a generation where readers of the workspace find it."""
    folder = Workspace(root).index_folder(graph.generation)
    folder.mkdir(parents=True)
    save(graph, folder)
    (root / "CURRENT").write_text(f"{graph.generation}\n", encoding="ascii")


def _first_search(root: Path, documents: int) -> float:
    """Return the milliseconds of the first search of a process, which computes what documents explain."""
    return float(json.loads(_reader(root, documents, 0).communicate()[0])["ms"][0])


def _reader(root: Path, documents: int, seconds: float) -> subprocess.Popen[str]:
    """Start a process that searches."""
    command = [sys.executable, "-m", "benchmarks.relationships", "--read", str(root)]
    command += ["--documents", str(documents), "--seconds", str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _open(root: Path) -> None:
    RelationshipRecord.of(root).close()


def _at_once(root: Path, world: World, first: int, seconds: float) -> dict[str, Any]:
    """Record turns while two processes search; return what each took, and how many errors there were."""
    readers = [_reader(root, world.documents, seconds) for _ in range(2)]
    written: list[float] = []
    with RelationshipRecord.of(root) as record:
        turns = world.turns(10**9, first)
        ended = time.perf_counter() + seconds
        while time.perf_counter() < ended:
            turn = next(turns)
            written.append(_timed(record_turn, record, turn, NamedConcepts()))
            time.sleep(0.01)
    told_by = [json.loads(reader.communicate()[0]) for reader in readers]
    reads = [each for one in told_by for each in one["ms"]]
    return {
        "reads": len(reads),
        "writes": len(written),
        "errors": sum(one["errors"] for one in told_by),
        "ms": {"record a turn while two read": spread(written), "search while one writes": spread(reads)},
    }


def _read(root: Path, documents: int, seconds: float) -> None:
    """Search again and again, and print the times."""
    similarities, times, errors = _similarities(documents), [], 0
    n_conversations = documents // 20 // _TURNS_A_CONVERSATION
    ended, number = time.perf_counter() + seconds, 0
    with RelationshipRecord.of(root) as record:
        while not number or time.perf_counter() < ended:
            number += 1
            of = f"conversation-{number * 31 % n_conversations}"
            try:
                times.append(_timed(conversation_search, record, of, similarities))
            except Exception as fault:
                print(fault, file=sys.stderr)
                errors += 1
    print(json.dumps({"ms": times, "errors": errors}))


def _similarities(documents: int) -> dict[str, float]:
    """Return a similarity to the question of every document."""
    shares = np.random.default_rng(3).random(documents)
    return {_document(n): share for n, share in enumerate(shares.tolist())}


def _timed(work: Callable[..., object], *arguments: object) -> float:
    """Return the milliseconds that some work takes."""
    began = time.perf_counter()
    work(*arguments)
    return (time.perf_counter() - began) * 1000


def _document(n: int) -> str:
    return f"document-{n:07d}"


def _distinct(numbers: Ints, below: int) -> list[int]:
    """Return as many numbers, each another, the next free one in place of one that stands there already."""
    found: dict[int, None] = {}
    for number in numbers.tolist():
        while number in found:
            number = (number + 1) % below
        found[number] = None
    return list(found)


if __name__ == "__main__":
    main()
