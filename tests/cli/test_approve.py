"""`umpc approve`: what an administrator reads, and what a decision changes."""

from __future__ import annotations

import re
import shlex
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import umpc as umpc_package
from tests.support.central import central_study
from tests.support.gopa import gopa_study
from tests.support.grid import grid_study
from tests.support.ledgers import pay
from tests.support.local import local_study
from tests.support.people import linked_study, people_study
from tests.support.shuffled import shuffled_study
from tests.support.studies import KENDALL, library_study, make_study
from umpc.cli.approve import REASON, description_of, facts_of
from umpc.cli.main import umpc
from umpc.errors import (
    ApprovalError,
    ApprovalPending,
    ConfigError,
    LedgerError,
    PolicyRefused,
    UmpcError,
)
from umpc.node.approvals import MAX_PENDING, Approvals, Entry, approvals_beside
from umpc.node.audit.trail import AuditTrail, about
from umpc.node.budget.ledger import Ledger
from umpc.node.config import LinkedPlace, load_node_config
from umpc.node.config_section import IDENTITY_FILES
from umpc.node.decision import budget_after, sentence_for
from umpc.node.policy import ANYTHING
from umpc.protocols.registry import protocol_of
from umpc.study.computation import computation_hash
from umpc.study.document import Study
from umpc.study.parts import FieldBins, FieldText, Person
from umpc.ustat.text import to_text
from umpc.ustat.tracing import trace

FIELDS = (
    FieldText("x", "0", "3", "0.5"),
    FieldText("y", "-1", "1", whole=True),
)
TAU = msgspec.structs.replace(
    library_study("kendall_tau_b", FIELDS, 3, ["x", "y"], epsilon="0.3", max_colluding=2),
    name="tau",
)
OWN = make_study(
    to_text(trace(lambda a, b: abs(a.x - b.x) * 2)), name="own", statistic="kendall_tau"
)


class Site:
    """A node's folder, its file of approvals, and the command."""

    def __init__(self, folder: Path):
        self.config = folder / "node.toml"
        for name in (*IDENTITY_FILES, "t.csv"):
            (folder / name).write_text("text")
        (folder / "t.csv").write_text("x,y\n1,0\n,1\n3,-1\n")
        top = 'name = "north"\nidentity = "."\n[data]\npath = "t.csv"\n[budget]\nepsilon = 5\n'
        self.config.write_text(top + "[policy]\napproval = true\n")
        (folder / "north-ledger.sqlite.key").write_bytes(bytes(32))  # a node has started here
        self.approvals = Approvals(approvals_beside(folder / "north-ledger.sqlite"))

    def ask(self, *studies: Study) -> None:
        for study in studies:
            with pytest.raises(ApprovalPending):
                self.approvals.require(study, "north")

    def run(self, command: str, *arguments: str):
        return CliRunner().invoke(
            umpc, ["approve", command, "--config", str(self.config), *arguments]
        )

    def said(self, command: str, *arguments: str) -> list[str]:
        ended = self.run(command, *arguments)
        assert ended.exit_code == 0, ended.output + repr(ended.exception)
        return re.sub(r"20..-..-..T..:..:..\+00:00", "now", ended.output).splitlines()


@pytest.fixture
def site(tmp_path) -> Site:
    return Site(tmp_path)


def digits(study: Study, count: int = 12) -> str:
    return study.hash.hex()[:count]


def test_before_the_first_question_there_is_nothing_and_no_file_is_made(site):
    before = set(site.config.parent.iterdir())
    assert site.said("list") == ["no study has asked for approval yet"]
    assert set(site.config.parent.iterdir()) == before


def test_the_list_has_what_waits_first(site):
    site.ask(TAU, OWN)
    site.said("accept", digits(TAU))
    assert [line.split() for line in site.said("list")] == [
        ["state", "hash", "when", "coordinator", "statistic", "epsilon", "name"],
        ["pending", digits(OWN, 16), "now", "coordinator", "kendall_tau", "1", "own"],
        ["accepted", digits(TAU, 16), "now", "coordinator", "kendall_tau_b", "0.3", "tau"],
    ]


def test_a_study_is_shown_with_all_that_a_decision_needs(site):
    site.ask(TAU)
    lines = site.said("show", digits(TAU))
    promise = protocol_of(TAU).promise_of(TAU)
    assert lines == [
        "in short      If you accept, 'coordinator' learns Kendall's tau-b of 'x' and 'y', with "
        "noise, over all 3 sites together, and the exact number of complete rows here; 2 rows of "
        "your table count now and 1 do not; epsilon 0.3 protects a single row, and no person with "
        "several rows as a whole; the budget is epsilon 5 in all, and nothing is spent, epsilon "
        "47/10 after this study; this coordinator has asked for nothing else here.",
        f"study         'tau', hash {TAU.hash.hex()}",
        "asked         now by coordinator, not decided on",
        "statistic     'kendall_tau_b', which is the library's kendall_tau_b: Kendall's tau-b of "
        "'x' and 'y'",
        "              geometric_ratio of 3 sum(s) over sets of 2 record(s)",
        f"kernel        {KENDALL}",
        "  range       [-1, 1], in steps of 1",
        "  changes by  2 per edge when one record is replaced; gets epsilon 1/10",
        "kernel        (~(a.x == b.x))",
        "  range       [0, 1], in steps of 1",
        "  changes by  1 per edge when one record is replaced; gets epsilon 1/10",
        "kernel        (~(a.y == b.y))",
        "  range       [0, 1], in steps of 1",
        "  changes by  1 per edge when one record is replaced; gets epsilon 1/10",
        f"computation   hash {computation_hash(TAU)}, for kernels under [policy]",
        "field         'x': 0 to 3, in steps of 0.5",
        "field         'y': -1 to 1, whole numbers",
        "records       complete in all 2 columns of the study",
        f"promise       {promise.protected}",
        f"adversary     honest. {promise.sites}",
        f"disclosed     {promise.disclosed}",
        "epsilon       0.3",
        "noise         distributed, withstands 2 of 3 nodes that collude",
        "edges         all, balanced",
        "protocol      u-mpc",
        "backend       shared",
        "coordinator   coordinator",
        "dealer        dealer",
        "nodes         node-0, node-1, node-2",
    ]


def test_the_budget_that_a_study_leaves_is_told(site):
    site.ask(TAU)
    entry, config = site.approvals.find(TAU.hash.hex()), load_node_config(site.config)

    def told() -> str:
        assert budget_after(config, TAU) in dict(facts_of(config, entry, TAU))["in short"]
        return budget_after(config, TAU)

    config.ledger.with_name("north-ledger.sqlite.key").unlink()  # the first start makes it
    with Ledger(config.ledger, "north", Fraction(5), Fraction(0)) as ledger:
        assert told() == "epsilon 5 of 5 left now, epsilon 47/10 after this study"
        ledger.reserve(bytes(32), Fraction(2), Fraction(0), name="runs")
        pay(ledger, bytes(32), b"attempt", b"share")
        assert told() == "epsilon 3 of 5 left now, epsilon 27/10 after this study"
        ledger.reserve(TAU.hash, Fraction(3, 10), Fraction(0), name="tau")
        pay(ledger, TAU.hash, b"attempt", b"share")
        paid = "epsilon 27/10 of 5 left now; this study is paid and costs nothing more"
        assert told() == paid
        ledger.reserve(bytes([1]) * 32, Fraction(5, 2), Fraction(0), name="large")
        pay(ledger, bytes([1]) * 32, b"attempt", b"share")
    other = msgspec.structs.replace(TAU, name="another")
    assert budget_after(config, other) == (
        "epsilon 1/5 of 5 left now; the node will refuse this study, which needs more epsilon"
    )
    config.ledger.write_bytes(b"no database")
    assert budget_after(config, other).startswith("not known: ")


def test_a_study_that_calls_itself_what_it_is_not_is_seen_through(site):
    site.ask(OWN)
    assert (
        "statistic     'kendall_tau', "
        "but it equals no statistic of the library with default parameters"
        in site.said("show", digits(OWN))
    )


def test_bins_and_levels_are_shown_where_a_study_chooses_some(site):
    bins = (FieldBins("x", cuts=("1", "3")), FieldBins("y", 2))
    cut, by_levels = grid_study(name="cut", bins=bins), grid_study(name="levels", levels=5)
    site.ask(cut)
    site.ask(by_levels)
    lines = site.said("show", digits(cut))
    assert "  bins        'x': cut at 1, 3" in lines
    assert "  bins        'y': 2 of equal width" in lines
    assert "levels        5" in site.said("show", digits(by_levels))


def test_a_public_label_and_what_is_told_of_it_are_shown(site):
    auc = make_study("(sign(a.x - b.x) + 1) * (1/2)", sampling="two_sample", name="auc")
    site.ask(auc)
    lines = site.said("show", digits(auc))
    assert "field         'label': 'case', 'control', a public label" in lines
    assert (
        "edges         all, two_sample; "
        "each node discloses its number of records with each label" in lines
    )


def test_what_a_study_brings_cannot_steer_the_terminal(site):
    name = "\u202e"
    kernel = to_text(trace(lambda a, b: abs(a[name] - b[name])))
    assert name in kernel
    fields = (FieldText(name, "0", "1", whole=True),)
    evil = make_study(kernel, name="evil\n\x1b[2J", statistic=name, fields=fields)
    site.ask(evil)
    for command in (["list"], ["show", digits(evil)], ["accept", digits(evil)]):
        assert all(line.isprintable() for line in site.said(*command))


def test_accept_and_reject_are_heard_by_the_node_and_may_be_changed(site):
    site.ask(TAU)
    told = f"'tau' of coordinator, epsilon 0.3, hash {TAU.hash.hex()}"
    assert site.said("accept", digits(TAU)) == [f"accepted: {told}"]
    site.approvals.require(TAU, "north")
    assert site.said("reject", digits(TAU), "--reason", "not this year") == [f"rejected: {told}"]
    with pytest.raises(PolicyRefused, match="not this year"):
        site.approvals.require(TAU, "north")
    assert "asked         now by coordinator, rejected now: not this year" in site.said(
        "show", digits(TAU)
    )


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines", "\x1b[2J", "w" * 201])
def test_a_reason_is_one_line(site, reason):
    site.ask(TAU)
    assert (
        "one line of 1 to 200 characters"
        in site.run("reject", digits(TAU), "--reason", reason).output
    )
    assert [entry.state for entry in site.approvals.entries()] == ["pending"]


def test_a_rejection_is_as_short_as_an_acceptance(site):
    site.ask(TAU)
    site.said("reject", digits(TAU))
    assert site.approvals.find(digits(TAU)).reason == REASON


def test_a_study_is_found_by_its_name_too(site):
    site.ask(TAU, OWN)
    site.said("accept", "tau")
    site.said("reject", "own")
    assert [entry.state for entry in site.approvals.entries()] == ["accepted", "rejected"]
    site.ask(make_study(name="own", epsilon="2"))
    refused = site.run("reject", "own").exception
    assert isinstance(refused, ApprovalError) and "Give more digits of the hash" in refused.message


def test_what_a_study_reserves_is_free_after_its_rejection(site):
    """It was prepared at a site where nobody has to accept studies, so no approval knows it."""
    config = load_node_config(site.config)
    config.ledger.with_name("north-ledger.sqlite.key").unlink()
    with Ledger(config.ledger, "t", Fraction(5), Fraction(1)) as ledger:
        ledger.reserve(TAU.hash, Fraction(3, 10), Fraction(0), name="tau")
        ledger.prepare(TAU.hash, time.time() + 3600)
        ledger.reserve(OWN.hash, Fraction(1), Fraction(0), name="own")
        ledger.hold(OWN.hash, b"a" * 32, b"share")
        assert ledger.balance().reserved == Fraction(13, 10)
        site.said("reject", "tau", "--reason", "not now")
        assert ledger.balance().reserved == Fraction(1)
        site.said("reject", digits(OWN))
        assert ledger.balance().reserved == 0
        with pytest.raises(LedgerError, match="it was given up"):
            ledger.charge(OWN.hash, b"a" * 32)
    for study in (TAU, OWN):
        with pytest.raises(PolicyRefused):
            site.approvals.require(study, "north", approval=False)


def test_a_study_that_nobody_asked_for_is_refused_by_its_whole_hash_and_accepted_later(site):
    assert isinstance(site.run("reject", digits(TAU)).exception, ApprovalError)
    site.said("reject", TAU.hash.hex())
    assert isinstance(site.run("show", digits(TAU)).exception, UmpcError)
    with pytest.raises(ApprovalError, match="asked again"):
        site.approvals.decide(digits(TAU), "accepted")
    with pytest.raises(PolicyRefused, match="does not take part"):
        site.approvals.require(TAU, "north")
    site.said("accept", "tau")
    site.approvals.require(TAU, "north")


def test_the_sentence_says_who_is_protected_and_what_was_asked_before(site):
    config = load_node_config(site.config)
    trail = AuditTrail(config.ledger)
    trail.append(about("proposal", OWN, "coordinator"), about("charge", OWN, "coordinator"))
    trail.append(about("proposal", TAU, "another"))
    people = TAU.replaced(person=Person("who", 3))
    told = sentence_for(config, people)
    assert "epsilon 0.3 protects a person, that is " in told and "'who'" in told
    assert "the rows that count here are not known" in told, "the table has no such column"
    assert "asked here before for 1 other study ('own'), of which 1 was released for" in told
    trail.append(about("proposal", OWN.replaced(name="rho"), "coordinator"))
    told = sentence_for(config, people)
    assert "for 2 other studies (the last ones are 'own', 'rho'), of which 1 was released" in told
    raw = sentence_for(config, central_study())
    assert raw.startswith("If you accept, 'coordinator' learns the RAW RECORDS of 'x'")


def test_the_sentence_of_linked_rows_and_of_people_counts_what_the_study_counts(site):
    """It once said of both that rows are protected, and of linked rows that no table is counted."""
    (site.config.parent / "t.csv").write_text("who,x\na,1\nb,\nc,3\nd,0\n")
    config, linked = load_node_config(site.config), linked_study()
    place = LinkedPlace(folder=site.config.parent / "links", key="who")
    config = replace(config, name=linked.nodes[0].name, linked=place)
    told = sentence_for(config, linked)
    assert "the exact number of linked rows; 3 rows of your table count now and 1 do not;" in told
    assert "protects a single linked row;" in told
    told = sentence_for(replace(config, linked=None), people_study())
    assert "the exact number of people who sent a value; it is about what people have" in told
    assert "protects a person, who has one value;" in told and "row" not in told


@pytest.mark.parametrize("command", [["show"], ["accept"], ["reject", "--reason", "no"]])
def test_a_hash_that_names_none_or_several_is_refused(site, command):
    assert isinstance(site.run(*command, "12").exception, ApprovalError)
    site.ask(*(make_study(name=f"s{number}") for number in range(33)))
    hashes = [entry.hash for entry in site.approvals.entries()]
    shared = next(h[0] for h in hashes if sum(other[0] == h[0] for other in hashes) > 1)
    refused = site.run(*command, shared).exception
    assert isinstance(refused, ApprovalError) and "Give more digits" in refused.message
    assert {entry.state for entry in site.approvals.entries()} == {"pending"}


def test_a_broken_configuration_is_named(site):
    site.config.write_text("[policy")
    refused = site.run("list").exception
    assert isinstance(refused, ConfigError) and str(site.config) in refused.message


# --- docs/policy.md ---

DOCS = (Path(umpc_package.__file__).parents[1] / "docs" / "policy.md").read_text(encoding="utf-8")


def test_the_rules_of_the_documentation_are_all_there_are_and_load(site):
    blocks = re.findall(r"```toml\n(.*?)```", DOCS, re.DOTALL)
    assert [block.split()[0] for block in blocks] == ["[policy]", "[budget]", "[notify]"]
    rules = blocks[0]
    site.config.write_text(site.config.read_text().partition("[policy]")[0] + rules)
    policy = load_node_config(site.config).policy
    assert [name for name, rule in vars(policy).items() if rule == getattr(ANYTHING, name)] == []


def test_the_commands_of_the_documentation_run(site):
    site.ask(TAU)
    (commands,) = re.findall(r"```sh\n(.*?)```", DOCS, re.DOTALL)
    states = []
    for line in commands.splitlines():
        words = [
            {"node.toml": str(site.config), "1f9c2a": digits(TAU)}.get(word, word)
            for word in shlex.split(line)
        ]
        ended = CliRunner().invoke(umpc, words[1:])
        assert ended.exit_code == 0, ended.output
        states.append(site.approvals.entries()[0].state)
    assert states == ["pending", "pending", "accepted", "rejected"]


def test_what_the_documentation_says_that_a_coordinator_reads_is_what_it_reads(site):
    with pytest.raises(ApprovalPending) as caught:
        site.approvals.require(TAU, "north")
    said = " ".join(DOCS.split()).replace("1f9c2a7be0d34856", digits(TAU, 16))
    assert f"error: {caught.value.message}. Nothing was released" in said
    assert (
        f"with exit code {ApprovalPending.exit_code}," in said
        and f"At most {MAX_PENDING} studies" in said
    )


def test_of_a_shuffled_study_the_shufflers_and_what_they_are_trusted_for_are_shown():
    entry = Entry("00", "waiting", "now", "", "", "coordinator", "study", "", "1", b"")
    shown = dict(description_of(entry, shuffled_study(3, max_colluding=1)))
    assert (
        shown["shufflers"]
        == "shuffler-1 and shuffler-2; neither may collude with coordinator or with the other"
    )
    assert shown["noise"] == "shuffled, withstands 1 of 3 nodes that collude"
    assert "shufflers" not in dict(description_of(entry, local_study("bell-ldp")))


def test_the_delta_that_a_study_asks_for_is_shown():
    """A study of gopa may ask for any: with half of it the epsilon promises little."""
    entry = Entry("00", "waiting", "now", "", "", "coordinator", "study", "", "1", b"")
    assert dict(description_of(entry, gopa_study(2, delta="0.5")))["delta"] == "1/2"
    for epsilon, delta in (("1", "3.38e-12"), ("1000000000000000000", "1")):
        assert dict(description_of(entry, shuffled_study(3, epsilon=epsilon)))["delta"] == delta
    assert "delta" not in dict(description_of(entry, local_study("bell-ldp")))
