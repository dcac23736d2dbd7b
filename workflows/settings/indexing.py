"""The input and the settings of an indexing run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from agents.chat.usage import Prices, prices_of
from graph.relations import PassageClasses
from graph.sources.splitting import CHUNK_OVERLAP, CHUNK_TOKENS
from workflows.settings.forms import Price, Retries, Temperature
from workflows.settings.renamed import SettingsForm

if TYPE_CHECKING:
    from graph.sources.documents import ReadOptions

SOURCES_LIMIT = 1_000
"""Sources that a run takes; a folder counts as one."""


class Sources(BaseModel):
    """The sources to index."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    sources: list[str] = Field(min_length=1, max_length=SOURCES_LIMIT, examples=[["documents"]])
    """Files and folders to read. On a server: paths below the folder named by MARA_SOURCES."""
    triples: str = Field(default="", max_length=4096)
    """File of triples to import instead of extracting: HippoRAG OpenIE JSON, or JSONL."""
    sync: bool = False
    """Remove passages that are no longer in the sources."""


class Extraction(BaseModel):
    """How a chat model is asked for facts."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, json_schema_extra={"maxProperties": 7}
    )

    temperature: Temperature = 0.0
    """Temperature of the extractor."""
    concurrency: int = Field(default=8, ge=1, le=256)
    """Concurrent requests to the model, at most."""
    requests_per_minute: float | None = Field(default=None, gt=0, le=1e6)
    """Requests to the model per minute, at most. Empty: no limit."""
    tokens_per_minute: float | None = Field(default=None, gt=0, le=1e9)
    """Average tokens to and from the model per minute, at most. Empty: no limit."""
    max_json_retries: Retries = 2
    """Retries after a malformed reply."""
    price_in: Price | None = None
    """Price of a million input tokens. Empty: that of MARA_PRICES."""
    price_out: Price | None = None
    """Price of a million output tokens. Empty: that of MARA_PRICES."""


class IndexingContext(SettingsForm):
    """The settings of an indexing run."""

    earlier: ClassVar[Mapping[str, str]] = {name: f"extraction.{name}" for name in Extraction.model_fields}

    workspace: str = Field(default="", max_length=4096, title="Workspace")
    """Workspace to write to. Empty: MARA_WORKSPACE, else ./.mara."""
    chunk_tokens: int = Field(default=CHUNK_TOKENS, ge=16, le=8192, title="Reading · tokens per passage")
    """Passage length in tokens of the embedding model."""
    chunk_overlap: int = Field(default=CHUNK_OVERLAP, ge=0, le=4096, title="Reading · shared tokens")
    """Tokens that neighbouring passages share; less than half the passage length."""
    fields: dict[str, str] = Field(
        default={},
        examples=[{"text": "body", "metadata": "year,author"}],
        title="Reading · columns and keys",
    )
    """Column or key of tables and corpora to use as id, title, text or metadata."""
    metadata: dict[str, str | int | float | bool] = Field(
        default={}, examples=[{"tenant": "a"}], title="Reading · metadata of every passage"
    )
    """Metadata to add to every passage."""
    types: str = Field(default="", max_length=4096, title="Extraction · own types")
    """File of your own entity and relation types, which the workspace then keeps. Empty: those that it keeps. 'none':
    none any more. On a server: a path below the folder named by MARA_SOURCES.
    """
    model: str = Field(default="", max_length=256, title="Extraction · chat model")
    """Chat model for extraction. Empty: MARA_CHAT_MODEL, else the default one if a key or a server is configured, else
    the offline extractor. 'local': the packaged small model. 'local:FILE.gguf': a model file, not from clients of a
    server. 'offline': always the offline extractor.
    """
    extraction: Extraction = Field(
        default=Extraction(),
        examples=[{"concurrency": 32, "requests_per_minute": 500}],
        title="Extraction · limits and prices",
    )
    """How the chat model is asked for facts: temperature, limits, retries and prices."""
    passage_classes: PassageClasses | None = Field(default=None, title="Graph · classes of passage edges")
    """Boundaries of PRIMARY, SECONDARY and PERIPHERAL links: thirds of the corpus, or the published 0.6 and 0.3. Empty:
    the workspace's own, at first thirds.
    """
    dated: str = Field(default="", max_length=40, examples=["2024-03-31"], title="Versions · stands from")
    """Date from which on what is indexed stands, to load the states of documents one after another: ISO 8601, UTC where
    it names no offset. Empty: now.
    """
    keep_versions: bool | None = Field(default=None, title="Versions · keep them")
    """Keep what is replaced or gone as past versions, or keep none and erase those that there are. Empty: the
    workspace's own choice, at first to keep them.
    """
    relationships: bool = Field(default=True, title="Relationships · bring in step")
    """Bring the relationship graph in step: sources, documents and chunks."""
    replace_all: bool = Field(default=False, title="Sync · may remove everything")
    """Allow a sync to remove every passage of the workspace."""
    confirm_removals: bool = Field(default=True, title="Sync · ask before removing")
    """Ask before a sync removes passages: an interrupt of the graph, which needs a thread. The command line and
    `index_sources` do not ask.
    """

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

    def called_for(self, workspace: str) -> IndexingContext:
        """Return these settings for a caller in Python, who is not asked to confirm anything.

        The path of the workspace need not fit into a form.
        """
        changed = self.model_copy(update={"workspace": workspace, "confirm_removals": False})
        changed._is_of_python = True
        return changed

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
