"""The environment of this process, which no other module reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache

from graph.errors import BadInput


@dataclass(frozen=True, slots=True, repr=False)
class Environment:
    """The variables as they stood when they were read, each by its name in small letters; empty where it is not set.

    It holds keys and passwords, and shows nothing of itself.

    Attributes:
        variables: all that there are, for child processes and for names that a setting gives.
        openai_api_key: turns the chat model on; the key for chat and embeddings.
        openai_base_url: turns the chat model on, too; the address of another server than OpenAI's.
        openai_api_base: LangChain's own: the address where ``OPENAI_BASE_URL`` is not set.
        openai_proxy: LangChain's own: a proxy for the requests to the chat and embedding endpoints.
        mara_chat_model: the chat model's name, where the run names none; ``local`` is one of this machine.
        mara_context_tokens: the chat model's context window, in tokens; by default what the server tells.
        mara_embedding_model: the embedding model's name; by default the embedded one.
        mara_embedding_base_url: its server, where that is another one than the chat model's.
        mara_embedding_prefixes: the prefix of questions for the embedding model, a `|`, and that of passages, facts and
            names; by default by the model's name.
        mara_extraction_urls: servers that extract side by side while documents are indexed, with commas between.
        mara_timeout_s: seconds in which a chat model may send no token, and that any other request may take; 60.
        mara_question_s: seconds of work on a question; 300 by default, 0 for no limit.
        mara_thinking_tokens: tokens that a model may think before each reply.
        mara_prices: the prices of a million input and a million output tokens, with a comma between.
        mara_workspace: the workspace of runs and commands that name none; ``./.mara`` by default.
        mara_auth: the file of keys and tokens; without it everybody may do all.
        mara_origins: sites whose pages may call a LangGraph server, with commas between; ``*`` for all.
        langgraph_http: the part ``http`` of langgraph.json, as the platform hands it to its server.
        langserve_graphs: the graphs, as the platform hands them to its server: `graph.server_clients`.
        mara_sources: the folder whose files the clients of a LangGraph server may have indexed; none by default.
        mara_new_workspaces: up to how many workspaces, beside the default one, clients may make more; 0 by default.
        mara_open_bytes: the memory that open workspaces may take together; by default half of what there is.
        mara_keep_replaced: with 1, the generation that a publication replaces stays until the next one begins.
        mara_vectors: what holds the vectors of generations that are published from now on, with a server's address.
        mara_record_url: the Postgres database that holds records and history; by default each has SQLite files.
        mara_history: ``on`` lets the clients of a LangGraph server keep a history; ``off`` by default.
        mara_graph_url: the address of a graph server that follows the relationship graph, with name, password and
            database.
        chroma_client_auth_provider: Chroma's own: how to send a token to the Chroma server.
        chroma_client_auth_credentials: Chroma's own: the token.
        langsmith_api_key: the key of LangSmith.
        langchain_api_key: its older name.
        langsmith_endpoint: the address of another LangSmith.
        langchain_endpoint: its older name.
        langsmith_tracing: ``true`` sends each run to LangSmith.
        langchain_tracing_v2: one of its older names.
        langsmith_tracing_v2: one of its older names.
        langchain_tracing: one of its older names.
        langsmith_use_daemon: LangSmith's own: ``true`` waits for none of its threads as the process ends.
        langsmith_hide_inputs: LangSmith's own: ``true`` leaves inputs out of traces.
        langsmith_hide_outputs: LangSmith's own: ``true`` leaves outputs out of traces.
        langsmith_tracing_mode: where traces go: ``langsmith``, ``otel``, or ``hybrid`` for both.
        langsmith_otel_only: ``true`` is an older way to say ``otel``.
        langsmith_otel_enabled: ``true`` is an older way to say ``hybrid``.
        otel_exporter_otlp_endpoint: OpenTelemetry's own: the address of the collector.
        otel_exporter_otlp_traces_endpoint: OpenTelemetry's own: the address for traces, whole.
        otel_exporter_otlp_timeout: OpenTelemetry's own: seconds that sending to the collector may take.
        otel_service_name: OpenTelemetry's own: the service's name in its traces; ``mara`` by default.
    """

    variables: Mapping[str, str]
    openai_api_key: str
    openai_base_url: str
    openai_api_base: str
    openai_proxy: str
    mara_chat_model: str
    mara_context_tokens: str
    mara_embedding_model: str
    mara_embedding_base_url: str
    mara_embedding_prefixes: str
    mara_extraction_urls: str
    mara_timeout_s: str
    mara_question_s: str
    mara_thinking_tokens: str
    mara_prices: str
    mara_workspace: str
    mara_auth: str
    mara_origins: str
    langgraph_http: str
    langserve_graphs: str
    mara_sources: str
    mara_new_workspaces: str
    mara_open_bytes: str
    mara_keep_replaced: str
    mara_vectors: str
    mara_record_url: str
    mara_history: str
    mara_graph_url: str
    chroma_client_auth_provider: str
    chroma_client_auth_credentials: str
    langsmith_api_key: str
    langchain_api_key: str
    langsmith_endpoint: str
    langchain_endpoint: str
    langsmith_tracing: str
    langchain_tracing_v2: str
    langsmith_tracing_v2: str
    langchain_tracing: str
    langsmith_use_daemon: str
    langsmith_hide_inputs: str
    langsmith_hide_outputs: str
    langsmith_tracing_mode: str
    langsmith_otel_only: str
    langsmith_otel_enabled: str
    otel_exporter_otlp_endpoint: str
    otel_exporter_otlp_traces_endpoint: str
    otel_exporter_otlp_timeout: str
    otel_service_name: str

    def value(self, name: str) -> str:
        """Return a variable by its own name; empty where it is not set."""
        return self.variables.get(name, "")


NAMES = tuple(field.name.upper() for field in fields(Environment)[1:])
"""The variables that have a field."""


_REPLACED = {
    **dict.fromkeys(("price_in", "price_out"), 'MARA_PRICES="0.15,0.60"'),
    **dict.fromkeys(("graph_user", "graph_password"), "MARA_GRAPH_URL=bolt://name:password@host:7687"),
    "graph_database": "MARA_GRAPH_URL=bolt://host:7687/database",
    "chroma_url": "MARA_VECTORS=chroma+http://host:8000",
    **dict.fromkeys(
        ("embedding_query_prefix", "embedding_passage_prefix"), 'MARA_EMBEDDING_PREFIXES="query: |passage: "'
    ),
    **dict.fromkeys(("embedding_threads", "build_processes"), "OMP_NUM_THREADS"),
}
"""Variables of the release before, in small letters and without MARA in front, each with what replaces it."""


@cache
def environment() -> Environment:
    """Return the variables as they stood when the command, the run or the server began."""
    variables = dict(os.environ)
    return Environment(variables, *[variables.get(name, "") for name in NAMES])


def processors() -> int:
    """Return how many cores this process may use: ``OMP_NUM_THREADS``, by default all of the machine.

    Raises:
        BadInput: the variable holds no number from 1.
    """
    text = environment().value("OMP_NUM_THREADS").partition(",")[0] or str(os.cpu_count() or 1)
    if not text.isdecimal() or not int(text):
        raise BadInput(f"OMP_NUM_THREADS is {text!r}", "Set it to a number of threads, at least 1")
    return int(text)


def refresh_environment() -> None:
    """Let the variables be read again: a command, a run or a server begins.

    Raises:
        BadInput: one is set by its earlier name, which would have no effect.
    """
    environment.cache_clear()
    for name, present in _REPLACED.items():
        if os.environ.get(variable := f"MARA_{name.upper()}"):
            raise BadInput(f"{variable} is not read any more", f"Unset it, and set {present} instead")


def set_variables(variables: Mapping[str, str | None]) -> None:
    """Set variables, or unset them with None: for libraries that read the environment, and for child processes."""
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    environment.cache_clear()
