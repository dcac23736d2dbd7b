from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from graph.corrections.apply import Stated
from graph.errors import BadInput, WorkspaceDamaged
from graph.schema import Extraction, Passage, RelationType, Triple, entity_id
from graph.storage.entry import MAX_METADATA, Entry, facts_of, fingerprint, names_of
from graph.storage.record import Record
from graph.storage.record_tables import Additions, NewVectors
from tests.builders import DIMENSION, HashEmbedder, extraction_of, facts_in, names_in, passage_of, write_passages
from tests.records import dump

pytestmark = pytest.mark.usefixtures("database")

FOUNDED = ("Nissan", "founded", "1933", RelationType.TEMPORAL, 0.9)
BASED = ("Nissan", "headquartered in", "Yokohama", RelationType.SPATIAL, 0.8)
NISSAN = passage_of("nissan", "Nissan (company)", "Nissan was founded in 1933.")
YOKOHAMA = passage_of("yokohama", "Yokohama", "Nissan has its seat in Yokohama.")
NO_VECTORS = NewVectors({}, np.zeros((0, DIMENSION), dtype=np.float32))
NOTHING = Additions(NO_VECTORS, NO_VECTORS)


def with_facts(texts: Mapping[str, str]) -> Additions:
    return replace(NOTHING, facts=replace(NO_VECTORS, texts=texts))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "record.sqlite"


@pytest.fixture
def record(path: Path, hash_embedder: HashEmbedder) -> Iterator[Record]:
    with Record(path, create=True) as record:
        write_passages(record, [NISSAN, YOKOHAMA], {"nissan": [FOUNDED], "yokohama": [BASED]}, hash_embedder)
        yield record


class TestKeeping:
    def test_an_entry_comes_back_as_it_was_given(self, path: Path) -> None:
        passage = Passage("日産", "Título ☃", "text\n\u2028 ", "a/b.txt", {"s": "é", "i": 3, "f": 0.5, "b": True})
        extraction = Extraction(("Nissan", "日産"), (Triple(*FOUNDED),), "import", {"malformed triples": 2})
        vector = np.linspace(-1, 1, DIMENSION, dtype=np.float32)
        with Record(path, create=True) as record:
            record.commit([Entry(passage, extraction, 3, vector)], NOTHING, "hash")
        with Record(path) as record:
            (entry,) = record.entries()
        assert (entry.passage, entry.extraction, entry.windows) == (passage, extraction, 3)
        assert np.array_equal(entry.vector, vector)


CONTROLS = ["\x00", "\n", "\x7f", "\x9f"]


class TestIds:
    def test_one_with_a_control_character_or_too_long_is_refused_and_nothing_written(
        self, record: Record, path: Path, hash_embedder: HashEmbedder
    ) -> None:
        before = dump(path)
        too_many = {f"k{i}": "2020-01-01" for i in range(MAX_METADATA + 1)}
        cases = [
            *((passage_of(f"a{control}b", "T", "B."), "is no id of a passage") for control in CONTROLS),
            *(
                (passage_of("v", "V", "A.", **{f"k{control}": 1}), "metadata of the passage 'v'")
                for control in CONTROLS
            ),
            (passage_of("k" * 1_001, "T", "B."), "'k+' is no id of a passage.*1,000"),
            (passage_of("v", "V", "A.", **too_many), "metadata of the passage 'v'.*2,000 at most"),
        ]
        for passage, message in cases:
            with pytest.raises(BadInput, match=message):
                write_passages(record, [passage_of("velm", "Velm", "A."), passage], {}, hash_embedder)
            assert dump(path) == before, passage


class TestGoing:
    def test_names_and_facts_go_with_their_last_passage(self, record: Record) -> None:
        assert set(names_in(record)[1]) == {"nissan", "1933", "yokohama"}
        record.commit([], NOTHING, "hash", removed=["nissan"])
        assert set(names_in(record)[1]) == {"nissan", "yokohama"}
        assert facts_in(record)[1] == ["nissan headquartered in yokohama"]
        record.commit([], NOTHING, "hash", removed=["yokohama"])
        assert names_in(record)[1] == []
        assert facts_in(record)[0] == []


class TestTransaction:
    def test_an_error_in_the_middle_leaves_everything_as_it_was(self, record: Record, path: Path) -> None:
        class Broken(dict[str, str]):
            def items(self) -> NoReturn:
                raise KeyboardInterrupt

        before = dump(path)
        entry = Entry(replace(NISSAN, text="Changed."), extraction_of([BASED]), 1, np.ones(DIMENSION, dtype=np.float32))
        with pytest.raises(KeyboardInterrupt):
            record.commit([entry], with_facts(Broken()), "hash", removed=["yokohama"])
        assert dump(path) == before
        record.commit([], NOTHING, "hash", removed=["yokohama"])
        assert dump(path) != before

    def test_a_reader_sees_the_last_commit_while_the_next_is_under_way(self, record: Record, path: Path) -> None:
        seen: list[tuple[int, int]] = []

        class Look(dict[str, str]):
            def items(self) -> Any:
                with Record(path) as reader:
                    seen.append((reader.count_passages(), reader.generation))
                return super().items()

        record.commit([], with_facts(Look()), "hash", removed=["yokohama"])
        assert seen == [(2, 1)]
        assert (record.count_passages(), record.generation) == (1, 2)


@pytest.mark.sqlite_file
class TestDamage:
    def test_a_file_that_is_no_record(self, path: Path) -> None:
        with pytest.raises(WorkspaceDamaged, match=r"record.sqlite is not there.*mara index") as refused:
            Record(path)
        assert refused.value.exit_code == 4
        no_database = b"not a database at all, but long enough to look like one" * 99
        for content, reason in ((b"", "is not there"), (no_database, "cannot be read")):
            path.write_bytes(content)
            with pytest.raises(WorkspaceDamaged, match=rf"record.sqlite {reason}.*backup"):
                Record(path)

    def test_another_format_is_refused_with_the_way_out(self, record: Record, path: Path) -> None:
        for version in ("1", "3", "next"):
            with sqlite3.connect(path) as database:
                database.execute("UPDATE meta SET value = ? WHERE key = 'format_version'", (version,))
            before = path.read_bytes()
            with pytest.raises(WorkspaceDamaged, match=rf"written in format {version}.*--workspace NEW"):
                Record(path)
            assert path.read_bytes() == before, version


def test_a_fingerprint_changes_with_the_passage_and_with_what_is_extracted_from_it() -> None:
    passage, extraction = NISSAN, extraction_of([FOUNDED], entities=["Nissan"])
    before = fingerprint(passage, extraction)
    for change in ({"title": "Datsun"}, {"text": "No."}, {"source": "elsewhere"}, {"metadata": {"year": 1934}}):
        assert fingerprint(replace(passage, **change), extraction) != before, change
    for triple, names in (
        (FOUNDED, []),
        (BASED, ["Nissan"]),
        ((*FOUNDED[:3], RelationType.ATTRIBUTION, 0.9), ["Nissan"]),
        ((*FOUNDED[:4], 0.5), ["Nissan"]),
    ):
        assert fingerprint(passage, extraction_of([triple], entities=names)) != before, triple
    noted = replace(extraction, extractor="another", notes={"malformed triples": 3})
    assert fingerprint(passage, noted) == before


class TestTextsToEmbed:
    def test_the_names_of_a_passage_are_its_titles_its_entities_and_its_triples_ends(self) -> None:
        names = names_of(Stated.of(NISSAN, extraction_of([FOUNDED], entities=["NISSAN", "Datsun", "  "])))
        assert sorted(names.values()) == ["1933", "datsun", "nissan"]
        assert names == {entity_id(name): name for name in names.values()}

    def test_spellings_of_one_fact_have_one_id_and_one_text_and_types_an_id_each(self) -> None:
        spellings = [("Nissan.", "Founded", "1933"), ("NISSAN", " founded ", "(1933)"), ("nissan", "founded", "1933")]
        (text,) = {tuple(facts_of(Stated.of(NISSAN, extraction_of([parts]))).items()) for parts in spellings}
        assert text[0][1] == "nissan founded 1933"
        both = extraction_of([FOUNDED, (*FOUNDED[:3], RelationType.CAUSALITY)])
        assert [*facts_of(Stated.of(NISSAN, both)).values()] == 2 * ["nissan founded 1933"]
