from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graph.construction.columns import find, packed

hashes = st.sampled_from([f"{high:016x}{low:08x}" for high in (0, 1, 2**63, 2**64 - 1) for low in (0, 1, 2**32 - 1)])
ids = st.lists(hashes.map(lambda digits: f"entity-{digits}"), max_size=12)


@given(ids, ids)
def test_an_id_is_found_where_it_stands(known: list[str], sought: list[str]) -> None:
    ordered = sorted(set(known))
    wanted = [ordered.index(key) if key in ordered else -1 for key in sought]
    assert find(packed(ordered), packed(sought)).tolist() == wanted
