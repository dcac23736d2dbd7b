"""Sixteen threads ask while documents change: every answer is that of one state of the documents, and nothing piles up.

The documents go round between three states, whose answers an undisturbed workspace each gives beforehand.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graph.retrieve.modes import Mode
from graph.storage.workspace import Workspace
from graph.walk.settings import Engine
from workflows import mara, ragenta, retrieval
from workflows.answering import ask
from workflows.context import Context
from workflows.indexing import index_sources
from workflows.runtime.resources import close_indexes
from workflows.settings.ragenta import RagentaContext
from workflows.streaming import Answered, ask_stream

pytestmark = [pytest.mark.slow, pytest.mark.soak]

THREADS = 16
WHOLE_S = 600.0
SAMPLE_S = 0.25
MEMORY_MARGIN = 0.1
"""By which share resident memory may rise over the second half: Chroma's threads keep some of what they freed. Ten kB
that each answer leaves behind are as much in ten minutes; an index that stays open shows in the open files first."""
FILES_MARGIN = 0.5
"""The same of open files, which go up and down by a third with what is asked at the moment."""
FILES_OF_THE_PROCESS = 8
"""Files that a process opens once and keeps: an event loop's sockets, the lock files of its libraries."""
_SYNC = [sys.executable, "-c", "import sys; from workflows.cli.app import main; sys.exit(main())", "sync"]

LISK = "Lisk is a town in Belavia. It was founded in 1102 by Ida Brandt."


def texts_of(year: int, craft: str, town: str) -> dict[str, str]:
    return {
        "marn": f"Marn is a town in Ostra. It was founded in {year} by Duke Orlo. Its people {craft}.",
        "lake": f"Lake Sund is a lake in Ostra. The town on its shore is {town}.",
    }


STATES = {
    "first": texts_of(1203, "make clocks", "Marn"),
    "second": {**texts_of(1304, "weave nets", "Marn"), "lisk": LISK},
    "third": {**texts_of(1405, "blow glass", "Lisk"), "lisk": LISK},
}
"""{document: text} in each state, beside what never changes."""
ALWAYS = {
    f"town-{number}": f"{name} is a town on the {name}water. It was founded in {1500 + number} by Count {name}sen."
    for number, name in enumerate(("Arl", "Bek", "Cor", "Dun", "Eld", "Fen", "Gar", "Hul", "Ims", "Jor", "Kel", "Lom"))
}

TOWN = "When was the town on the shore of Lake Sund founded?"
CRAFT = "What do the people of Marn make, weave or blow?"

Facts = tuple[Any, ...]


def essence(result: Mapping[str, Any]) -> Facts:
    """The parts of a result that do not depend on when it was asked."""
    return (
        result.get("answer"),
        tuple((mark["passage_id"], mark["start"], mark["end"]) for mark in result.get("citations") or ()),
        tuple((hit["id"], hit["text"]) for hit in result["passages"]),
        tuple(sorted((hit["subject"], hit["predicate"], hit["object"], hit["kept"]) for hit in result["facts"])),
    )


def asked(question: str, context: Context) -> tuple[int, Facts]:
    result = ask(question, context)
    return result["generation"], essence(result)


def streamed(question: str, context: Context) -> tuple[int, Facts]:
    *_, last = ask_stream(question, context)
    assert isinstance(last, Answered)
    return last.result["generation"], essence(last.result)


def invoked_on_a_loop(question: str, context: Context) -> tuple[int, Facts]:
    graph = ragenta.graph if isinstance(context, RagentaContext) else mara.graph
    result = asyncio.run(graph.ainvoke({"question": question}, context=context))
    return result["generation"], essence(result)


def retrieved(question: str, context: Context) -> tuple[int, Facts]:
    result = retrieval.graph.invoke({"question": question}, context=context)
    return result["generation"], essence(result)


@dataclass(frozen=True)
class Case:
    """A question, how it is asked, and with which settings."""

    name: str
    way: Callable[[str, Context], tuple[int, Facts]]
    question: str
    form: type[Context] = Context
    settings: Mapping[str, Any] = field(default_factory=dict)

    def ask(self, workspace: Path) -> tuple[int, Facts]:
        """Return the generation that answered, and the answer."""
        return self.way(self.question, self.form(workspace=str(workspace), **self.settings))


CASES = (
    Case("ask a filtered world", asked, TOWN, settings={"where": {"source": {"$ne": "nothing"}}, "top_k": 5}),
    Case("check claims", asked, CRAFT, settings={"check_claims": True}),
    Case("ragenta", asked, TOWN, RagentaContext, {"top_k": 4, "follow_ups": {"passages": 2}}),
    Case("stream", streamed, CRAFT, settings={"engine": Engine.MATRIX}),
    Case("stream ragenta", streamed, CRAFT, RagentaContext, {"top_k": 3, "mode": Mode.MARA}),
    Case("invoke on a loop", invoked_on_a_loop, TOWN, settings={"mode": Mode.HIPPORAG2}),
    Case("invoke ragenta on a loop", invoked_on_a_loop, CRAFT, RagentaContext, {"top_k": 3}),
    Case("retrieve dense", retrieved, TOWN, settings={"mode": Mode.DENSE}),
    Case("retrieve sparse", retrieved, CRAFT, settings={"mode": Mode.SPARSE}),
)


def write_state(folder: Path, state: str) -> None:
    """Make a folder hold a state of the documents."""
    texts = {f"{name}.txt": text for name, text in {**ALWAYS, **STATES[state]}.items()}
    for path in folder.glob("*.txt"):
        if texts.get(path.name) == path.read_text(encoding="utf-8"):
            del texts[path.name]
        elif path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def expected_answers(place: Path) -> dict[tuple[str, str], Facts]:
    """{(state, case): the answer of a workspace that nothing disturbs}."""
    answers = {}
    for state in STATES:
        folder = place / state
        folder.mkdir()
        write_state(folder, state)
        index_sources([folder], folder / "workspace", sync=True)
        answers.update({(state, case.name): case.ask(folder / "workspace")[1] for case in CASES})
    close_indexes()
    return answers


class Answers:
    """The answers that the threads got, judged at once: only counts are kept."""

    def __init__(self, expected: Mapping[tuple[str, str], Facts]) -> None:
        self.right: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.states: dict[int, set[str]] = {}
        self._expected = expected
        self._lock = threading.Lock()

    def judge(self, case: Case, workspace: Path) -> None:
        """Ask, and note which states of the documents the answer is right for."""
        try:
            generation, told = case.ask(workspace)
        except Exception as fault:
            self._note(f"{case.name}: {type(fault).__name__}: {fault}")
            return
        fitting = {state for state in STATES if self._expected[state, case.name] == told}
        if not fitting:
            self._note(f"{case.name} (generation {generation}): {told}")
            return
        with self._lock:
            self.right[case.name] += 1
            self.states[generation] = self.states.get(generation, set(STATES)) & fitting

    def _note(self, what: str) -> None:
        with self._lock:
            if len(self.wrong) < 20:
                self.wrong.append(what)


@dataclass(frozen=True)
class Sample:
    """The state of the process at a moment: resident MiB and open files."""

    resident: float
    files: int


def sample() -> Sample:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return Sample(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, len(os.listdir("/proc/self/fd")))


def growth(values: Sequence[float]) -> float:
    """How much a line through the values rises from the first to the last, as a share of their mean."""
    slope, _ = np.polyfit(np.arange(len(values)), values, 1)
    return float(slope * (len(values) - 1) / np.mean(values))


class Writer:
    """Syncs the next state again and again, in turn within this process and by a command of its own."""

    def __init__(self, folder: Path, workspace: Path) -> None:
        self._folder = folder
        self._workspace = workspace
        self.states: dict[int, str] = {}

    def write(self, state: str) -> None:
        """Bring the workspace to a state, and note which generation has it."""
        write_state(self._folder, state)
        if len(self.states) % 2:
            command = [*_SYNC, str(self._folder), "-w", str(self._workspace), "--json"]
            done = subprocess.run(command, capture_output=True, encoding="utf-8")
            assert done.returncode == 0, done.stdout + done.stderr
        else:
            index_sources([self._folder], self._workspace, sync=True)
        generation = Workspace(self._workspace).current()
        assert generation is not None
        self.states[generation] = state

    def write_until(self, stopped: threading.Event) -> None:
        """Go round the states."""
        for state in itertools.cycle(("second", "third", "first")):
            if stopped.is_set():
                return
            self.write(state)


def ask_until(stopped: threading.Event, first: int, answers: Answers, workspace: Path) -> None:
    """Ask one case after the other, each thread from another one on."""
    for case in itertools.islice(itertools.cycle(CASES), first, None):
        if stopped.is_set():
            return
        answers.judge(case, workspace)


def test_every_answer_is_of_the_state_of_its_generation_and_nothing_piles_up(tmp_path: Path, soak_share: float) -> None:
    folder, workspace = tmp_path / "documents", tmp_path / "workspace"
    folder.mkdir()
    answers, writer = Answers(expected_answers(tmp_path)), Writer(folder, workspace)
    before, samples, stopped = sample(), list[Sample](), threading.Event()
    writer.write("first")
    with ThreadPoolExecutor(1 + THREADS) as pool:
        works = [pool.submit(writer.write_until, stopped)]
        works += [pool.submit(ask_until, stopped, first, answers, workspace) for first in range(THREADS)]
        ends = time.monotonic() + WHOLE_S * soak_share
        while time.monotonic() < ends and not any(work.done() for work in works):
            samples.append(sample())
            stopped.wait(SAMPLE_S)
        stopped.set()
    close_indexes()
    assert [work.exception() for work in works] == [None] * len(works)
    assert answers.wrong == []
    assert set(answers.right) == {case.name for case in CASES}
    assert len(answers.states) >= 5, "the documents changed while they were asked"
    written = {generation: writer.states.get(generation) for generation in answers.states}
    assert {key: states for key, states in answers.states.items() if written[key] not in states} == {}
    warm = samples[len(samples) // 2 :]
    assert growth([each.resident for each in warm]) < MEMORY_MARGIN
    assert growth([each.files for each in warm]) < FILES_MARGIN
    assert sample().files - before.files <= FILES_OF_THE_PROCESS
