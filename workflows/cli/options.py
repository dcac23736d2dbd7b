"""Options shared by several commands, and the settings they make."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graph.construction.edge_weights import PassageClasses
from graph.errors import BadInput
from graph.retrieve.modes import Mode, Preset
from graph.walk.pagerank import Engine
from workflows.cli.command import publish_interrupted
from workflows.settings.enums import IndexingEngine, Workflow

if TYPE_CHECKING:
    from workflows.context import Context
    from workflows.settings.indexing import IndexingContext

_SPELLED = {"fields": "field", "conversation_id": "conversation", "user_id": "user"}
_NOTHING = ["nothing"]
"""What `--remember` is given to write nothing."""
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


QuestionArgument = Annotated[
    list[str], typer.Argument(metavar="QUESTION", help="Question, in quotes (at most 10,000 characters).")
]
WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        "-w",
        parser=named_path,
        metavar="FOLDER",
        help="Workspace folder (default: MARA_WORKSPACE, else ./.mara).",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

TriplesOption = Annotated[
    Path | None,
    typer.Option(
        help="File of triples to import instead of extracting: HippoRAG OpenIE JSON, or JSONL. A triple is a JSON list"
        " or object, a Python tuple, or text with bars (a ||| b ||| c)."
    ),
]
ExtractorOption = Annotated[
    str | None,
    typer.Option(
        help="Chat model for extraction; or 'local', 'local:FILE.gguf', 'offline' (default: the configured one)."
    ),
]
FieldOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=COLUMN",
        help="Column or key of tables and corpora to use as id, title, text or metadata: text=body,"
        " metadata=year,author. Prefix a file name to limit it: prices*.csv:title=part. Repeatable.",
    ),
]
MetadataOption = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="Metadata to add to every passage. Repeatable.")
]
ChunkTokensOption = Annotated[
    int | None, typer.Option(help="Passage length in tokens of the embedding model (default 220).")
]
ChunkOverlapOption = Annotated[int | None, typer.Option(help="Tokens that neighbouring passages share (default 40).")]
ConcurrencyOption = Annotated[int | None, typer.Option(help="Concurrent requests to the model, at most (default 8).")]
TypesOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="File of your own entity and relation types (TOML), kept in the workspace from then on. none: remove"
        " them.",
    ),
]
ClassesOption = Annotated[
    PassageClasses | None,
    typer.Option(help="Boundaries of PRIMARY, SECONDARY and PERIPHERAL links, stored on first use (default thirds)."),
]
IndexingEngineOption = Annotated[
    IndexingEngine | None, typer.Option("--engine", help="Engine that reads, extracts and embeds (default local).")
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        parser=given_text,
        metavar="HOST:PORT",
        help="Running Ray cluster (default: one on this machine, for the run). With --engine ray.",
    ),
]
WorkersOption = Annotated[
    int | None, typer.Option(help="Workers, a core each (default: one for each core). With --engine ray.")
]
WorkflowOption = Annotated[
    Workflow,
    typer.Option(help="Workflow; ragenta also judges passages, checks claims and asks follow-up questions."),
]
ModeOption = Annotated[
    Mode | None,
    typer.Option(
        metavar="MODE",
        help="Rank passages by graph walk (mara, hipporag2, mara-matrix) or by similarity (dense, sparse, hybrid);"
        " default mara, with ragenta hybrid.",
    ),
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
ConversationOption = Annotated[
    str | None,
    typer.Option(
        "--conversation",
        parser=given_text,
        metavar="NAME",
        help="Ask in this conversation of the history: go on with it, or begin it.",
    ),
]
UserOption = Annotated[
    str | None,
    typer.Option(
        "--user", parser=given_text, metavar="NAME", help="Who asks: write their questions and views to the history."
    ),
]
RememberOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PART",
        help="Write only this of a turn: messages, references, concepts, views, or nothing. Repeatable (default: all).",
    ),
]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        parser=given_text,
        metavar="DATE",
        help="Answer from what stood at this date and nothing else: ISO 8601, a day counts to its end, UTC.",
    ),
]
DatedOption = Annotated[
    str | None,
    typer.Option(
        parser=given_text,
        metavar="DATE",
        help="Date from which on what is indexed stands, to load history: ISO 8601, UTC (default now).",
    ),
]
KeepVersionsOption = Annotated[
    bool | None,
    typer.Option(
        "--keep-versions/--no-versions",
        help="Keep past versions of passages; or keep none and erase those that there are. Stored (default: keep).",
    ),
]
RelationshipsOption = Annotated[
    bool | None,
    typer.Option(
        "--relationships/--no-relationships",
        help="Bring the relationship graph in step, or leave it as it is (default: bring it in step).",
    ),
]
PersonalOption = Annotated[
    bool | None,
    typer.Option(
        "--personalise/--impersonal",
        help="Move the ranking towards what the user read, marked and asked (default: impersonal).",
    ),
]
SourceFilterOption = Annotated[
    str | None,
    typer.Option(
        "--source",
        parser=given_text,
        metavar="NAME",
        help="Use only passages of this source: a file, a page, or a website.",
    ),
]
NewerThanOption = Annotated[
    str | None,
    typer.Option(
        "--newer-than", parser=given_text, metavar="DATE", help="Use only documents that were updated after this date."
    ),
]
CitedBeforeOption = Annotated[
    bool,
    typer.Option("--cited-before", help="Use only passages that answers cited in the conversation, or to the user."),
]
TopKOption = Annotated[int | None, typer.Option(help="Number of passages to return (default 10; ragenta 20).")]
EngineOption = Annotated[Engine | None, typer.Option(help="Engine that computes the walk (default auto).")]
CheckClaimsOption = Annotated[
    bool | None, typer.Option(help="Check each sentence of the answer (default no; ragenta yes).")
]
AlphaOption = Annotated[
    float | None, typer.Option(help="Weight of the dense score in the hybrid score, 0 to 1 (default 0.65).")
]
BarOption = Annotated[
    float | None,
    typer.Option("--n", help="Judge's threshold, in standard deviations below the mean (ragenta; default 0.5)."),
]
QuestionSecondsOption = Annotated[
    float | None,
    typer.Option(
        help="Seconds after which no model is asked any more; 0: no limit (default: MARA_QUESTION_S, or 300)."
    ),
]
ModelCallsOption = Annotated[int | None, typer.Option(help="Model calls, at most (default: no limit).")]
ModelTokensOption = Annotated[
    int | None, typer.Option(help="Tokens after which no model is asked any more (default: no limit).")
]
RateOption = Annotated[float | None, typer.Option(help="Requests to the model per minute, at most.")]
PriceInOption = Annotated[float | None, typer.Option(help="Price of a million input tokens (default: MARA_PRICE_IN).")]
PriceOutOption = Annotated[
    float | None, typer.Option(help="Price of a million output tokens (default: MARA_PRICE_OUT).")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show what would change and what extraction would take; write nothing.")
]
SampleOption = Annotated[
    int,
    typer.Option(min=0, max=1000, help="Passages sampled by a dry run to estimate cost; they are sent to the model."),
]


def indexing_settings(field: list[str] | None, metadata: list[str] | None, **given: Any) -> IndexingContext:
    """Return the settings of a run from the options of a command. Raises BadInput."""
    from graph.sources.loaders.fields import parse_fields, parse_metadata
    from workflows.settings.indexing import indexing_context_of_settings

    parse_fields(field or [])
    named = dict(one.split("=", 1) for one in field or [])
    settings = {"fields": named, "metadata": dict(parse_metadata(metadata or [])), **given}
    return indexing_context_of_settings(settings, option_of)


def asking_settings(
    workspace: Path | None,
    where: list[str] | None = None,
    workflow: Workflow = Workflow.MARA,
    *,
    conversation: str | None = None,
    user: str | None = None,
    remember: list[str] | None = None,
    source: str | None = None,
    newer_than: str | None = None,
    cited_before: bool = False,
    **given: Any,
) -> Context:
    """Return the settings of a question from the options of a command that asks; check the keys of its filter.

    What a killed command had committed is published first, so that the question finds it.

    Raises:
        BadInput: an option cannot be used, or no passage of the workspace has what its filter asks for.
        MaraError: with a filter, any reason why the workspace cannot be opened.
    """
    from graph.metadata_filter import parse_where
    from workflows.context import context_of_settings

    settings = {
        "workspace": str(workspace) if workspace else None,
        "where": parse_where(where) if where else None,
        "conversation_id": conversation,
        "user_id": user,
        "remember": [] if remember == _NOTHING else remember or None,
        "provenance": {"source": source or "", "newer_than": newer_than or "", "cited_before": cited_before},
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
