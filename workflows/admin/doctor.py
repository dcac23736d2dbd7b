"""Examining and repairing a workspace, told as plain values."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from graph.checks.doctor import Examination, examine_workspace, repair_workspace
from graph.errors import MaraError
from workflows.context import Context
from workflows.runtime.resources import OFFLINE, chat_model_name, chat_model_of


def run_doctor(root: Path, *, repair: bool = False) -> dict[str, Any]:
    """Return what is right and wrong with a workspace; with ``repair``, what was done about it, and what was before.

    The chat model is told beside it, as far as that can be seen without a request.

    Raises:
        WorkspaceMissing: there is none.
        WorkspaceLocked: it is to be repaired, and another process is writing.
        StoreUnavailable: the Chroma server does not take what is written.
    """
    if not repair:
        return {"workspace": str(root), **_told(examine_workspace(root)), "chat_model": _chat_model()}
    before, done, after = repair_workspace(root)
    return {
        "workspace": str(root),
        **_told(after),
        "done": done,
        "before": _told(before),
        "chat_model": _chat_model(),
    }


def _told(found: Examination) -> dict[str, Any]:
    return {
        "ok": found.ok,
        "generation": found.generation,
        "findings": [{**asdict(finding), "examples": list(finding.examples)} for finding in found.findings],
    }


def _chat_model() -> dict[str, Any]:
    """Return the chat model that runs get by default, and whether it can be had; nothing is asked of it."""
    context = Context()
    name = chat_model_name(context)
    try:
        chat_model_of(context, context.temperature)
    except MaraError as fault:
        return {"name": name, "ok": False, "message": fault.message, "advice": fault.hint}
    message = "none is configured, the offline agents answer" if name == OFFLINE else f"{name} is configured"
    return {"name": name, "ok": True, "message": message, "advice": ""}
