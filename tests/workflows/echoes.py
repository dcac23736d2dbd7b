"""Passages of two owners, and models that repeat all that they are shown: whatever is hidden and gets out is found."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.builders import TripleParts, passage_of, publish_workspace
from tests.scripted_server import RecordedRequest, Reply, ReplyLike, Script
from tests.workflows.ragenta_world import YES
from tests.workflows.small_world import MANAGED, shown_to_model
from workflows.settings.ragenta import RagentaContext

QUESTION = "What does Lake Sund hold?"
ANN, BOB = {"owner": "ann"}, {"owner": "bob"}

PASSAGES = [
    passage_of(
        f"{owner}-{number}", f"Tale zo{owner}{number}", f"Lake Sund holds zo{owner}{number} of old.", owner=owner
    )
    for number in (1, 2, 3)
    for owner in ("ann", "bob")
]
"""Each names a thing of its own, ``zoann1`` to ``zobob3``: no word of the question or of another passage."""

TRIPLES: dict[str, list[TripleParts]] = {
    passage.id: [("Lake Sund", "holds", passage.title.removeprefix("Tale "))] for passage in PASSAGES
}


def publish_echoes(folder: Path) -> Path:
    """Publish the passages with their facts; return the workspace."""
    return publish_workspace(folder / "workspace", PASSAGES, TRIPLES).root


def echo_context(root: Path, where: Mapping[str, Any], **changes: Any) -> RagentaContext:
    """Settings that retrieve two thirds of all passages for the question, and all for a follow-up."""
    few = {"top_k": 4, "follow_up_passages": 6, "max_follow_ups": 1, "filter_facts": False, "n": 1.0}
    return RagentaContext(**{"workspace": str(root), "where": where, **few, **changes})


def hidden_in(value: Any, owner: str) -> list[str]:
    """Return what of an owner's passages a JSON value or a text tells."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    tells = [passage.id for passage in PASSAGES if passage.metadata["owner"] == owner]
    return [word for word in (*tells, f"zo{owner}") if word in text]


def echoing(*, follow_up: bool = True) -> dict[str, Script]:
    """Return scripts of all roles: each replies first with what it was shown as a whole, and then properly.

    Args:
        follow_up: whether the claim judge finds the answer wanting, and asks for more.
    """
    return {
        "predictor": _malformed_first(lambda body: shown_to_model(body)["text"], finish_reason="length"),
        "judge": _malformed_first(lambda body: YES),
        "final predictor": _malformed_first(_writes),
        "claim judge": _malformed_first(lambda body: _checks(body, follow_up=follow_up)),
        "manager": [MANAGED],
    }


def words_shown(request: RecordedRequest) -> str:
    """Return all that a request tells the model."""
    return json.dumps(request.body["messages"], ensure_ascii=False)


def _malformed_first(proper: Callable[[Mapping[str, Any]], ReplyLike], finish_reason: str = "stop") -> Script:
    def reply(body: Mapping[str, Any]) -> ReplyLike:
        if len(body["messages"]) > 2:
            return proper(body)
        return Reply(json.dumps(shown_to_model(body))[:1500], finish_reason=finish_reason)

    return reply


def _writes(body: Mapping[str, Any]) -> str:
    passages = shown_to_model(body)["passages"]
    return " ".join(f"{passage['text'].removesuffix('.')} [{passage['number']}]." for passage in passages)


def _checks(body: Mapping[str, Any], *, follow_up: bool) -> str:
    claims = shown_to_model(body)["claims"]
    said = " ".join(claim["text"] for claim in claims)
    component = {
        "text": f"What of {said}",
        "coverage": "PARTIALLY ANSWERED" if follow_up else "FULLY ANSWERED",
        "claims": [claim["number"] for claim in claims],
    }
    return json.dumps(
        {
            "structure": "single",
            "components": [component],
            "claims": [{"number": c["number"], "supported_by": c["cited"], "relevant": True} for c in claims],
            "follow_ups": [{"component": 1, "question": f"Lake Sund: what more than {said}"[:400]}]
            if follow_up
            else [],
        }
    )
