"""Options shared by several commands, and the settings they make."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from graph.errors import BadInput
from graph.retrieve.modes import Mode
from workflows.cli.command import Group, publish_interrupted
from workflows.context import Context, context_of_settings
from workflows.settings.enums import Workflow
from workflows.settings.indexing import IndexingContext
from workflows.settings.problems import filled_in
from workflows.settings.ragenta import RagentaContext
from workflows.settings.renamed import SettingsForm

_SPELLED = {"fields": "field", "conversation_id": "conversation", "user_id": "user"}


def option_of(setting: str) -> str:
    """Return how a setting is given on the command line."""
    name = _SPELLED.get(setting, setting)
    return f"--{name.replace('_', '-')}" if name in _WITH_AN_OPTION else f"--set {setting}"


def named_path(text: str) -> Path:
    """Return a path given on the command line. Raises BadParameter for an empty name, as of an unset variable."""
    if not text or "\0" in text:
        raise typer.BadParameter("the name is empty, or holds a character that no name can")
    return Path(text)


def given_text(text: str) -> str:
    """Return a text given on the command line. Raises BadParameter for an empty one, as of an unset variable."""
    if not text.strip():
        raise typer.BadParameter("it is empty: give a value, or leave the option out")
    return text


def text_option(metavar: str, help_text: str, *names: str) -> Any:
    """Return an option that takes a text that is not empty; ``help_text`` is its help."""
    return typer.Option(*names, parser=given_text, metavar=metavar, help=help_text)


def text_argument(metavar: str, help_text: str) -> Any:
    """Return an argument that is a text that is not empty; ``help_text`` is its help."""
    return typer.Argument(parser=given_text, metavar=metavar, help=help_text)


def path_option(metavar: str, help_text: str, *names: str) -> Any:
    """Return an option that takes a path, ``help_text`` being its help."""
    return typer.Option(*names, parser=named_path, metavar=metavar, help=help_text)


def path_argument(metavar: str, help_text: str) -> Any:
    """Return an argument that is a path, ``help_text`` being its help."""
    return typer.Argument(parser=named_path, metavar=metavar, help=help_text)


QuestionArgument = Annotated[list[str], typer.Argument(metavar="QUESTION", help="Question, best in quotes.")]
WorkflowOption = Annotated[Workflow, typer.Option(help="ragenta also judges passages, checks claims and follows up.")]
ModelOption = Annotated[str | None, typer.Option(help="Chat model; or 'local', 'local:FILE.gguf', 'offline'.")]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(metavar="CONDITION", help="Only passages with this metadata: KEY=VALUE, or != < <= > >=. Repeatable."),
]
PriceInOption = Annotated[float | None, typer.Option(help="Price of a million input tokens (default: MARA_PRICES).")]
PriceOutOption = Annotated[float | None, typer.Option(help="Price of a million output tokens (default: MARA_PRICES).")]


SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any other setting; a list or an object as JSON. Repeatable."),
]


@dataclass(kw_only=True)
class Indexing(Group):
    """The options of an indexing run."""

    types: Annotated[
        str | None, typer.Option(metavar="FILE", help="Your own types (TOML), kept from then on; none removes them.")
    ] = None
    model: ModelOption = None
    field: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN", help="Column to use as id, title, text or metadata: text=body. Repeatable."
        ),
    ] = None
    metadata: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Metadata of every passage. Repeatable.")
    ] = None
    settings: SetOption = None
    triples: Annotated[
        Path | None, typer.Option(help="Triples to import instead of extracting: HippoRAG OpenIE JSON, or JSONL.")
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")] = False
    sample: Annotated[
        int, typer.Option(min=0, max=1000, help="Passages that a dry run sends to the model, to estimate cost.")
    ] = 5

    def made(self, **more: Any) -> IndexingContext:
        """Return the settings of a run, with more that are options of one command alone. Raises BadInput."""
        from graph.sources.loaders.fields import parse_fields, parse_metadata

        columns, metadata = self.field or [], self.metadata or []
        parse_fields(columns)
        together = {
            **settings_given(self.settings, IndexingContext),
            "types": self.types,
            "model": self.model,
            "fields": dict(one.split("=", 1) for one in columns),
            "metadata": dict(parse_metadata(metadata)),
            **more,
        }
        return filled_in(IndexingContext, together, option_of)


@dataclass(kw_only=True)
class AskingBatch(Group):
    """The options of the questions of a file."""

    mode: Annotated[
        Mode | None, typer.Option(metavar="MODE", help=f"{', '.join(Mode)} (default mara; ragenta hybrid).")
    ] = None
    model: ModelOption = None
    top_k: Annotated[int | None, typer.Option(help="Number of passages to return (default 10; ragenta 20).")] = None
    where: WhereOption = None
    as_of: Annotated[str | None, text_option("DATE", "Answer from what stood at this date (ISO 8601, UTC).")] = None
    settings: SetOption = None


@dataclass(kw_only=True)
class Asking(AskingBatch):
    """The options of a question."""

    conversation: Annotated[str | None, text_option("NAME", "Go on with, or begin, this conversation.")] = None
    user: Annotated[str | None, text_option("NAME", "The user: questions and views are written to the history.")] = None


_WITH_AN_OPTION = {field.name for form in (Indexing, Asking) for field in fields(form)}


def settings_given(pairs: list[str] | None, form: type[SettingsForm]) -> dict[str, Any]:
    """Return settings given as NAME=VALUE or, for a part of one, NAME.PART=VALUE, by path. Raises BadInput for others.

    Args:
        pairs: what was given.
        form: the settings that there are; the name of a part alone will do.
    """
    values: dict[str, Any] = {}
    for pair in pairs or ():
        name, is_pair, value = pair.partition("=")
        if not (name and is_pair):
            raise BadInput(f"--set takes NAME=VALUE, not {pair!r}", "Write --set alpha=0.5, for example")
        if not value.strip():
            raise BadInput(f"--set {name} is empty", "Give a value, or leave it out")
        values[form.path_of(name.replace("-", "_"))] = _read(value)
    return values


def _read(value: str) -> Any:
    if not value.startswith(("[", "{")):
        return value
    try:
        return json.loads(value)
    except ValueError as fault:
        raise BadInput(f"{value!r} is no JSON ({fault})", "Write a list as [1, 2], an object as {...}") from fault


def asking_settings(
    workspace: Path,
    where: list[str] | None = None,
    workflow: Workflow = Workflow.MARA,
    *,
    conversation: str | None = None,
    user: str | None = None,
    settings: list[str] | None = None,
    **options: Any,
) -> Context:
    """Return the settings of a question from the options of a command that asks; check the keys of its filter.

    The commits of a killed command are published first, so that the question finds them.

    Raises:
        BadInput: an option cannot be used, or no passage of the workspace has what its filter asks for.
        MaraError: with a filter, any reason why the workspace cannot be opened.
    """
    from graph.metadata_filter import parse_where

    together = {
        **settings_given(settings, RagentaContext),
        "workspace": str(workspace),
        "where": parse_where(where) if where else None,
        "conversation_id": conversation,
        "user_id": user,
        **options,
    }
    context = context_of_settings(workflow, together, option_of)
    publish_interrupted(workspace)
    if where:
        from workflows.runtime.visibility import check_keys

        check_keys(context)
    return context
