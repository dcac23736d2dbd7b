"""Options shared by several commands, and the settings they make."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import typer
from pydantic import BaseModel
from typer.models import OptionInfo

from graph.errors import BadInput
from workflows.cli.command import Group, publish_interrupted
from workflows.context import Context, context_of_settings
from workflows.settings.enums import Workflow
from workflows.settings.indexing import IndexingContext, indexing_context_of_settings
from workflows.settings.ragenta import RagentaContext
from workflows.settings.renamed import SettingsForm

_SPELLED = {"fields": "field", "conversation_id": "conversation", "user_id": "user"}
_QUESTION_REPEATED = 200
_MEANT_BY_SHELLS = frozenset('"$`\\!')
"""Characters that a shell interprets even in double quotes."""


def option_of(setting: str) -> str:
    """Return how a setting is given on the command line."""
    has_option = setting in {*_ASKING, *_INDEXING, *_SPELLED}
    return f"--{_SPELLED.get(setting, setting).replace('_', '-')}" if has_option else f"--set {setting}"


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


QuestionArgument = Annotated[
    list[str], typer.Argument(metavar="QUESTION", help="Question, in quotes (at most 10,000 characters).")
]
WorkflowOption = Annotated[
    Workflow, typer.Option(help="Workflow; ragenta also judges passages, checks claims and asks follow-up questions.")
]
ModelOption = Annotated[str | None, typer.Option(help="Chat model; or 'local', 'local:FILE.gguf', 'offline'.")]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION", help="Use only passages with this metadata: KEY=VALUE, or with != < <= > >=. Repeatable."
    ),
]
PriceInOption = Annotated[float | None, typer.Option(help="Price of a million input tokens (default: MARA_PRICES).")]
PriceOutOption = Annotated[float | None, typer.Option(help="Price of a million output tokens (default: MARA_PRICES).")]


def _options_of(form: type[BaseModel], descriptions: Mapping[str, Any]) -> dict[str, Parameter]:
    """Return options that set the fields of a form, none of them required.

    Args:
        form: the settings; an option has the type of the field of its name.
        descriptions: help by name; or how typer takes it; or its type, too, where that is not the field's.
    """
    options, kinds = {}, get_type_hints(form)
    for name, how in descriptions.items():
        if isinstance(how, str | OptionInfo):
            how = Annotated[kinds[name] | None, typer.Option(help=how) if isinstance(how, str) else how]
        options[name] = Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=how)
    return options


SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any other setting (docs/settings.md); a list or an object as JSON. Repeatable.",
    ),
]
_INDEXING = _options_of(
    IndexingContext,
    {
        "types": typer.Option(
            metavar="FILE", help="Your own entity and relation types (TOML), kept from then on; none removes them."
        ),
        "model": "Chat model that extracts facts; or 'local', 'local:FILE.gguf', 'offline'.",
        "field": Annotated[
            list[str] | None,
            typer.Option(
                metavar="NAME=COLUMN",
                help="Column of tables and corpora to use as id, title, text or metadata: text=body,"
                " metadata=year,author. Prefix a file name to limit it: prices*.csv:title=part. Repeatable.",
            ),
        ],
        "metadata": Annotated[
            list[str] | None, typer.Option(metavar="KEY=VALUE", help="Metadata to add to every passage. Repeatable.")
        ],
        "settings": SetOption,
    },
)
_ASKING = _options_of(
    RagentaContext,
    {
        "mode": typer.Option(
            metavar="MODE",
            help="Rank passages by graph walk (mara, hipporag2, mara-matrix) or by similarity (dense, sparse, hybrid);"
            " default mara, with ragenta hybrid.",
        ),
        "model": ModelOption,
        "top_k": "Number of passages to return (default 10; ragenta 20).",
        "where": WhereOption,
        "as_of": text_option(
            "DATE", "Answer from what stood at this date and nothing else: ISO 8601, a day counts to its end, UTC."
        ),
        "conversation": Annotated[
            str | None, text_option("NAME", "Ask in this conversation of the history: go on with it, or begin it.")
        ],
        "user": Annotated[str | None, text_option("NAME", "The user: questions and views are written to the history.")],
        "settings": SetOption,
    },
)


class Given(Group):
    """A group of options that are settings.

    Attributes:
        given: their values by name, None where one was not given.
    """

    __signature__: ClassVar[Signature]

    def __init_subclass__(cls, options: Mapping[str, Parameter]) -> None:
        cls.__signature__ = Signature(list(options.values()))

    def __init__(self, **values: Any) -> None:
        self.given = values


class Indexing(Given, options=_INDEXING):
    """The options of an indexing run."""

    def settings(self, **more: Any) -> IndexingContext:
        """Return the settings of a run, with more that are options of one command alone. Raises BadInput."""
        from graph.sources.loaders.fields import parse_fields, parse_metadata

        field, metadata = self.given.pop("field") or [], self.given.pop("metadata") or []
        parse_fields(field)
        read = {"fields": dict(one.split("=", 1) for one in field), "metadata": dict(parse_metadata(metadata))}
        others = settings_given(self.given.pop("settings"), IndexingContext)
        return indexing_context_of_settings({**others, **self.given, **read, **more}, option_of)


class Asking(Given, options=_ASKING):
    """The options of a question."""


_OF_BATCH = ("mode", "top_k", "model", "where", "as_of", "settings")


class AskingBatch(Given, options={name: _ASKING[name] for name in _OF_BATCH}):
    """The options of the questions of a file."""


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


def words_of_question(words: list[str]) -> str:
    """Return the question of a command line. Raises BadInput where it came without quotes, as several words."""
    if len(words) > 1:
        question = " ".join(words)
        plain = f'"{question}"' if len(question) <= _QUESTION_REPEATED else '"..."'
        quoted = shlex.quote(question) if _MEANT_BY_SHELLS.intersection(question) else plain
        raise BadInput(f"The question came as {len(words)} words", f"Put it in quotes: {quoted}")
    return words[0]
