"""Traces: a span for study, attempt and step, to this machine only, without a value of data."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import umpc
from tests.support.collector import attributes, collector
from umpc.errors import ConfigError, PolicyRefused
from umpc.monitoring.traces import STEPS, Tracing
from umpc.transport.authority import Authority
from umpc.transport.identity import load_identity

HASH = bytes(range(32))
NODE = Path(umpc.__file__).parent / "node"


@pytest.fixture(scope="module")
def identity(tmp_path_factory):
    folder = tmp_path_factory.mktemp("identities")
    Authority.create(folder / "authority").issue("north", "node", folder / "north")
    return load_identity(folder / "north")


def test_spans_name_steps_and_outcome_and_reach_a_collector(identity, monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "site=secret")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.invalid:1")
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:1")
    with collector() as got:
        tracing = Tracing(identity, got.address)
        run = tracing.begin()
        run.step("propose")
        run.attempt()
        run.step("prepare")
        run.step("evaluate")
        run.end(HASH, PolicyRefused("north: 53.2 of field 'age' is too much"))
        tracing.begin().end(None, None)
        tracing.close()
    assert set(got.paths) == {"/v1/traces"}
    spans = got.spans()["north"]
    named = {span.name: span for span in spans[:5]}
    study, attempt = named["study"], named["attempt"]
    assert attributes(study) == {"umpc.outcome": "PolicyRefused", "umpc.study": HASH.hex()[:16]}
    assert named["propose"].parent_span_id == attempt.parent_span_id == study.span_id
    for step in ("prepare", "evaluate"):
        assert named[step].parent_span_id == attempt.span_id and not named[step].attributes
    assert {span.trace_id for span in named.values()} == {study.trace_id}
    assert [attributes(span) for span in spans[5:]] == [{"umpc.outcome": "success"}]
    failed = {span.name for span in spans if span.status.code == span.status.STATUS_CODE_ERROR}
    assert failed == {"study", "attempt", "evaluate"}
    for word in ("53.2", "too much", "secret"):
        assert word not in got.texts()


def test_only_a_collector_of_this_machine_and_only_known_steps(identity):
    for address in ("192.0.2.1:4318", "0.0.0.0:4318", "collector.example.org:4318", "[::1]:4318"):
        with pytest.raises(ConfigError, match="of this machine alone"):
            Tracing(identity, address)
    tracing = Tracing(identity, "127.0.0.1:1")
    with pytest.raises(ValueError, match="no step"):
        tracing.begin().step("age=53")
    tracing.close()


STEP_NAMES = ("stream.step", "run.stream.step", "self._stream.step", "self._step")
"""Where the code of a node says which step begins."""


def test_the_steps_are_those_that_the_node_takes():
    assigned = {
        node.value.value
        for path in NODE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) in STEP_NAMES
        and isinstance(node.value, ast.Constant)
    }
    assert assigned == STEPS
