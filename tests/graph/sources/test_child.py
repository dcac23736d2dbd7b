"""Files are read in a process that ends with the file that takes too much, and is another one for the next file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.errors import BadInput
from graph.sources import child
from graph.sources.documents import read_documents
from graph.sources.loaders import content_type_of, kinds
from tests.graph.sources.loaders.files import passage_of_file, write

LOADER = """
import os, sys, time
from graph.sources.loaders.document import Document

def load(path, source):
    text = path.read_text()
    if text == "endless":
        time.sleep(3600)
    elif text == "greedy":
        bytes(3 * 2**30)
    elif text == "crash":
        os._exit(1)
    elif text == "loud":
        print("x" * 100_000)
        sys.stdout.flush()
    elif text == "fault":
        raise LookupError("nothing there")
    elif text == "keys":
        return Document("", f"key: {os.environ.get('OPENAI_API_KEY')}", source)
    elif text == "odd":
        return Document("", "text", source, {"a": object()})
    return Document("", f"{text} {os.getpid()}", source)
"""


@pytest.fixture
def kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install a package with a loader of .trial files; return a folder."""
    place = tmp_path / "packages"
    write(place / "trial_loader.py", LOADER)
    write(place / "trial-1.0.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: trial\nVersion: 1.0\n")
    write(place / "trial-1.0.dist-info" / "entry_points.txt", "[mara.loaders]\n.trial = trial_loader:load\n")
    monkeypatch.syspath_prepend(str(place))
    kinds.cache_clear()
    yield tmp_path / "files"
    kinds.cache_clear()


def test_a_loader_of_another_package_is_found_by_its_entry_point(kind: Path) -> None:
    passage = passage_of_file(write(kind / "Pumps_of_Karv.trial", "text"))
    assert passage.title == "Pumps of Karv"
    assert passage.metadata["file"] == "Pumps_of_Karv.trial"
    assert content_type_of(".trial") is None


def test_one_process_reads_the_files_of_a_run(kind: Path) -> None:
    for name in "abc":
        write(kind / f"{name}.trial", "text")
    texts = {each.text for each in read_documents([kind, write(kind / "d.trial", "text")]).passages.values()}
    assert len(texts) == 1
    assert texts != {f"text {os.getpid()}"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("crash", "cannot be read in 60 s and 2 GiB of memory"),
        ("fault", r"cannot be read as TRIAL \(nothing there\)"),
        ("odd", r"cannot be read \(PydanticSerializationError\)"),
        pytest.param(
            "greedy",
            r"cannot be read as TRIAL \(MemoryError\)",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="the system does not limit memory"),
        ),
    ],
)
def test_a_file_that_ends_its_reader_is_refused_and_the_next_is_read(kind: Path, content: str, reason: str) -> None:
    path = write(kind / "a.trial", content)
    write(kind / "b.trial", "good")
    documents = read_documents([kind])
    assert [each.source for each in documents.passages.values()] == ["b.trial"]
    assert [each.source for each in documents.refused] == [str(path)]
    with pytest.raises(BadInput, match=rf"a\.trial {reason}"):
        read_documents([path])


def test_a_file_without_end_is_given_up_after_its_time(kind: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "SECONDS", 2.0)
    for name in ("endless", "good"):
        write(kind / f"{name}.trial", name)
    documents = read_documents([kind])
    assert "endless.trial cannot be read in 2 s" in documents.refused[0].reason
    assert [each.source for each in documents.passages.values()] == ["good.trial"]


def test_what_libraries_print_is_no_answer(kind: Path) -> None:
    assert passage_of_file(write(kind / "a.trial", "loud")).text.startswith("loud ")


def test_keys_stay_out_of_the_process(kind: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert passage_of_file(write(kind / "a.trial", "keys")).text == "key: None"
