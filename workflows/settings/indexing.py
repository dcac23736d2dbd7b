"""The input and the settings of an indexing run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from agents.chat.usage import Prices, prices_of
from graph.relations import PassageClasses
from graph.sources.splitting import CHUNK_OVERLAP, CHUNK_TOKENS
from workflows.settings.enums import IndexingEngine
from workflows.settings.forms import Price, Retries, Temperature, offered
from workflows.settings.problems import filled_in
from workflows.settings.renamed import SettingsForm

if TYPE_CHECKING:
    from agents.extractor import Extractor
    from graph.sources.documents import ReadOptions

SOURCES_LIMIT = 1_000
"""Sources that a run takes; a folder counts as one."""


class Sources(BaseModel):
    """The sources to index."""

    sources: list[str] = Field(
        title="Sources",
        description="Files and folders to read. On a server: paths below the folder named by MARA_SOURCES.",
        min_length=1,
        max_length=SOURCES_LIMIT,
        examples=[["documents"]],
    )
    triples: str = Field(
        default="",
        title="Triples",
        description="File of triples to import instead of extracting: HippoRAG OpenIE JSON, or JSONL.",
        max_length=4096,
    )
    sync: bool = Field(default=False, title="Sync", description="Remove passages that are no longer in the sources.")


class Extraction(BaseModel):
    """How a chat model is asked for facts."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"maxProperties": 7})

    temperature: Temperature = Field(
        default=0.0,
        title="Temperature",
        description="Temperature of the extractor.",
    )
    concurrency: int = Field(
        default=8,
        title="Requests at once",
        ge=1,
        le=256,
        description="Concurrent requests to the model, at most.",
    )
    requests_per_minute: float | None = Field(
        default=None,
        title="Requests per minute",
        gt=0,
        le=1e6,
        description="Requests to the model per minute, at most. Empty: no limit.",
    )
    tokens_per_minute: float | None = Field(
        default=None,
        title="Tokens per minute",
        gt=0,
        le=1e9,
        description="Average tokens to and from the model per minute, at most. Empty: no limit.",
    )
    max_json_retries: Retries = Field(
        default=2,
        title="Retries",
        description="Retries after a malformed reply.",
    )
    price_in: Price | None = Field(
        default=None,
        title="Price of input tokens",
        description="Price of a million input tokens. Empty: that of MARA_PRICES.",
    )
    price_out: Price | None = Field(
        default=None,
        title="Price of output tokens",
        description="Price of a million output tokens. Empty: that of MARA_PRICES.",
    )


class EngineSettings(BaseModel):
    """The process or the workers that extract and embed."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"maxProperties": 3})

    name: IndexingEngine = Field(
        default=IndexingEngine.LOCAL,
        title="Engine",
        description="Engine that extracts and embeds: this process, or workers of Ray.",
    )
    address: str = Field(
        default="",
        title="Ray cluster",
        description="Address of a running Ray cluster, host:port. Empty: one on this machine, for the run. Not from"
        " clients of a server.",
        max_length=256,
    )
    workers: int = Field(
        default=0,
        title="Workers",
        ge=0,
        le=4096,
        description="Workers of Ray, a core each. 0: one for each core.",
    )


class IndexingContext(SettingsForm):
    """The settings of an indexing run."""

    earlier: ClassVar[Mapping[str, str]] = {
        **{name: f"extraction.{name}" for name in Extraction.model_fields},
        "engine": "engine.name",
        "address": "engine.address",
        "workers": "engine.workers",
    }

    workspace: str = Field(
        default="",
        description="Workspace to write to. Empty: MARA_WORKSPACE, else ./.mara.",
        max_length=4096,
        json_schema_extra=offered("Workspace", "load_documents"),
    )
    chunk_tokens: int = Field(
        default=CHUNK_TOKENS,
        ge=16,
        le=8192,
        description="Passage length in tokens of the embedding model.",
        json_schema_extra=offered("Reading · tokens per passage", "load_documents"),
    )
    chunk_overlap: int = Field(
        default=CHUNK_OVERLAP,
        ge=0,
        le=4096,
        description="Tokens that neighbouring passages share; less than half the passage length.",
        json_schema_extra=offered("Reading · shared tokens", "load_documents"),
    )
    fields: dict[str, str] = Field(
        default={},
        description="Column or key of tables and corpora to use as id, title, text or metadata.",
        examples=[{"text": "body", "metadata": "year,author"}],
        json_schema_extra=offered("Reading · columns and keys", "load_documents"),
    )
    metadata: dict[str, str | int | float | bool] = Field(
        default={},
        description="Metadata to add to every passage.",
        examples=[{"tenant": "a"}],
        json_schema_extra=offered("Reading · metadata of every passage", "load_documents"),
    )
    types: str = Field(
        default="",
        description="File of your own entity and relation types, which the workspace then keeps. Empty: those that it"
        " keeps. 'none': none any more. On a server: a path below the folder named by MARA_SOURCES.",
        max_length=4096,
        json_schema_extra=offered("Extraction · own types", "load_documents"),
    )
    model: str = Field(
        default="",
        description="Chat model for extraction. Empty: MARA_CHAT_MODEL, else the default one if a key or"
        " a server is configured, else the offline extractor. 'local': the packaged small model. 'local:FILE.gguf': a"
        " model file, not from clients of a server. 'offline': always the offline extractor.",
        max_length=256,
        json_schema_extra=offered("Extraction · chat model", "extract"),
    )
    extraction: Extraction = Field(
        default=Extraction(),
        description="How the chat model is asked for facts: temperature, limits, retries and prices.",
        examples=[{"concurrency": 32, "requests_per_minute": 500}],
        json_schema_extra=offered("Extraction · limits and prices", "extract", "publish"),
    )
    engine: EngineSettings = Field(
        default=EngineSettings(),
        description="What extracts and embeds: this process, or workers of Ray.",
        examples=[{"name": "ray", "workers": 4}],
        json_schema_extra=offered("Engine · engine", "load_documents"),
    )
    passage_classes: PassageClasses | None = Field(
        default=None,
        description="Boundaries of PRIMARY, SECONDARY and PERIPHERAL links: thirds of the corpus, or the published 0.6"
        " and 0.3. Empty: the workspace's own, at first thirds.",
        json_schema_extra=offered("Graph · classes of passage edges", "plan_changes"),
    )
    dated: str = Field(
        default="",
        description="Date from which on what is indexed stands, to load the states of documents one after another: ISO"
        " 8601, UTC where it names no offset. Empty: now.",
        max_length=40,
        examples=["2024-03-31"],
        json_schema_extra=offered("Versions · stands from", "plan_changes"),
    )
    keep_versions: bool | None = Field(
        default=None,
        description="Keep what is replaced or gone as past versions, or keep none and erase those that there are."
        " Empty: the workspace's own choice, at first to keep them.",
        json_schema_extra=offered("Versions · keep them", "plan_changes"),
    )
    relationships: bool = Field(
        default=True,
        description="Bring the relationship graph in step: sources, documents and chunks.",
        json_schema_extra=offered("Relationships · bring in step", "relate"),
    )
    replace_all: bool = Field(
        default=False,
        description="Allow a sync to remove every passage of the workspace.",
        json_schema_extra=offered("Sync · may remove everything", "plan_changes"),
    )
    confirm_removals: bool = Field(
        default=True,
        description="Ask before a sync removes passages: an interrupt of the graph, which needs a thread. The command"
        " line and `index_sources` do not ask.",
        json_schema_extra=offered("Sync · ask before removing", "confirm_removals"),
    )

    _extractor: Any = PrivateAttr(None)
    _is_of_python: bool = PrivateAttr(False)
    _run: Any = PrivateAttr(None)

    def read_options(self) -> ReadOptions:
        """Return how sources are read. Raises BadInput where the settings do not fit together."""
        from graph.sources.documents import ReadOptions
        from graph.sources.loaders.fields import parse_fields

        return ReadOptions(
            fields=parse_fields([f"{name}={column}" for name, column in self.fields.items()]),
            chunk_tokens=self.chunk_tokens,
            chunk_overlap=self.chunk_overlap,
            metadata=self.metadata,
        )

    def prices(self) -> Prices | None:
        """Return the two prices, None without any. Raises BadInput for one alone."""
        return prices_of(self.extraction.price_in, self.extraction.price_out)

    def called_by(self, workspace: str, extractor: Extractor | None) -> IndexingContext:
        """Return these settings for a caller in Python, who is not asked to confirm anything.

        Args:
            workspace: a path, which need not fit into a form.
            extractor: the caller's own, in place of the model's.
        """
        changed = self.model_copy(update={"workspace": workspace, "confirm_removals": False})
        changed._extractor = extractor
        changed._is_of_python = True
        return changed

    @property
    def own_extractor(self) -> Extractor | None:
        """The caller's own extractor."""
        own: Extractor | None = self._extractor
        return own

    def with_run(self, run: Any) -> IndexingContext:
        """Return these settings with the run that they carry to its nodes."""
        changed = self.model_copy()
        changed._run = run
        return changed

    @property
    def run(self) -> Any:
        """The run under way; None where none is."""
        return self._run

    @property
    def is_of_python(self) -> bool:
        """Whether a caller in Python gave them, rather than a client of a server."""
        return self._is_of_python


def indexing_context_of_settings(settings: Mapping[str, Any], spelled: Callable[[str], str]) -> IndexingContext:
    """Return settings that a person gave; None means not given. Errors name a setting as ``spelled`` writes its name.

    Raises:
        BadInput: a setting is unknown or out of its range.
    """
    return filled_in(IndexingContext, settings, spelled)
