"""A large workspace's small changes are published as layers over one base; what opens them answers as ever."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graph.construction.knowledge_graph import load
from graph.publish.chroma_store import ChromaSet, connect, server_address
from graph.publish.generation_vectors import GenerationVectors, open_vectors
from graph.publish.vector_store import COLLECTIONS
from graph.retrieve.open_index import open_index
from graph.storage.place import collections_prefix
from graph.storage.workspace import Layer, Workspace
from tests.builders import Silent
from tests.cases import mostly_slow
from tests.damages import everything_in
from tests.layered import assert_answers, assert_opens, generations, layer_of, write

KEYS = "abcdefghijkl"
FIRST = dict.fromkeys("abcdefghij", 0)
SECOND = {**dict.fromkeys("abdeghij", 0), "c": 1}
"""After the change that the layer holds: one passage changed, one gone."""


def opened(workspace: Workspace) -> GenerationVectors:
    """The vectors of the current generation."""
    return open_vectors(workspace, "", load(workspace.index_folder(workspace.current() or 0)))


def ids_of(workspace: Workspace, generation: int, rows: Mapping[str, Sequence[int]]) -> list[str]:
    """The ids of some passages of a generation."""
    graph = load(workspace.index_folder(generation))
    return [graph.passage_ids[row] for row in rows["passages"]]


def record_id(workspace: Workspace) -> str:
    with workspace.open_record() as record:
        return record.workspace_id


@pytest.fixture(autouse=True)
def layering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graph.publish.generation_vectors._LARGE", 1)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole index."""
    root = tmp_path_factory.mktemp("template") / "workspace"
    write(root, FIRST)
    return root


@pytest.fixture
def workspace(template: Path, tmp_path: Path) -> Workspace:
    return Workspace(Path(shutil.copytree(template, tmp_path / "workspace")))


@pytest.fixture(scope="module")
def layered(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A layer, generation 2, over a base, generation 1."""
    root = Path(shutil.copytree(template, tmp_path_factory.mktemp("layered") / "workspace"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("graph.publish.generation_vectors._LARGE", 1)
        write(root, {"c": 1}, removed=["f"])
    return root


@pytest.fixture
def changed(layered: Path, tmp_path: Path) -> Workspace:
    return Workspace(Path(shutil.copytree(layered, tmp_path / "changed")))


class TestPublishing:
    def test_a_small_change_writes_what_changed_alone(self, changed: Workspace) -> None:
        assert generations(changed) == {"1", "2"}
        vectors = opened(changed)
        assert [vectors._own.count(name) for name in COLLECTIONS] == [2, 1]
        vectors.close()
        assert ids_of(changed, 2, layer_of(changed).new) == ["c"]
        assert ids_of(changed, 1, layer_of(changed).gone) == ["c", "f"]
        assert assert_opens(changed, SECOND) == 2

    def test_changes_lie_on_the_base_as_it_is_and_leave_an_empty_layer_when_they_are_taken_back(
        self, workspace: Workspace
    ) -> None:
        before = everything_in(workspace.index_folder(1))
        write(workspace.root, {"new": 1})
        assert everything_in(workspace.index_folder(1)) == before
        write(workspace.root, {}, removed=["new"])
        assert layer_of(workspace).base == 1
        assert not any([*layer_of(workspace).gone.values(), *layer_of(workspace).new.values()])
        assert assert_opens(workspace, FIRST) == 3

    @pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
    def test_after_any_changes_it_answers_as_a_fresh_workspace(self, tmp_path: Path, seed: int) -> None:
        chance = random.Random(seed)
        content = dict.fromkeys(KEYS, 0)
        workspace = Workspace(tmp_path / "changed")
        write(workspace.root, content)
        for step in range(1, 4):
            new = {f"{key}{step}": step for key in chance.sample(KEYS, chance.randint(0, 2))}
            new |= {key: chance.randint(0, 2) for key in chance.sample([*content], chance.randint(0, 2))}
            removed = [key for key in chance.sample([*content], chance.randint(0, 2)) if key not in new]
            write(workspace.root, new, removed)
            content = {key: state for key, state in {**content, **new}.items() if key not in removed}
            base = layer_of(workspace).base
            assert generations(workspace) == {str(base), str(workspace.current())}
            assert assert_opens(workspace, content) == workspace.current() == step + 1
        write(tmp_path / "fresh", content)
        ours, fresh = opened(workspace), opened(Workspace(tmp_path / "fresh"))
        for name in COLLECTIONS:
            rows = range(fresh.count(name))
            assert ours.count(name) == len(rows)
            assert np.allclose(ours.vectors(name, rows), fresh.vectors(name, rows), atol=1e-6)
        ours.close()
        fresh.close()

    def test_a_change_that_is_too_large_makes_a_whole_index(self, changed: Workspace) -> None:
        content = dict.fromkeys("cdefghij", 2)
        write(changed.root, content, removed=["a", "b"])
        assert layer_of(changed).base == changed.current() == 3
        assert generations(changed) == {"3"}
        assert assert_opens(changed, content) == 3

    def test_of_a_small_index_all_is_written(self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("graph.publish.generation_vectors._LARGE", 1_000)
        write(workspace.root, {"c": 1}, removed=["f"])
        assert layer_of(workspace).base == 2
        assert generations(workspace) == {"2"}
        assert assert_opens(workspace, SECOND) == 2


def base_gone(workspace: Workspace) -> None:
    shutil.rmtree(workspace.index_folder(1))


def base_of_another_set(workspace: Workspace) -> None:
    replace(layer_of(workspace, 1), key="another", base_key="another").save(workspace.index_folder(1))


def base_lacks_a_fact(workspace: Workspace) -> None:
    vectors = opened(workspace)
    assert isinstance(vectors._base, ChromaSet)
    vectors._base._open("facts")[0].delete(ids=["0"])
    vectors.close()


def layer_gone(workspace: Workspace) -> None:
    shutil.rmtree(workspace.index_folder(2) / "chroma")


def said_gone(workspace: Workspace) -> None:
    (workspace.index_folder(2) / "search.json").unlink()


def said(change: Callable[[Layer], object]) -> Callable[[Workspace], None]:
    """What is said of the layer is something else."""

    def damage(workspace: Workspace) -> None:
        changed = change(layer_of(workspace))
        if isinstance(changed, Layer):
            changed.save(workspace.index_folder(2))
        else:
            (workspace.index_folder(2) / "search.json").write_text(json.dumps(changed))

    return damage


OF_THE_BASE = [base_gone, base_of_another_set]
DAMAGES: dict[str, Callable[[Workspace], None]] = {
    **{damage.__name__: damage for damage in (*OF_THE_BASE, base_lacks_a_fact, layer_gone, said_gone)},
    "nothing gone": said(lambda layer: replace(layer, gone={})),
    "on what never was": said(lambda layer: replace(layer, base=9)),
    "rows that are none": said(lambda layer: replace(layer, new={"facts": [900, 901], "passages": [902]})),
    "as an older version wrote it": said(lambda layer: {"base": 1, "commit": "c", "vectors": "", "removed": {}}),
}


class TestDerivingAgain:
    @pytest.mark.parametrize("damage", mostly_slow(DAMAGES, 3))
    def test_what_is_damaged_is_made_whole_when_it_is_opened(
        self, changed: Workspace, damage: Callable[[Workspace], None]
    ) -> None:
        damage(changed)
        assert assert_opens(changed, SECOND) == 3
        assert layer_of(changed).base == 3
        assert generations(changed) == {"3"}

    @pytest.mark.parametrize("damage", mostly_slow([*OF_THE_BASE, said_gone], 1))
    def test_no_other_process_lays_a_layer_on_it(self, changed: Workspace, damage: Callable[[Workspace], None]) -> None:
        damage(changed)
        write(changed.root, {"x": 1})
        assert layer_of(changed).base == changed.current()
        assert generations(changed) == {str(changed.current())}
        assert assert_opens(changed, {**SECOND, "x": 1}) == changed.current()

    def test_a_writer_that_ended_between_its_layer_and_its_publication(
        self, changed: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Killed(BaseException):
            pass

        def killed(*_: object, **__: object) -> None:
            raise Killed

        with monkeypatch.context() as patched:
            patched.setattr(Workspace, "publish", killed)
            with pytest.raises(Killed):
                write(changed.root, {"x": 1})
        assert changed.current() == 2
        assert Layer.load(changed.index_folder(3)) is not None
        assert assert_opens(changed, {**SECOND, "x": 1}) == 4
        assert generations(changed) == {"4"}


def test_a_server_takes_layers_and_forgets_what_nothing_lies_on(
    tmp_path: Path, chroma_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sets(workspace: Workspace) -> set[str]:
        prefix = collections_prefix(tmp_path, record_id(workspace))
        names = {each.name for each in connect(server_address(chroma_url)).list_collections()}
        return {name.removeprefix(prefix).partition("-")[0] for name in names if name.startswith(prefix)}

    monkeypatch.setenv("MARA_VECTORS", f"chroma+{chroma_url}")
    write(tmp_path, FIRST)
    workspace = Workspace(tmp_path)
    base = layer_of(workspace).key
    reader = open_index(tmp_path, Silent())
    write(tmp_path, {"c": 1}, removed=["f"])
    assert layer_of(workspace).base == 1
    assert sets(workspace) == {base, layer_of(workspace).key}
    assert assert_opens(workspace, SECOND) == 2
    third = dict.fromkeys("abcdefgh", 3)
    write(tmp_path, third)
    assert layer_of(workspace).base == 3
    assert sets(workspace) == {base, layer_of(workspace).key}
    assert_answers(reader, FIRST)
    reader.close()
    write(tmp_path, {"x": 3})
    assert sets(workspace) == {layer_of(workspace).base_key, layer_of(workspace).key}
    monkeypatch.delenv("MARA_VECTORS")
    assert assert_opens(workspace, {**SECOND, **third, "x": 3}) == layer_of(workspace).base == 5
