"""Options shared by several commands, and the settings they make."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import typer
from pydantic import BaseModel
from typer.models import OptionInfo

from graph.errors import BadInput
from graph.retrieve.modes import Preset
from workflows.cli.command import Group, publish_interrupted
from workflows.context import Context, context_of_settings
from workflows.settings.enums import Workflow
from workflows.settings.indexing import IndexingContext, indexing_context_of_settings
from workflows.settings.ragenta import RagentaContext

_SPELLED = {"fields": "field", "conversation_id": "conversation", "user_id": "user"}
_NOTHING = ["nothing"]
"""The value of `--remember` that writes nothing."""
_QUESTION_REPEATED = 200
_MEANT_BY_SHELLS = frozenset('"$`\\!')
"""Characters that a shell interprets even in double quotes."""


def option_of(setting: str) -> str:
    """Return the option that sets a setting."""
    return f"--{_SPELLED.get(setting, setting).replace('_', '-')}"


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


def text_option(metavar: str, told: str, *names: str) -> Any:
    """Return an option that takes a text that is not empty; ``told`` is its help."""
    return typer.Option(*names, parser=given_text, metavar=metavar, help=told)


def text_argument(metavar: str, told: str) -> Any:
    """Return an argument that is a text that is not empty; ``told`` is its help."""
    return typer.Argument(parser=given_text, metavar=metavar, help=told)


def path_option(metavar: str, told: str, *names: str) -> Any:
    """Return an option that takes a path, ``told`` being its help."""
    return typer.Option(*names, parser=named_path, metavar=metavar, help=told)


def path_argument(metavar: str, told: str) -> Any:
    """Return an argument that is a path, ``told`` being its help."""
    return typer.Argument(parser=named_path, metavar=metavar, help=told)


QuestionArgument = Annotated[
    list[str], typer.Argument(metavar="QUESTION", help="Question, in quotes (at most 10,000 characters).")
]
WorkspaceOption = Annotated[
    Path, path_option("FOLDER", "Workspace folder (default: MARA_WORKSPACE, else ./.mara).", "--workspace", "-w")
]
WorkflowOption = Annotated[
    Workflow, typer.Option(help="Workflow; ragenta also judges passages, checks claims and asks follow-up questions.")
]
PresetOption = Annotated[
    Preset | None, typer.Option(help="Parameters of mode mara: measured (mara) or as first designed (seed).")
]
ModelOption = Annotated[str | None, typer.Option(help="Chat model; or 'local', 'local:FILE.gguf', 'offline'.")]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION", help="Use only passages with this metadata: KEY=VALUE, or with != < <= > >=. Repeatable."
    ),
]
PriceInOption = Annotated[float | None, typer.Option(help="Price of a million input tokens (default: MARA_PRICE_IN).")]
PriceOutOption = Annotated[
    float | None, typer.Option(help="Price of a million output tokens (default: MARA_PRICE_OUT).")
]


def _options_of(form: type[BaseModel], told: Mapping[str, Any]) -> dict[str, Parameter]:
    """Return options that set the fields of a form, none of them required.

    Args:
        form: the settings; an option has the type of the field of its name.
        told: help by name; or how typer takes it; or its type, too, where that is not the field's.
    """
    options, kinds = {}, get_type_hints(form)
    for name, how in told.items():
        if isinstance(how, str | OptionInfo):
            how = Annotated[kinds[name] | None, typer.Option(help=how) if isinstance(how, str) else how]
        options[name] = Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=how)
    return options


_INDEXING = _options_of(
    IndexingContext,
    {
        "types": typer.Option(
            metavar="FILE",
            help="File of your own entity and relation types (TOML), kept in the workspace from then on. none: remove"
            " them.",
        ),
        "model": "Chat model for extraction; or 'local', 'local:FILE.gguf', 'offline' (default: the configured one).",
        "field": Annotated[
            list[str] | None,
            typer.Option(
                metavar="NAME=COLUMN",
                help="Column or key of tables and corpora to use as id, title, text or metadata: text=body,"
                " metadata=year,author. Prefix a file name to limit it: prices*.csv:title=part. Repeatable.",
            ),
        ],
        "metadata": Annotated[
            list[str] | None, typer.Option(metavar="KEY=VALUE", help="Metadata to add to every passage. Repeatable.")
        ],
        "chunk_tokens": "Passage length in tokens of the embedding model (default 220).",
        "chunk_overlap": "Tokens that neighbouring passages share (default 40).",
        "concurrency": "Concurrent requests to the model, at most (default 8).",
        "requests_per_minute": "Requests to the model per minute, at most.",
        "engine": "Engine that reads, extracts and embeds (default local).",
        "address": text_option(
            "HOST:PORT", "Running Ray cluster (default: one on this machine, for the run). With --engine ray."
        ),
        "workers": "Workers, a core each (default: one for each core). With --engine ray.",
        "passage_classes": "Boundaries of PRIMARY, SECONDARY and PERIPHERAL links, stored on first use (default"
        " thirds).",
        "price_in": PriceInOption,
        "price_out": PriceOutOption,
        "dated": text_option(
            "DATE", "Date from which on what is indexed stands, to load history: ISO 8601, UTC (default now)."
        ),
        "keep_versions": typer.Option(
            "--keep-versions/--no-versions",
            help="Keep past versions of passages; or keep none and erase those that there are. Stored (default: keep).",
        ),
        "relationships": typer.Option(
            "--relationships/--no-relationships",
            help="Bring the relationship graph in step, or leave it as it is (default: bring it in step).",
        ),
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
        "preset": PresetOption,
        "model": ModelOption,
        "top_k": "Number of passages to return (default 10; ragenta 20).",
        "where": WhereOption,
        "as_of": text_option(
            "DATE", "Answer from what stood at this date and nothing else: ISO 8601, a day counts to its end, UTC."
        ),
        "engine": "Engine that computes the walk (default auto).",
        "alpha": "Weight of the dense score in the hybrid score, 0 to 1 (default 0.65).",
        "n": "Judge's threshold, in standard deviations below the mean (ragenta; default 0.5).",
        "check_claims": "Check each sentence of the answer (default no; ragenta yes).",
        "question_s": "Seconds after which no model is asked any more; 0: no limit (default: MARA_QUESTION_S, or 300).",
        "max_model_calls": "Model calls, at most (default: no limit).",
        "max_model_tokens": "Tokens after which no model is asked any more (default: no limit).",
        "conversation": Annotated[
            str | None, text_option("NAME", "Ask in this conversation of the history: go on with it, or begin it.")
        ],
        "user": Annotated[str | None, text_option("NAME", "Who asks: write their questions and views to the history.")],
        "remember": Annotated[
            list[str] | None,
            typer.Option(
                metavar="PART",
                help="Write only this of a turn: messages, references, concepts, views, or nothing. Repeatable"
                " (default: all).",
            ),
        ],
        "personalise": typer.Option(
            "--personalise/--impersonal",
            help="Move the ranking towards what the user read, marked and asked (default: impersonal).",
        ),
        "source": Annotated[
            str | None, text_option("NAME", "Use only passages of this source: a file, a page, or a website.")
        ],
        "newer_than": Annotated[
            str | None, text_option("DATE", "Use only documents that were updated after this date.")
        ],
        "cited_before": Annotated[
            bool | None,
            typer.Option(
                "--cited-before", help="Use only passages that answers cited in the conversation, or to the user."
            ),
        ],
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

    def __init__(self, **given: Any) -> None:
        self.given = given


class Indexing(Given, options=_INDEXING):
    """The options of an indexing run."""

    def settings(self, **more: Any) -> IndexingContext:
        """Return the settings of a run, with more that are options of one command alone. Raises BadInput."""
        from graph.sources.loaders.fields import parse_fields, parse_metadata

        field, metadata = self.given.pop("field") or [], self.given.pop("metadata") or []
        parse_fields(field)
        read = {"fields": dict(one.split("=", 1) for one in field), "metadata": dict(parse_metadata(metadata))}
        return indexing_context_of_settings({**self.given, **read, **more}, option_of)


class Asking(Given, options=_ASKING):
    """The options of a question."""


_OF_ASK = ("personalise", "source", "newer_than", "cited_before")


class AskingInTurn(Given, options={name: option for name, option in _ASKING.items() if name not in _OF_ASK}):
    """The options of the questions of a conversation."""


_OF_BATCH = ("mode", "alpha", "n", "top_k", "model", "where", "as_of")


class AskingBatch(Given, options={name: _ASKING[name] for name in _OF_BATCH}):
    """The options of the questions of a file."""


def asking_settings(
    workspace: Path,
    where: list[str] | None = None,
    workflow: Workflow = Workflow.MARA,
    *,
    conversation: str | None = None,
    user: str | None = None,
    remember: list[str] | None = None,
    source: str | None = None,
    newer_than: str | None = None,
    cited_before: bool | None = False,
    **given: Any,
) -> Context:
    """Return the settings of a question from the options of a command that asks; check the keys of its filter.

    What a killed command had committed is published first, so that the question finds it.

    Raises:
        BadInput: an option cannot be used, or no passage of the workspace has what its filter asks for.
        MaraError: with a filter, any reason why the workspace cannot be opened.
    """
    from graph.metadata_filter import parse_where

    settings = {
        "workspace": str(workspace),
        "where": parse_where(where) if where else None,
        "conversation_id": conversation,
        "user_id": user,
        "remember": [] if remember == _NOTHING else remember or None,
        "provenance": {"source": source or "", "newer_than": newer_than or "", "cited_before": bool(cited_before)},
        **given,
    }
    context = context_of_settings(workflow, settings, option_of)
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
