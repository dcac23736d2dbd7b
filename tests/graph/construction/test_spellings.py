"""The spellings of a generation are found in many texts as a matcher finds them in one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.construction.columns import Columns
from graph.construction.spellings import KnownSpellings, write_spellings
from graph.text import NameMatcher

WORDS = ["ada", "bob", "cyd", "日", "x1"]

spellings = st.sets(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), max_size=12)
texts = st.lists(st.lists(st.sampled_from([*WORDS, "other"]), max_size=8), max_size=5)


@settings(max_examples=60, deadline=None)
@given(spellings, texts)
def test_any_texts(known: set[str], corpus: Sequence[Sequence[str]]) -> None:
    names = [spelled for spelled in sorted(known) if len(spelled.replace(" ", "")) > 2]
    matcher = NameMatcher.of((name, number) for number, name in enumerate(names))
    with TemporaryDirectory() as folder:
        write_spellings([(name, number) for number, name in enumerate(names)], Path(folder))
        bounds = np.cumsum([0, *map(len, corpus)], dtype=np.int64)
        found = KnownSpellings(Columns(Path(folder))).find([word for text in corpus for word in text], bounds)
    by_text: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for start, length, spelling in zip(*(column.tolist() for column in found), strict=True):
        place = int(np.searchsorted(bounds, start, side="right")) - 1
        by_text[place].append((start - int(bounds[place]), length, spelling))
    for number, text in enumerate(corpus):
        wanted = [(each.start, each.end - each.start, each.name) for each in matcher.find(text)]
        assert by_text[number] == wanted
