"""Traces of a command: sent in the background, and waited for at its end for a moment only.

They go to LangSmith, to an OpenTelemetry collector, or to both. LangSmith's client makes spans of its runs, and
OpenTelemetry's SDK sends them to where its own variables say (``OTEL_EXPORTER_OTLP_ENDPOINT`` and the like).
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from graph.endpoints.address import Address
from graph.environment import environment, set_variables
from graph.errors import BadInput, needs

if TYPE_CHECKING:
    from langsmith import Client
    from opentelemetry.sdk.trace import TracerProvider

DELIVERY_S = 3.0
"""For so long a command that is done waits until its traces are sent."""

_LANGSMITH = "LANGSMITH_ENDPOINT and LANGSMITH_API_KEY"
_EXAMPLE = "https://api.smith.langchain.com"
_ADDRESSES = {"langsmith": _LANGSMITH, "hybrid": _LANGSMITH, "otel": "OTEL_EXPORTER_OTLP_ENDPOINT"}
_SWITCHES = ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING")

MODE_VARIABLE = "LANGSMITH_TRACING_MODE"
"""Says where traces go: ``langsmith``, ``otel``, or ``hybrid`` for both."""

_MODES = ("langsmith", "otel", "hybrid")
_TIMEOUT_S = 3
_COLLECTORS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


@contextmanager
def traces_delivered(wait_s: float = DELIVERY_S) -> Iterator[None]:
    """Send what is traced within, where the environment asks for tracing; say on standard error what was not sent.

    A server that cannot be reached costs at most ``wait_s`` seconds after the work is done, and changes nothing else.

    Raises:
        BadInput: OpenTelemetry is asked for without an address.
        DependencyMissing: it is asked for, and its packages are not installed.
    """
    if not any(environment().value(name).lower() == "true" for name in _SWITCHES):
        yield
        return
    # A thread that is no daemon would keep the process alive until the last retry.
    set_variables({"LANGSMITH_USE_DAEMON": environment().langsmith_use_daemon or "true"})
    from langsmith import Client
    from langsmith.run_helpers import tracing_context

    mode = tracing_mode()
    collector = None if mode == "langsmith" else open_collector()
    logging.getLogger("langsmith").setLevel(logging.CRITICAL)
    faults: list[Exception] = []
    client = Client(
        tracing_error_callback=faults.append,
        otel_tracer_provider=collector,
        hide_inputs=texts_hidden("LANGSMITH_HIDE_INPUTS", mode),
        hide_outputs=texts_hidden("LANGSMITH_HIDE_OUTPUTS", mode),
    )
    address = collector_address() if mode == "otel" else client.api_url
    try:
        shown = Address.parse(address, _ADDRESSES[mode].partition(" ")[0], _EXAMPLE).url
    except BadInput as fault:
        print(f"Traces are not sent: {fault}", file=sys.stderr)  # noqa: T201
        with tracing_context(enabled=False):
            yield
        return
    try:
        with tracing_context(client=client):
            yield
    finally:
        problem = _deliver(client, collector, wait_s)
        if faults:
            problem = type(faults[0]).__name__
        if problem:
            print(  # noqa: T201
                f"Traces were not sent to {shown}: {problem}. Check {_ADDRESSES[mode]}, or set"
                " LANGSMITH_TRACING=false.",
                file=sys.stderr,
            )


def _deliver(client: Client, collector: TracerProvider | None, wait_s: float) -> str:
    """Wait until everything is sent; return what hindered it, or nothing."""
    outcome: list[str] = []

    def deliver() -> None:
        client.flush(timeout=wait_s)
        left = client.tracing_queue is not None and client.tracing_queue.unfinished_tasks
        if collector is not None and not collector.force_flush(int(1000 * wait_s)):
            left = 1
        outcome.append(f"not all was taken within {wait_s:g} s" if left else "")

    thread = threading.Thread(target=deliver, daemon=True)
    thread.start()
    thread.join(wait_s)
    return outcome[0] if outcome else f"no answer within {wait_s:g} s"


def tracing_mode() -> str:
    """Return where traces go, as LangSmith's client reads it. Raises BadInput for a mode that there is none of."""
    mode = (environment().langsmith_tracing_mode or "").lower()
    if mode and mode not in _MODES:
        raise BadInput(f"{MODE_VARIABLE} is {mode!r}", f"Set it to {', '.join(_MODES)}, or unset it")
    if mode:
        return mode
    if environment().langsmith_otel_only.lower() == "true":
        return "otel"
    return "hybrid" if environment().langsmith_otel_enabled.lower() == "true" else "langsmith"


def collector_address() -> str:
    """Return the address of the collector. Raises BadInput where none is set: nothing is sent to a default one."""
    for name in _COLLECTORS:
        if address := environment().value(name):
            return address
    raise BadInput(
        f"{MODE_VARIABLE} asks for OpenTelemetry, and no collector is named",
        f"Set {_COLLECTORS[1]} to its address, such as http://localhost:4318",
    )


def open_collector() -> TracerProvider:
    """Return what sends spans to the collector in the background; it is not waited for as the process ends.

    A collector that does not answer costs the spans, and a warning of LangSmith's or OpenTelemetry's own at most.

    Raises:
        BadInput: no collector is named.
        DependencyMissing: the packages are not installed.
    """
    collector_address()
    with needs("otel", "Tracing to OpenTelemetry"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    set_variables({"OTEL_EXPORTER_OTLP_TIMEOUT": environment().otel_exporter_otlp_timeout or str(_TIMEOUT_S)})
    name = environment().otel_service_name or "mara"
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def texts_hidden(variable: str, mode: str) -> bool | None:
    """Return whether inputs or outputs are left out of traces; None: as LangSmith's client has it.

    A collector gets no texts unless the variable says ``false``.
    """
    return True if mode == "otel" and not environment().value(variable) else None
