"""`umpc node page`: the site's own files, and decisions as `umpc approve` makes them."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from dataclasses import replace
from fractions import Fraction
from urllib.parse import urlencode

import msgspec
import pytest

from tests.cli.test_approve import OWN, TAU, Site
from umpc.approval_page.server import render
from umpc.cli import node_page
from umpc.cli.approve import facts_of
from umpc.cli.node_page import MOST_EVENTS, contents, decider
from umpc.deployment.processes import UMPC, stop
from umpc.errors import ApprovalError, PolicyRefused
from umpc.node.audit.reading import last_rows, rows
from umpc.node.audit.trail import AuditRow, AuditTrail, of_failure, of_rules
from umpc.node.budget.ledger import Ledger
from umpc.node.config import load_node_config
from umpc.node.policy import Policy, rules_in_words
from umpc.protocols.registry import decode_study


@pytest.fixture
def site(tmp_path) -> Site:
    return Site(tmp_path)


def ledger_of(site: Site):
    return site.config.parent / "north-ledger.sqlite"


def test_a_study_is_shown_as_approve_shows_it_and_decided_on_as_there(site):
    site.ask(TAU, OWN)
    shown = contents(site.config)
    assert [each.hash for each in shown.waiting] == [TAU.hash.hex(), OWN.hash.hex()]
    entry = site.approvals.find(TAU.hash.hex())
    assert shown.waiting[0].facts == tuple(
        facts_of(load_node_config(site.config), entry, decode_study(entry.document))
    )
    assert (shown.site, shown.budgets, shown.faults) == ("north", (), ())
    decide = decider(site.config)
    assert decide(TAU.hash.hex(), "accept", "").startswith("accepted: 'tau' of coordinator")
    decide(OWN.hash.hex(), "reject", "not agreed")
    site.approvals.require(TAU, "north")
    with pytest.raises(PolicyRefused, match="not agreed"):
        site.approvals.require(OWN, "north")
    for decision in ("accept", "reject"):  # a page that is older than the decision
        with pytest.raises(ApprovalError, match="was rejected meanwhile"):
            decide(OWN.hash.hex(), decision, "x")
    with pytest.raises(ApprovalError, match="there is none"):
        decide("0" * 64, "accept", "")
    after = contents(site.config)
    assert after.waiting == ()
    events = [each.event for each in after.history]
    assert events == ["A person refused a study", "A person accepted a study"]
    assert "on the page: not agreed" in after.history[0].note
    assert [
        row["event"] for row in rows(ledger_of(site).with_name("north-ledger.sqlite.audit"))
    ] == [
        "accepted",
        "rejected",
    ]


def test_the_budget_and_the_history_are_those_of_the_site(site):
    (site.config.parent / "north-ledger.sqlite.key").unlink()
    with Ledger(ledger_of(site), "t", Fraction(5), Fraction(0)):
        (epsilon, delta) = contents(site.config).budgets  # while the node has its ledger open
    assert (epsilon.name, epsilon.total, epsilon.left) == ("epsilon", 5, 5)
    assert delta.total == 0
    trail = AuditTrail(ledger_of(site))
    trail.append(*(AuditRow("proposal") for _ in range(3)))
    trail.append(
        *(AuditRow("release", study=f"{n:064x}", name="n") for n in range(MOST_EVENTS + 5))
    )
    history = contents(site.config).history
    assert len(history) == MOST_EVENTS and {each.event for each in history} == {
        "The result of a study left"
    }
    assert f"hash {MOST_EVENTS + 4:064x}"[:21] in history[0].about


def test_rules_and_refusals_read_as_sentences(site):
    trail = AuditTrail(ledger_of(site))
    rules = Policy(statistics=frozenset({"auc"}), max_epsilon=Fraction(1, 2), approval=True)
    refused = PolicyRefused("north allows at most epsilon 1/2 for a study")
    trail.append(of_rules("policy", rules), of_failure(refused, TAU, "coordinator", "propose"))
    refusal, policy = contents(site.config).history
    assert (refusal.event, refusal.note) == ("The node refused a study", refused.message)
    assert f"{policy.event}: {policy.note}" == (
        "The rules changed. From now on: a person accepts each study; a study costs at most "
        "epsilon 1/2; only the statistics auc are computed."
    )
    for key, value in vars(Policy()).items():
        told = rules_in_words(json.dumps({key: value if isinstance(value, bool) else ["x"]}))
        assert told.endswith(".") and "{" not in told
    assert rules_in_words("{}") == "no rule restricts a study."
    assert rules_in_words('{"cut…') == '{"cut…'


def test_what_cannot_be_read_is_said_and_the_rest_is_shown(site, limit):
    limit(node_page, MOST_WAITING=3)
    many = [msgspec.structs.replace(TAU, name=f"n{number}") for number in range(5)]
    site.ask(*many)
    ledger_of(site).write_bytes(b"no database")
    ledger_of(site).with_name("north-ledger.sqlite.audit").write_bytes(b"{}\n")
    shown = contents(site.config)
    assert (len(shown.waiting), shown.more) == (3, 2)
    assert len(shown.faults) == 2 and "2 more studies wait" in render(shown)
    site.config.write_text("[")
    assert contents(site.config).faults


def test_a_study_of_another_version_is_shown_with_its_fault(site):
    site.ask(TAU)
    (found,) = site.approvals.entries()
    config = load_node_config(site.config)
    broken = node_page.waiting_study(config, replace(found, document=b"\xc1"))
    assert broken.fault.startswith("This study cannot be read here")
    assert ("epsilon", "0.3") in broken.facts
    steering = node_page.waiting_study(config, found)
    assert all(text.isprintable() for _, text in steering.facts)


def test_the_last_rows_are_whole_rows(tmp_path):
    path = tmp_path / "trail"
    assert last_rows(path) == []
    row = {"seq": 1, "at": "", "hash": "", **{key: "" for key in AuditRow("x").__dict__}}
    lines = [json.dumps({**row, "seq": number}).encode() + b"\n" for number in range(20)]
    path.write_bytes(b"".join(lines) + b'{"seq"')
    for most in range(len(lines[-1]), 8 * len(lines[-1]), 37):
        found = [each["seq"] for each in last_rows(path, most)]
        assert (
            found == list(range(20 - len(found), 20)) and len(found) >= most // len(lines[-1]) - 2
        )
    assert len(last_rows(path)) == 20


def test_the_command_prints_an_address_that_answers(site):
    site.ask(TAU)
    command = [*UMPC, "node", "page", "--config", str(site.config)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = process.stdout.readline().split()[-1]
        with urllib.request.urlopen(address) as page:
            assert TAU.hash.hex() in page.read().decode()
        body = urlencode({"hash": TAU.hash.hex(), "decision": "accept"}).encode()
        origin = {"Origin": address.rsplit("/", 2)[0]}
        asked = urllib.request.Request(f"{address}decide", body, origin)
        with urllib.request.urlopen(asked) as page:
            assert "accepted: &#x27;tau&#x27; of coordinator" in page.read().decode()
        site.approvals.require(TAU, "north")
    finally:
        stop([process])
    assert process.returncode == 0
