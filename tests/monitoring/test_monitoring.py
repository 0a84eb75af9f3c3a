"""Metrics, health and the dashboard: complete, local, and without a value of data."""

from __future__ import annotations

import json
import re
import socket
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

import umpc
from umpc.errors import (
    AddressInUse,
    CertificateError,
    ConfigError,
    LedgerError,
    PolicyRefused,
    error_classes,
)
from umpc.monitoring import metrics as endpoint
from umpc.monitoring.metrics import Metrics, first_fault, monitored
from umpc.protocol_version import PROTOCOL
from umpc.transport.addresses import split_address
from umpc.transport.authority import Authority
from umpc.transport.identity import load_identity

DASHBOARD = Path(umpc.__file__).parents[1] / "deploy/grafana/umpc.json"
AMOUNTS = {"total": 10.0, "spent": 2.5, "reserved": 1.0, "left": 6.5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("identities")
    authority = Authority.create(folder / "authority")
    for name, role in (("north", "node"), ("c", "coordinator")):
        authority.issue(name, role, folder / name)
    authority.revoke({1 << 70}, days=9)
    (folder / "north/crl.pem").write_bytes((folder / "authority/crl.pem").read_bytes())
    return folder


@pytest.fixture
def metrics(folder) -> Metrics:
    made = Metrics(load_identity(folder / "north"))
    deltas = dict.fromkeys(AMOUNTS, 0.0)
    made.add_site(lambda: AMOUNTS, lambda: deltas, lambda: 3)
    return made


def get(address: str, path: str) -> tuple[int, str]:
    try:
        with urlopen(f"http://{address}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def scraped(text: str) -> dict[tuple[str, ...], float]:
    """Return (name, values of the labels) → value, as Prometheus reads it."""
    samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
    return {(s.name, *s.labels.values()): s.value for s in samples}


def test_a_scrape_tells_what_a_node_has_and_did(metrics, folder):
    metrics.ended(None)
    metrics.ended(PolicyRefused("north: kendall_tau of 'tau-secret' over 'age' is not allowed"))
    with monitored("127.0.0.1:0", metrics.registry, lambda: "") as address:
        status, text = get(address, "/metrics")
    found = scraped(text)
    assert status == 200 and found["umpc_build", PROTOCOL, "node", umpc.__version__] == 1
    assert found["umpc_studies_ended_total", "success"] == 1
    assert found["umpc_studies_ended_total", "PolicyRefused"] == 1
    assert {s: found["umpc_budget_epsilon", s] for s in AMOUNTS} == AMOUNTS
    assert found["umpc_approvals_pending",] == 3
    identity = load_identity(folder / "north")
    assert found["umpc_certificate_end_seconds",] == identity.not_after.timestamp()
    due = datetime.fromtimestamp(found["umpc_revoked_list_due_seconds",], UTC)
    assert due == identity.revoked.next_update
    assert "secret" not in text and "age" not in scraped(text)
    labels = set(re.findall(r'(\w+)="', text))
    assert labels <= {"outcome", "state", "source", "version", "protocol", "role"}


def test_outcomes_are_classes_of_errors_and_nothing_else(metrics):
    for error in error_classes().values():
        metrics.ended(error("a message with 53.2 in it"))
    text = "".join(str(family) for family in metrics.registry.collect())
    assert "53.2" not in text


def test_a_ledger_that_cannot_be_read_leaves_out_its_amounts(folder):
    def damaged():
        raise LedgerError("damaged")

    metrics = Metrics(load_identity(folder / "north"))
    metrics.add_site(damaged, damaged, lambda: -1)
    names = {s.name for family in metrics.registry.collect() for s in family.samples}
    assert "umpc_budget_epsilon" not in names and "umpc_approvals_pending" in names


def test_health_says_which_check_fails_and_no_more(metrics):
    def late():
        raise CertificateError("the certificate of /home/site expired")

    for checks, expected in (([], (200, "ok\n")), ([late], (503, "CertificateError: see the"))):
        with monitored("127.0.0.1:0", metrics.registry, first_fault(*checks)) as address:
            status, text = get(address, "/healthz")
            assert (status, text[: len(expected[1])]) == expected and "/home" not in text
            assert scraped(get(address, "/metrics")[1])["umpc_healthy",] == (status == 200)
            assert get(address, "/anything")[0] == 404


def test_the_port_is_off_or_of_this_machine_alone(metrics):
    with monitored("", metrics.registry, lambda: "") as address:
        assert address == ""
    for other in ("0.0.0.0:9464", "192.0.2.1:9464", "example.org:9464"):
        with (
            pytest.raises(ConfigError, match="an address of this machine alone"),
            monitored(other, metrics.registry, lambda: ""),
        ):
            pass
    with monitored("localhost:0", metrics.registry, lambda: "") as address:
        assert address.startswith("127.0.0.1:")
        with (
            pytest.raises(AddressInUse, match="another process listens there"),
            monitored(address, metrics.registry, lambda: ""),
        ):
            pass


def test_a_page_of_the_web_reads_nothing_and_slow_callers_hold_nobody_up(metrics, limit):
    limit(endpoint, CALL_SECONDS=0.2)
    with monitored("127.0.0.1:0", metrics.registry, lambda: "") as address:
        port = address.rpartition(":")[2]
        for host, status in (("evil.example", 403), (f"localhost:{port}", 200), ("127.0.0.1", 200)):
            call = Request(f"http://{address}/metrics", headers={"Host": host})
            try:
                found = urlopen(call, timeout=10).status
            except HTTPError as error:
                found = error.code
            assert found == status, host
        where = split_address(address)
        with socket.create_connection(where, timeout=10) as slow:
            slow.sendall(b"GET /healthz HTTP/1.1\r\n")
            assert get(address, "/healthz") == (200, "ok\n"), "one caller holds up the others"
            assert slow.recv(1) == b"", "a call has no end"


def test_the_dashboard_asks_only_for_metrics_that_exist(metrics):
    board = json.loads(DASHBOARD.read_text())
    with monitored("127.0.0.1:0", metrics.registry, lambda: ""):
        exported = {s.name for family in metrics.registry.collect() for s in family.samples}
    asked = set()
    for panel in board["panels"]:
        assert panel["title"] and panel["description"]
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            asked |= set(re.findall(r"\b(?:umpc|process)_\w+", target["expr"]))
    assert asked and asked <= exported, asked - exported
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    assert [each["type"] for each in board["templating"]["list"]] == ["datasource"]
    own = {name for name in exported if name.startswith("umpc_") and not name.endswith("_created")}
    assert own <= asked, own - asked


def test_fractions_of_a_ledger_become_numbers():
    from umpc.cli.server_options import amounts
    from umpc.node.budget.budget_account import Balance

    balance = Balance(Fraction(10), Fraction(1, 3), Fraction(0), Fraction(29, 3))
    shown = amounts(balance)
    assert shown["spent"] == pytest.approx(1 / 3) and set(shown) == set(AMOUNTS)
