"""Traces to an OpenTelemetry collector: LangSmith's client makes spans of its runs, and OpenTelemetry's SDK sends them.

Where the collector is, OpenTelemetry's own variables say (``OTEL_EXPORTER_OTLP_ENDPOINT`` and the like).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from graph.environment import environment, set_variables
from graph.errors import BadInput, DependencyMissing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

MODE_VARIABLE = "LANGSMITH_TRACING_MODE"
"""Says where traces go: ``langsmith``, ``otel``, or ``hybrid`` for both."""

_MODES = ("langsmith", "otel", "hybrid")
_TIMEOUT_S = 3
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


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
    for name in _ENDPOINTS:
        if address := environment().value(name):
            return address
    raise BadInput(
        f"{MODE_VARIABLE} asks for OpenTelemetry, and no collector is named",
        f"Set {_ENDPOINTS[1]} to its address, such as http://localhost:4318",
    )


def open_collector() -> TracerProvider:
    """Return what sends spans to the collector in the background; it is not waited for as the process ends.

    A collector that does not answer costs the spans, and a warning of LangSmith's or OpenTelemetry's own at most.

    Raises:
        BadInput: no collector is named.
        DependencyMissing: the packages are not installed.
    """
    collector_address()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as fault:
        raise DependencyMissing(
            f"Traces to OpenTelemetry need packages that cannot be loaded ({fault})",
            "Install them: pip install 'mara-rag[otel]'",
        ) from fault
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
