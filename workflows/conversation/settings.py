"""The settings of graph chat: which workflow answers, and every setting of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Optional

from pydantic import Field, create_model

from workflows.context import make_context
from workflows.settings.enums import Workflow
from workflows.settings.mara import Context
from workflows.settings.ragenta import RagentaContext
from workflows.settings.renamed import SettingsForm

ANSWER = "answer"
"""The node that answers."""


class ChatSettings(SettingsForm):
    """The settings that are a conversation's own: its workflow, and whether sources are listed."""

    earlier: ClassVar[Mapping[str, str]] = RagentaContext.earlier

    workflow: Workflow = Field(default=Workflow.MARA, title="Workflow that answers")
    """Workflow that answers: mara, or ragenta, which judges passages and checks claims. The settings of Judge and
    Follow-ups are of ragenta alone.
    """
    list_sources: bool = Field(default=True, title="List of sources")
    """Whether the text of an answer ends with the list of its sources."""

    def chosen(self) -> Context:
        """Return the settings of the workflow.

        A form sends all its fields: one that holds its default counts as not given.

        Raises:
            BadInput: the workflow lacks a setting that was given, or a value is out of its range.
        """
        fields = type(self).model_fields
        values = {name: getattr(self, name) for name in fields if name not in ChatSettings.model_fields}
        changed = {
            name: value
            for name, value in values.items()
            if value != fields[name].get_default(call_default_factory=True)
        }
        return make_context(self.workflow, **changed)


def _settings() -> dict[str, Any]:
    """The settings of all workflows; one whose default differs between them is empty by default."""
    fields: dict[str, Any] = {}
    for name, field in RagentaContext.model_fields.items():
        setting: Any = field
        kind: Any = field.rebuild_annotation()
        shared: Any = Context.model_fields.get(name, field)
        if shared.default != field.default:
            kind = Optional[kind]  # noqa: UP045 - made at run time
            setting = Field(
                default=None,
                description=f"{shared.description} Empty: the workflow's own ({shared.default}, {field.default}).",
                title=shared.title,
            )
        fields[name] = (kind, setting)
    return fields


ChatContext: type[ChatSettings] = create_model("ChatContext", __base__=ChatSettings, **_settings())
"""The settings of a conversation."""


def context_of_chat(settings: ChatSettings | Context | None) -> Context:
    """Return the settings that a question of a conversation is asked with.

    Args:
        settings: what the graph was run with. Python may pass a workflow's own context, too, with agents of its own.

    Raises:
        BadInput: see `ChatSettings.chosen`.
    """
    if isinstance(settings, Context):
        return settings
    return (settings or ChatContext()).chosen()


def lists_sources(settings: ChatSettings | Context | None) -> bool:
    """Tell whether the answers of a conversation list their sources, from what the graph was run with."""
    return not isinstance(settings, ChatSettings) or settings.list_sources
