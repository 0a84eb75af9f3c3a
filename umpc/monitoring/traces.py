"""Traces of studies for OpenTelemetry: one span for a study, its attempt, and each of its steps.

    study                      propose to end; umpc.study, umpc.outcome
    ├── propose                a step
    └── attempt                from the reservation of ε on
        ├── prepare, evaluate, release …

Spans go to a collector on this machine, by OTLP over HTTP, and only if an administrator names it. A
span holds names of `NAMES`, digits of the study's hash, the class of an error, and times. It holds
no value of a table, no number of records, and no name of a study, a field or a coordinator.

The packages are those of the extra `otel`. Variables of the environment that are called
OTEL_… and proxies change nothing here, so spans leave by no other way.
"""

from __future__ import annotations

from typing import Any

from umpc import __version__
from umpc.errors import ConfigError, UmpcError, installing
from umpc.monitoring.metrics import SUCCESS, local_address
from umpc.transport.identity import Identity

STUDY, ATTEMPT = "study", "attempt"
STEPS = frozenset({"propose", "prepare", "park", "evaluate", "release", "ask"})
NAMES = STEPS | {STUDY, ATTEMPT}
DIGITS = 16
"""Hexadecimal digits of a study's hash, as in the log."""
EXPORT_SECONDS = 5


class Tracing:
    """The tracer of one process. Args: address: HOST:PORT of a collector on this machine.

    Raises: ConfigError for another address, or if the extra is not installed.
    """

    def __init__(self, identity: Identity, address: str):
        host, port = local_address("--traces", address)
        try:
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.sdk.trace.sampling import ALWAYS_ON

            exporter = _exporter(f"http://{host}:{port}/v1/traces")
        except ImportError:
            raise ConfigError(
                "--traces needs the extra `otel`, which is not installed here: "
                + installing("otel")
            ) from None
        about = {
            "service.name": f"umpc-{identity.role}",
            "service.instance.id": identity.name,
            "service.version": __version__,
        }
        self._provider = TracerProvider(
            resource=Resource(about),
            shutdown_on_exit=False,
            sampler=ALWAYS_ON,  # whatever OTEL_TRACES_SAMPLER says
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("umpc", __version__)

    def begin(self) -> RunTrace:
        """Begin the trace of one study."""
        return RunTrace(self._tracer)

    def close(self) -> None:
        """Send what waits, and stop."""
        self._provider.shutdown()


def _exporter(endpoint: str) -> Any:
    import requests
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    session = requests.Session()
    session.trust_env = False
    session.max_redirects = 0
    return OTLPSpanExporter(endpoint, headers={}, timeout=EXPORT_SECONDS, session=session)


class RunTrace:
    """The spans of one study at this process. Args: tracer: of OpenTelemetry."""

    def __init__(self, tracer: Any):
        self._tracer = tracer
        self._study = self._span(STUDY, None)
        self._attempt: Any = None
        self._step: Any = None

    def attempt(self) -> None:
        """Begin the study's attempt; the present step belongs to the study."""
        self._attempt = self._span(ATTEMPT, self._study)

    def step(self, name: str) -> None:
        """Begin a step, which ends the former one. Raises: ValueError for a name not in STEPS."""
        if name not in STEPS:
            raise ValueError(f"{name!r} is no step of STEPS in umpc/monitoring/traces.py")
        self._end(self._step)
        self._step = self._span(name, self._attempt or self._study)

    def end(self, study_hash: bytes | None, error: UmpcError | None) -> None:
        """End all spans. Args: study_hash: None if no study was proposed. error: None if well."""
        from opentelemetry.trace import Status, StatusCode

        outcome = type(error).__name__ if error else SUCCESS
        for span in (self._step, self._attempt, self._study):
            if span is not None and error is not None:
                span.set_status(Status(StatusCode.ERROR, outcome))
        self._study.set_attribute("umpc.outcome", outcome)
        if study_hash is not None:
            self._study.set_attribute("umpc.study", study_hash.hex()[:DIGITS])
        for span in (self._step, self._attempt, self._study):
            self._end(span)

    def _span(self, name: str, parent: Any) -> Any:
        from opentelemetry.context import Context
        from opentelemetry.trace import set_span_in_context

        within = Context() if parent is None else set_span_in_context(parent, Context())
        return self._tracer.start_span(name, within, record_exception=False)

    @staticmethod
    def _end(span: Any) -> None:
        if span is not None:
            span.end()
