"""Two tenants on one page: whatever their browsers send, neither is told anything of the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.workflows.serving.page.site import Visitor, new_id, site_of, visitor
from tests.workflows.tenants import CORPORA, KEYS, MARKERS, QUESTION, keys_file
from workflows.indexing import index_sources
from workflows.settings.indexing import IndexingContext

WIDER = [{"tenant": "b"}, {"tenant": {"$in": ["a", "b"]}}, {"tenant": {"$ne": "a"}}, {"zbudget": {"$gte": 0}}]


@pytest.fixture
def tenants(hashing: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Visitor]:
    """Visitors of one page, each with a key of their own."""
    root = tmp_path / "root" / "workspace"
    for tenant, rows in CORPORA.items():
        source = tmp_path / f"{tenant}.jsonl"
        source.write_text("\n".join(json.dumps({**row, "tenant": tenant}) for row in rows), encoding="utf-8")
        fields = {"metadata": "tenant,zbudget" if tenant == "b" else "tenant"}
        index_sources([source], root, settings=IndexingContext(fields=fields))
    (tmp_path / "keys.toml").write_text(keys_file(), encoding="utf-8")
    monkeypatch.setenv("MARA_AUTH", str(tmp_path / "keys.toml"))
    monkeypatch.setenv("TEST_TOKEN_SECRET", "a shared secret of forty characters, at least")
    client = visitor(site_of(root, tmp_path, uploads=tmp_path / "uploads")).client
    return {name: Visitor(client, {"authorization": f"Bearer {key}"}) for name, key in KEYS.items()}


def sees_nothing_of_b(text: str) -> bool:
    return not any(marker in text for marker in MARKERS["b"])


def test_answers_details_filters_and_explanations_stay_within_what_a_tenant_may_see(
    tenants: dict[str, Visitor],
) -> None:
    anna, conversation = tenants["anna"], new_id()
    for workflow in ("mara", "ragenta"):
        events = anna.ask(QUESTION, conversation, settings={"workflow": workflow})
        turn = events[-1]["turn"]
        assert turn["state"] == "answered"
        assert turn["n_passages"] > 0
        seen = json.dumps([events[1:], anna.get(f"turns/{turn['id']}"), anna.get("filters")])
        assert sees_nothing_of_b(seen.replace(json.dumps(QUESTION), ""))
        form = {"key": KEYS["anna"]}
        assert sees_nothing_of_b(anna.client.post(f"/page/explanation/{turn['id']}", data=form).text)
    assert "Zember" in tenants["ben"].answer(QUESTION)["text"]


@pytest.mark.parametrize("where", WIDER)
def test_no_filter_widens_what_a_tenant_sees(tenants: dict[str, Visitor], where: dict[str, object]) -> None:
    body = {"conversation": new_id(), "turn": new_id(), "question": QUESTION, "settings": {"where": where}}
    reply = tenants["anna"].client.post("/page/api/turns", json=body, headers=tenants["anna"].headers)
    assert sees_nothing_of_b(reply.text.replace(QUESTION, "").replace(json.dumps(where)[1:-1], ""))


def test_who_sees_a_part_adds_no_documents_and_who_sees_all_may(tenants: dict[str, Visitor]) -> None:
    assert tenants["anna"].get("setup")["uploads"] is None
    assert tenants["olga"].get("setup")["uploads"] is not None
