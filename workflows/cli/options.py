"""Options shared by several commands, and the settings they make."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graph.construction.edge_weights import PassageClasses
from graph.errors import BadInput
from graph.retrieve.modes import Mode, Preset
from graph.walk.pagerank import Engine
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
TopKOption = Annotated[int | None, typer.Option(help="Number of passages to return (default 10; ragenta 20).")]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION", help="Use only passages with this metadata: KEY=VALUE, or with != < <= > >=. Repeatable."
    ),
]
AsOfOption = Annotated[
    str | None,
    text_option(
        "DATE", "Answer from what stood at this date and nothing else: ISO 8601, a day counts to its end, UTC."
    ),
]
AlphaOption = Annotated[
    float | None, typer.Option(help="Weight of the dense score in the hybrid score, 0 to 1 (default 0.65).")
]
BarOption = Annotated[
    float | None,
    typer.Option("--n", help="Judge's threshold, in standard deviations below the mean (ragenta; default 0.5)."),
]
PriceInOption = Annotated[float | None, typer.Option(help="Price of a million input tokens (default: MARA_PRICE_IN).")]
PriceOutOption = Annotated[
    float | None, typer.Option(help="Price of a million output tokens (default: MARA_PRICE_OUT).")
]


@dataclass(kw_only=True)
class Indexing:
    """The options of an indexing run."""

    workspace: WorkspaceOption
    triples: Annotated[
        Path | None,
        typer.Option(
            help="File of triples to import instead of extracting: HippoRAG OpenIE JSON, or JSONL. A triple is a JSON"
            " list or object, a Python tuple, or text with bars (a ||| b ||| c)."
        ),
    ] = None
    types: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File of your own entity and relation types (TOML), kept in the workspace from then on. none: remove"
            " them.",
        ),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            help="Chat model for extraction; or 'local', 'local:FILE.gguf', 'offline' (default: the configured one)."
        ),
    ] = None
    field: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN",
            help="Column or key of tables and corpora to use as id, title, text or metadata: text=body,"
            " metadata=year,author. Prefix a file name to limit it: prices*.csv:title=part. Repeatable.",
        ),
    ] = None
    metadata: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Metadata to add to every passage. Repeatable.")
    ] = None
    chunk_tokens: Annotated[
        int | None, typer.Option(help="Passage length in tokens of the embedding model (default 220).")
    ] = None
    chunk_overlap: Annotated[int | None, typer.Option(help="Tokens that neighbouring passages share (default 40).")] = (
        None
    )
    concurrency: Annotated[int | None, typer.Option(help="Concurrent requests to the model, at most (default 8).")] = (
        None
    )
    requests_per_minute: Annotated[float | None, typer.Option(help="Requests to the model per minute, at most.")] = None
    engine: Annotated[
        IndexingEngine | None, typer.Option(help="Engine that reads, extracts and embeds (default local).")
    ] = None
    address: Annotated[
        str | None,
        text_option("HOST:PORT", "Running Ray cluster (default: one on this machine, for the run). With --engine ray."),
    ] = None
    workers: Annotated[
        int | None, typer.Option(help="Workers, a core each (default: one for each core). With --engine ray.")
    ] = None
    passage_classes: Annotated[
        PassageClasses | None,
        typer.Option(
            help="Boundaries of PRIMARY, SECONDARY and PERIPHERAL links, stored on first use (default thirds)."
        ),
    ] = None
    price_in: PriceInOption = None
    price_out: PriceOutOption = None
    dated: Annotated[
        str | None,
        text_option("DATE", "Date from which on what is indexed stands, to load history: ISO 8601, UTC (default now)."),
    ] = None
    keep_versions: Annotated[
        bool | None,
        typer.Option(
            "--keep-versions/--no-versions",
            help="Keep past versions of passages; or keep none and erase those that there are. Stored (default: keep).",
        ),
    ] = None
    relationships: Annotated[
        bool | None,
        typer.Option(
            "--relationships/--no-relationships",
            help="Bring the relationship graph in step, or leave it as it is (default: bring it in step).",
        ),
    ] = None

    def settings(self, **more: Any) -> IndexingContext:
        """Return the settings of a run, with more that are options of one command alone. Raises BadInput."""
        from graph.sources.loaders.fields import parse_fields, parse_metadata
        from workflows.settings.indexing import indexing_context_of_settings

        parse_fields(self.field or [])
        given = {name: value for name, value in vars(self).items() if name not in ("workspace", "triples", "field")}
        named = dict(one.split("=", 1) for one in self.field or [])
        read = {"fields": named, "metadata": dict(parse_metadata(self.metadata or []))}
        return indexing_context_of_settings({**given, **read, **more}, option_of)


@dataclass(kw_only=True)
class Asking:
    """The options of a question."""

    workspace: WorkspaceOption
    workflow: WorkflowOption = Workflow.MARA
    mode: ModeOption = None
    preset: PresetOption = None
    model: ModelOption = None
    top_k: TopKOption = None
    where: WhereOption = None
    as_of: AsOfOption = None
    engine: Annotated[Engine | None, typer.Option(help="Engine that computes the walk (default auto).")] = None
    alpha: AlphaOption = None
    n: BarOption = None
    check_claims: Annotated[
        bool | None, typer.Option(help="Check each sentence of the answer (default no; ragenta yes).")
    ] = None
    question_s: Annotated[
        float | None,
        typer.Option(
            help="Seconds after which no model is asked any more; 0: no limit (default: MARA_QUESTION_S, or 300)."
        ),
    ] = None
    max_model_calls: Annotated[int | None, typer.Option(help="Model calls, at most (default: no limit).")] = None
    max_model_tokens: Annotated[
        int | None, typer.Option(help="Tokens after which no model is asked any more (default: no limit).")
    ] = None
    conversation: Annotated[
        str | None, text_option("NAME", "Ask in this conversation of the history: go on with it, or begin it.")
    ] = None
    user: Annotated[str | None, text_option("NAME", "Who asks: write their questions and views to the history.")] = None
    remember: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART",
            help="Write only this of a turn: messages, references, concepts, views, or nothing. Repeatable"
            " (default: all).",
        ),
    ] = None

    def settings(self, **more: Any) -> Context:
        """Return the settings of a question, with more that are options of one command alone, as `asking_settings`."""
        return asking_settings(**vars(self), **more)


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
    cited_before: bool = False,
    **given: Any,
) -> Context:
    """Return the settings of a question from the options of a command; check the keys of its filter.

    Raises:
        BadInput: an option cannot be used, or no passage of the workspace has what its filter asks for.
        MaraError: with a filter, any reason why the workspace cannot be opened.
    """
    from graph.metadata_filter import parse_where
    from workflows.context import context_of_settings

    settings = {
        "workspace": str(workspace),
        "where": parse_where(where) if where else None,
        "conversation_id": conversation,
        "user_id": user,
        "remember": [] if remember == _NOTHING else remember or None,
        "provenance": {"source": source or "", "newer_than": newer_than or "", "cited_before": cited_before},
        **given,
    }
    context = context_of_settings(workflow, settings, option_of)
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
