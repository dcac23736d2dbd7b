"""Commands that are killed again and again, at any moment, and while their files change, end as if undisturbed.

A round kills one command some times, lets the files come to rest and gives the same command once more. Then record,
graph and answers are those of a workspace that was made from the same files undisturbed, and the doctor finds nothing.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from graph.storage.workspace import Workspace
from tests.damages import read_at_once
from tests.killing import KILLED, STEPS, ForkServer, NoTies, arrays_that_differ
from tests.workflows.workspaces import ask, use_embedder
from workflows.admin.removal import remove_passages
from workflows.admin.upkeep import run_doctor
from workflows.indexing import index_sources
from workflows.runtime.resources import close_indexes

pytestmark = [pytest.mark.slow, pytest.mark.soak]

KILLS = 500
KILLS_A_ROUND = 10
HOWS = ("anywhere", "in Chroma", "at a step")
TABLES = ("passages", "names", "facts", "passage_names", "passage_facts")
ROUNDING = 1e-6
"""A cosine from Chroma depends in its last bit on whether a vector was there before."""

QUESTIONS = ("Who dammed Lake Sund?", "Where does the Velm flow?", "What was built in Karv in 1911?")
NAMES = ("Ida Brandt", "Lake Sund", "Velm", "Karv", "Ostra", "Belavia", "Otto Marn", "Lisk", "Hanna Rode", "Torv")
DEEDS = ("was built in {year} by {other}", "is a river in {other}", "was founded by {other}", "flows into {other}")
KINDS = (".txt", ".md", ".jsonl")


def sentence(chance: random.Random) -> str:
    name, other = chance.sample(NAMES, 2)
    return f"{name} {chance.choice(DEEDS).format(year=chance.randint(1850, 1950), other=other)}."


def content_for(path: Path, chance: random.Random) -> str:
    """Return the text of a file, whose kind its name tells."""
    texts = [" ".join(sentence(chance) for _ in range(3)) for _ in range(chance.randint(1, 6))]
    rows = [{"id": f"{path.stem}-{n}", "title": chance.choice(NAMES), "text": text} for n, text in enumerate(texts)]
    if path.suffix == ".jsonl":
        return "".join(f"{json.dumps(row)}\n" for row in rows)
    return "\n\n".join([f"# {path.stem}" if path.suffix == ".md" else "Notes", *texts])


@dataclass
class Files:
    """A folder of documents that are edited."""

    folder: Path
    chance: random.Random

    def lay_out(self) -> None:
        """Write ten files or so, of every kind."""
        self.folder.mkdir()
        for number in range(10 + self.chance.randrange(4)):
            self.write(self.folder / f"f{number}{KINDS[number % len(KINDS)]}")

    def write(self, path: Path) -> None:
        """Write a file, in two parts with a pause between, in which a command may read it."""
        text = content_for(path, self.chance)
        half = len(text) // 2
        with path.open("w", encoding="utf-8") as file:
            file.write(text[:half])
            file.flush()
            threading.Event().wait(0.002)
            file.write(text[half:])

    def edit(self) -> None:
        """Rewrite, add or delete one file; some always stay."""
        present = sorted(self.folder.iterdir())
        kind = self.chance.random()
        if kind < 0.2 and len(present) > 4:
            self.chance.choice(present).unlink()
        elif kind < 0.5:
            number = self.chance.randrange(16)
            self.write(self.folder / f"f{number}{KINDS[number % len(KINDS)]}")
        else:
            self.write(self.chance.choice(present))

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Let them be edited all the time, until they come to rest."""
        over = threading.Event()

        def edit_on() -> None:
            while not over.wait(self.chance.uniform(0.005, 0.1)):
                self.edit()

        thread = threading.Thread(target=edit_on)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@dataclass
class Killer:
    """Kills commands, in turn anywhere in their life, while Chroma writes, and at a step of their work.

    Attributes:
        kills: how many died, by how.
        lives: how long a command lives undisturbed, as far as that is known; seconds.
    """

    server: ForkServer
    chance: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    lives: dict[str, float] = field(default_factory=dict)

    def kill(self, root: Path, *arguments: str | Path) -> int:
        """Start a command and kill it; return its exit code, which tells where it was faster."""
        how = HOWS[self.kills.total() % len(HOWS)]
        begun = time.monotonic()
        if how == "at a step":
            process = self.server.start(*arguments, at=self.chance.choice(STEPS[str(arguments[0])]))
            process.join()
        else:
            known = _searched(root)
            process = self.server.start(*arguments)
            if how == "in Chroma":
                while process.is_alive() and _searched(root) <= known:
                    process.join(0.002)
                process.join(self.chance.uniform(0.0, 0.1))
            else:
                process.join(self.chance.uniform(0.0, self.lives.get(str(arguments[0]), 2.0)))
            process.kill()
            process.join()
        code = process.exitcode or 0
        if code == KILLED:
            self.kills[how] += 1
        else:
            self.lives[str(arguments[0])] = time.monotonic() - begun
        return code


def _searched(root: Path) -> set[str]:
    """Return the generations whose search index has been begun."""
    return {path.parent.name for path in (root / "index").glob("*/chroma")}


@dataclass
class Round:
    """One command on one workspace, killed some times.

    Attributes:
        place: an empty folder.
        command: ``index``, ``sync`` or ``remove``.
        changing: whether the files change meanwhile.
    """

    place: Path
    command: str
    changing: bool
    killer: Killer
    chance: random.Random

    def __post_init__(self) -> None:
        self.root, self.whole = self.place / "workspace", self.place / "whole"
        self.files = Files(self.place / "documents", self.chance)
        self.files.lay_out()
        named: list[str | Path] = [self.files.folder]
        if self.command != "index":
            index_sources([self.files.folder], self.root)
        if self.command == "sync":
            for _ in range(6):
                self.files.edit()
            named.append("--replace-all")
        if self.command == "remove":
            named = [*self._remove_from_a_copy()]
        self.arguments = [self.command, *named, "-w", self.root]

    def play(self) -> None:
        """Kill the command some times, with others between, and let it come to its end; then nothing may tell."""
        code = KILLED
        with self.files.changing() if self.changing else nullcontext():
            for _ in range(KILLS_A_ROUND):
                code = self.killer.kill(self.root, *self.arguments)
                if code != KILLED:
                    assert "Traceback" not in self.killer.server.written()[1]
                    break
                self._look()
        assert self.changing or code in (0, KILLED), self.killer.server.written()
        if self.changing or code == KILLED:
            self._run(*self.arguments)
        if self.command == "index" and self.changing:
            # An index does not remove passages of files that changed since.
            self._run("sync", self.files.folder, "-w", self.root)
        if self.command != "remove":
            index_sources([self.files.folder], self.whole)
        self._compare()

    def _remove_from_a_copy(self) -> Iterator[str]:
        """Yield what to remove: some passages, and a file; and remove it from a copy, undisturbed."""
        with Workspace(self.root).open_record() as record:
            sources = record.sources()
        ids = self.chance.sample(sorted(sources), 3)
        source = self.chance.choice(sorted(set(sources.values())))
        shutil.copytree(self.root, self.whole)
        remove_passages(self.whole, ids, [source])
        yield from [*ids, "--source", source]

    def _look(self) -> None:
        """Give another command now and then, which gets along with what a kill left."""
        kind = self.chance.random()
        if kind < 0.15:
            code, out, err = self.killer.server.run("doctor", "-w", self.root, "--json")
            found = json.loads(out)
            problems = {finding["check"] for finding in found.get("findings", []) if not finding["ok"]}
            assert code in (0, 2, 4), err
            assert problems <= {"indexing run"}, found
        elif kind < 0.4:
            look = ["show"] if kind < 0.3 else ["ask", QUESTIONS[0], "--model", "offline"]
            code, out, err = self.killer.server.run(*look, "-w", self.root, "--json")
            assert code == 0 or json.loads(out)["error"]["kind"] == "WorkspaceMissing", (out, err)

    def _run(self, *arguments: str | Path) -> None:
        code, *written = self.killer.server.run(*arguments)
        assert code == 0, written

    def _compare(self) -> None:
        assert dump(self.root) == dump(self.whole)
        mine, other = (Workspace(root).index_folder(current(root)) for root in (self.root, self.whole))
        assert arrays_that_differ(mine, other) == []
        for (answer, scores), (other_answer, others) in zip(answers(self.root), answers(self.whole), strict=True):
            assert answer == other_answer
            assert scores == pytest.approx(others, abs=ROUNDING)
        close_indexes()
        assert [finding for finding in run_doctor(self.root)["findings"] if not finding["ok"]] == []


def current(root: Path) -> int:
    generation = Workspace(root).current()
    assert generation is not None
    return generation


def dump(root: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return everything in the record that does not depend on when it was written."""
    with closing(sqlite3.connect(f"file:{root / 'record.sqlite'}?mode=ro", uri=True)) as database:
        return {name: sorted(database.execute(f"SELECT * FROM {name}"), key=repr) for name in TABLES}


def answers(root: Path) -> list[tuple[str, dict[str, float]]]:
    """Return what is answered, with the scores of its passages."""
    results = [ask(root, question) for question in QUESTIONS]
    return [(result["answer"], {hit["id"]: hit["score"] for hit in result["passages"]}) for result in results]


def test_whatever_is_killed_can_be_given_again_and_ends_as_if_undisturbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, soak_share: float
) -> None:
    use_embedder(monkeypatch, NoTies())
    read_at_once(monkeypatch)
    chance = random.Random(1)
    killer = Killer(ForkServer(tmp_path), chance)
    killer.server.run("--version")
    wanted, while_changing, rounds = round(KILLS * soak_share), 0, 0
    # To a removal it is nothing whether files change.
    restless, resting = cycle(("index", "sync")), cycle(("remove", "sync", "index"))
    while killer.kills.total() < wanted:
        before = killer.kills.total()
        changing = 2 * while_changing <= before
        place = tmp_path / "round"
        place.mkdir()
        Round(place, next(restless if changing else resting), changing, killer, chance).play()
        shutil.rmtree(place)
        while_changing += changing * (killer.kills.total() - before)
        rounds += 1
        assert rounds <= wanted, "a round kills at least once, all in all"
    assert abs(2 * while_changing - wanted) <= 2 * KILLS_A_ROUND
    assert min(killer.kills[how] for how in HOWS) >= wanted // len(HOWS)
