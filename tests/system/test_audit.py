"""A site's life, watched: the audit trail and the metrics of real processes tell what happened."""

from __future__ import annotations

import re
from urllib.request import urlopen

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from tests.system.conftest import Lab
from umpc import errors as e
from umpc.cli.main import umpc
from umpc.node.audit.reading import note_of, rows

LOCAL = {"UMPC_METRICS": "127.0.0.1:0"}


def events(here: Lab, name: str) -> list[tuple[str, str, str]]:
    """Return the event, the study's name and its ε of each row of a node's audit trail."""
    trail = rows(here.folder / f"{name}-ledger.sqlite.audit")
    return [(row["event"], row["name"], row["epsilon"]) for row in trail]


def audit(here: Lab, *words: str) -> list[str]:
    """Return the lines that `umpc audit` prints about node-1."""
    config = ("--config", str(here.folder / "node-1.toml"))
    ended = CliRunner().invoke(
        umpc, ["audit", *words, *config], catch_exceptions=False, standalone_mode=False
    )
    return ended.stdout.splitlines()


def test_a_replay_first_adds_a_charge_that_a_full_disk_kept_out(lab):
    here = lab(2).start()
    assert here.run(name="tau").code == 0
    here.wait_for_log("node-1", "the share leaves")
    trail = here.folder / "node-1-ledger.sqlite.audit"
    lines = trail.read_bytes().splitlines(keepends=True)
    trail.write_bytes(b"".join(lines[:-2]))  # what a full disk leaves
    assert here.run(name="tau").report["replayed"]
    assert [event for event, *_ in events(here, "node-1")][-3:] == ["proposal", "charge", "release"]
    assert audit(here, "verify")[0].endswith("every charge")
    assert here.run(name="tau").report["replayed"]
    assert [event for event, *_ in events(here, "node-1")].count("charge") == 1


def scrape(here: Lab, name: str) -> dict[tuple[str, ...], float]:
    said = here.wait_for_log(name, "metrics are at")
    with urlopen(re.search(r"http://\S+/metrics", said)[0], timeout=20) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return {(s.name, *s.labels.values()): s.value for each in families for s in each.samples}


def test_the_trail_and_the_metrics_tell_what_happened(lab):
    here = lab(2, {"node-1": LOCAL, "dealer": LOCAL})
    here.start(more='\n[policy]\nmax_epsilon = "1/2"\n')
    assert here.run(name="tau", epsilon="1/4").code == 0
    assert here.run(name="tau", epsilon="1/4").code == 0
    assert here.run(name="large", epsilon="3").code == e.PolicyRefused.exit_code
    here.wait_for_log("node-1", "PolicyRefused")
    once = [("proposal", "tau", "1/4"), ("charge", "tau", "1/4"), ("release", "tau", "1/4")]
    again = [("proposal", "tau", "1/4"), ("release", "tau", "0")]
    large = [("proposal", "large", "3"), ("refusal", "large", "3")]
    assert events(here, "node-1") == [("start", "", ""), *once, *again, *large]
    last = list(rows(here.folder / "node-1-ledger.sqlite.audit"))[-1]
    assert last["coordinator"] == "coordinator" and last["fields"] == ["age", "balance"]
    assert last["statistic"] == "kendall_tau" and "PolicyRefused in propose" in last["note"]

    verified = audit(here, "verify")
    assert verified[0].startswith("verified: 8 rows") and verified[0].endswith("every charge")
    assert audit(here, "verify", "--expect", verified[1]) == verified
    shown = audit(here, "show", "--event", "refusal")
    told = [line[shown[0].index("note") :] for line in shown[1:]]
    assert " ".join(told) == note_of(last), "all of it, on several lines"
    table = audit(here, "export", "--after", "1", "--format", "csv")
    assert len(table) == 8 and table[1].startswith("2,") and ",proposal," in table[1]

    node, dealer = scrape(here, "node-1"), scrape(here, "dealer")
    assert node["umpc_budget_epsilon", "spent"] == 0.25
    assert node["umpc_studies_ended_total", "success"] == 2
    assert node["umpc_studies_ended_total", "PolicyRefused"] == 1
    assert dealer["umpc_studies_ended_total", "success"] == 1

    here.stop()
    path = here.folder / "node-1-ledger.sqlite.audit"
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:2]))  # the charge and all after it are cut off
    with pytest.raises(e.AuditError, match="have no row here"):
        audit(here, "verify")
    here.deployment.start_node("node-1", here.table("node-1"), "10")  # its next start adds them
    here.served.update(here.deployment.wait_until_ready())
    assert ("charge", "tau", "1/4") in events(here, "node-1")
    audit(here, "verify")
