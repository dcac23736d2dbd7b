"""Long runs of white space are cut while reading, whatever the source; shorter ones stay as they are."""

from __future__ import annotations

import json
from pathlib import Path

from graph.sources.documents import read_documents
from graph.sources.loaders.document import LONGEST_SPACE, short_spaced

LONG = " " * (LONGEST_SPACE + 1)


def test_a_long_run_is_cut_to_a_space(tmp_path: Path) -> None:
    for name, content in [
        ("moor.txt", f"Anna Berg was born{LONG}in Moor."),
        ("moor.jsonl", json.dumps({"text": f"Anna Berg was born{LONG}in Moor."})),
        ("moor.csv", f"text\nAnna Berg was born{LONG}in Moor.\n"),
        ("moor.html", f"<pre>Anna Berg was born{LONG}in Moor.</pre>"),
        ("moor.eml", f"Subject: Moor\n\nAnna Berg was born{LONG}in Moor."),
    ]:
        (tmp_path / name).write_text(content)
        documents = read_documents([tmp_path / name])
        (passage,) = documents.passages.values()
        assert passage.text.endswith("Anna Berg was born in Moor."), name


def test_lines_and_paragraphs_stay_apart() -> None:
    for run, left in [(f"{LONG}\n{LONG}", "\n"), ("\n" * 999, "\n\n"), ("\t" * 999, " ")]:
        assert short_spaced(f"Anna{run}Berg") == f"Anna{left}Berg", run
