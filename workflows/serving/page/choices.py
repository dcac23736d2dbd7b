"""The settings that a visitor chooses on the page, in plain words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from graph.retrieve.modes import Mode
from workflows.output.printable import visible
from workflows.settings.enums import Workflow

ANSWERING: Mapping[Workflow, str] = {Workflow.MARA: "Quick", Workflow.RAGENTA: "Thorough: checks each claim"}
"""The workflows; the first one is the page's default."""

RANKINGS: Mapping[Mode, str] = {
    Mode.MARA: "By the relations that the question asks for",
    Mode.HIPPORAG2: "By the graph alone, as HippoRAG 2 does",
    Mode.MARA_MATRIX: "As HippoRAG 2 does, with weights of relations",
    Mode.DENSE: "By meaning",
    Mode.SPARSE: "By words",
    Mode.HYBRID: "By meaning and words",
}

_SIGNS = {"$eq": "is", "$ne": "is not", "$gte": "at least", "$lte": "at most"}


def differing(settings: Mapping[str, Any]) -> list[str]:
    """Return those settings of a turn that differ from the page's defaults, each in a few words."""
    return [visible(words) for words in _differing(settings)]


def _differing(settings: Mapping[str, Any]) -> Iterator[str]:
    if workspace := settings.get("workspace"):
        yield f"Workspace: {workspace}"
    if settings.get("workflow", Workflow.MARA) != Workflow.MARA:
        yield ANSWERING[Workflow(settings["workflow"])]
    if mode := settings.get("mode"):
        yield f"Ranking: {RANKINGS[Mode(mode)].lower()}"
    if as_of := settings.get("as_of"):
        yield f"As of {as_of}"
    if settings.get("personalise"):
        yield "Personal"
    for key, condition in (settings.get("where") or {}).items():
        signs = condition if isinstance(condition, Mapping) else {"$eq": condition}
        for sign, value in signs.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{key} {_SIGNS.get(sign, sign)} {text}"
