"""Bad input over real processes: one clear line, and nothing released or charged.

The line names the problem, its place, and the remedy.
"""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from tests.system.conftest import FIELDS, LOUD, TABLE, Lab, command
from umpc import errors as e
from umpc.deployment.processes import Deployment
from umpc.study.parts import FieldText
from umpc.transport.authority import Authority


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """Provide two nodes and a dealer for this file; each test brings its own table and study."""
    here = Lab(tmp_path_factory.mktemp("lab"), 2)
    try:
        yield here.start(epsilon="3/2")
    finally:
        here.stop()


def refused(here: Lab, error: type[e.UmpcError], *words: str, **changes) -> str:
    """Run a study that must be refused with this error, and return its last line."""
    outcome = here.run(**changes)
    assert outcome.code == error.exit_code, outcome.error
    assert outcome.output == ""
    assert outcome.last_line.startswith("error: ")
    for word in words:
        assert word in outcome.last_line
    assert all(here.reserved_by_the_living(name) == 0 for name in here.names)
    return outcome.last_line


TABLES = {
    "empty": ("", e.EmptyTable, "node-2"),
    "header only": ("age,balance\n", e.EmptyTable, "node-2"),
    "column": ("age,money\n33,5\n", e.UnknownField, "balance"),
    "unreadable": ("age,balance\n33,5\n34\n", e.DataError, "node-2"),
}


@pytest.mark.parametrize("case", TABLES)
def test_a_table_that_cannot_be_read_is_refused_by_its_node(running, case):
    table, error, word = TABLES[case]
    running.table("node-2").write_text(table)
    try:
        line = refused(running, error, "node-2", word, "no epsilon was charged", name="refused")
    finally:
        running.table("node-2").write_text(TABLE)
    assert "33" not in line and "row 2" not in line


def test_values_that_do_not_fit_run_and_only_the_administrator_hears_of_them(running):
    running.table("node-2").write_text("age,balance\n33,abcdef\n999,7\n34,inf\n35,1.25\n")
    try:
        outcome = running.run(name="misfits", epsilon="1/1000")
    finally:
        running.table("node-2").write_text(TABLE)
    assert outcome.code == 0, outcome.error
    assert outcome.report["records_by_node"] == [60, 4]
    assert "abcdef" not in outcome.output + outcome.error and "rounded" not in outcome.error
    log = running.log("node-2")
    for words in (
        "field 'age': numbers from 0 to 127 were expected; values that do not fit: 1 of 4; ",
        "values that do not fit: 3 of 4; data rows 3, 1 of them infinite, count as the "
        "nearer bound; data rows 1 are ",
        "data rows 4 were rounded to the nearest step, which can change ranks",
    ):
        assert f"for the administrator only: study 'misfits', {words}"[:20] in log and words in log


def test_rows_with_missing_values_are_dropped_and_counted_at_the_node_only(running):
    running.table("node-2").write_text("age,balance\n33,5\n,7\n35,\n")
    try:
        outcome = running.run(name="missing", epsilon="1/1000")
    finally:
        running.table("node-2").write_text(TABLE)
    assert outcome.code == 0, outcome.error
    assert outcome.report["records_by_node"] == [60, 1]
    assert "2 rows dropped" in running.log("node-2")


def test_fewer_than_two_records_in_all_are_refused(running):
    for name in running.names:
        running.table(name).write_text("age,balance\n33,\n")
    try:
        refused(running, e.TooFewRecords, "at least 2 records", name="few")
    finally:
        for name in running.names:
            running.table(name).write_text(TABLE)


@pytest.mark.parametrize("epsilon", ["0", "-1"])
def test_an_epsilon_that_is_not_positive_is_refused(running, epsilon):
    refused(running, e.InvalidEpsilon, epsilon, epsilon=epsilon)


def test_a_budget_that_is_too_small_tells_its_numbers_to_the_administrator_only(running):
    line = refused(
        running,
        e.InsufficientBudget,
        "asks for epsilon 2, and the site's budget has less left",
        epsilon="2",
        name="dear",
    )
    for words in ("spent", "reserved", "3/2"):
        assert words not in line
    (name,) = re.findall("node-[12]", line)[:1]
    assert "is left of 3/2 (spent " in running.wait_for_log(name, "is left of 3/2")


def test_a_field_that_no_kernel_uses_is_refused_by_all(running):
    words = "must occur in a kernel", "'ward'"
    more = {
        "statistic": None,
        "columns": None,
        "kernel": "kernels.py:gap",
        "fields": (FIELDS[0], FieldText("ward", "0", "9", whole=True)),
    }
    (running.folder / "kernels.py").write_text("def gap(a, b):\n    return abs(a.age - b.age)\n")
    refused(running, e.StudyError, *words, name="unused", **more)
    ended = command("study", "check", str(running.study_file(name="unused", **more)))
    assert ended.returncode == e.StudyError.exit_code and all(map(ended.stderr.count, words))


def test_a_field_that_the_schema_lacks_is_refused(running):
    refused(running, e.UnknownField, "balance", fields=FIELDS[:1])


def test_a_sum_that_does_not_fit_the_ring_is_refused_and_says_what_to_change(running):
    wide = (FIELDS[0], FieldText("balance", "-4000000000000000", "4000000000000000", whole=True))
    line = refused(
        running,
        e.RangeError,
        "narrow",
        fields=wide,
        statistic="gini_mean_difference",
        columns=["balance"],
        epsilon="1/1000",
        noise="distributed",
    )
    assert "ring" in line


def test_two_nodes_with_one_name_are_refused(running):
    address = running.served["node-1"].address
    refused(
        running, e.DuplicateParticipant, "node-1", nodes=[("node-1", address), ("node-1", address)]
    )


def test_a_node_that_answers_under_another_name_is_refused(running):
    address = running.served["node-1"].address
    line = refused(
        running, e.CertificateError, "node-2", nodes=[("node-1", address), ("node-2", address)]
    )
    assert "node-1" in line


def test_a_node_where_the_dealer_should_be_is_refused(running):
    refused(
        running,
        e.CertificateError,
        "dealer",
        dealer=("dealer", running.served["node-1"].address),
        name="wrong",
    )


def test_a_kernel_of_ones_own_runs_and_nodes_get_its_expression(running):
    (running.folder / "kernels.py").write_text(
        "def apart(a, b):\n    return abs(a.age - b.age) + 1\n"
    )
    outcome = running.run(
        name="own",
        epsilon="1/1000",
        fields=FIELDS[:1],
        statistic=None,
        columns=None,
        kernel="kernels.py:apart",
    )
    assert outcome.code == 0, outcome.error
    assert outcome.report["statistic"] == "apart"
    log = running.log("node-1")
    assert "kernel abs(a.age - b.age) + 1 of hash " in log and "range [1, 128]" in log


def test_a_check_says_what_a_study_means_and_who_answers(running):
    address = running.served["node-1"].address
    file = running.study_file(nodes=[("node-1", address), ("node-2", "127.0.0.1:1")])
    ended = command("study", "check", str(file), "--contact")
    assert ended.returncode == e.PeerUnavailable.exit_code, ended.stderr
    for words in (
        "sign(a.age - b.age) * sign(a.balance - b.balance)",
        "range      [-1, 1]",
        "changes by 2 per edge",
    ):
        assert words in ended.stdout
    assert "node-1 to node-2 node 'node-2' at 127.0.0.1:1 cannot be reached" in ended.stdout
    answers = [line.split(maxsplit=1) for line in ended.stdout.splitlines()]
    told = {name: text for name, text in answers if text.startswith(("answers", "node 'node-2'"))}
    assert told["dealer"].startswith("answers, protocol")
    assert told["node-1"].startswith("answers, protocol")
    assert "127.0.0.1:1" in told["node-2"]


def test_a_study_that_succeeded_leaves_no_warning_in_any_log(running):
    before = {name: len(running.log(name)) for name in (*running.names, "dealer")}
    outcome = running.run(name="quiet", epsilon="1/1000", columns=["age", "balance"])
    assert outcome.code == 0, outcome.error
    for name, length in before.items():
        said = running.log(name)[length:]
        assert "study 'quiet'" in said
        assert not LOUD.search(said), said
    assert not re.search(r"(?i)warning|error|Traceback", outcome.error), outcome.error


def test_a_check_predicts_what_a_run_over_these_records_costs(running):
    file = running.study_file(name="predicted", epsilon="1/1000", edges="all")
    check = "study", "check", str(file), "--records"
    said = command(*check, "60,60", check=True).stdout
    report = running.run(name="predicted", epsilon="1/1000", edges="all").report
    assert f"sets         {report['edges']:,} of 120 records, a record in at most 119" in said
    assert f"standard deviation {report['noise_std']:.4g} of a mean" in said
    assert (
        f"bytes        {report['bytes_online']:,} online, {report['bytes_offline']:,} before"
        in said
    )
    wrong = command(*check, "60")
    assert wrong.returncode == e.StudyError.exit_code and "one number per node" in wrong.stderr


def test_the_same_study_asked_again_gets_the_same_bytes_and_costs_nothing(running):
    first = running.run(name="again", epsilon="1/2")
    second = running.run(name="again", epsilon="1/2")
    assert (first.code, second.code) == (0, 0), first.error + second.error
    assert second.report["estimate"] == first.report["estimate"]
    assert (first.report["replayed"], second.report["replayed"]) == (False, True)
    assert first.report["noise_std"] == second.report["noise_std"]
    third = running.run(name="again-and-anew", epsilon="1/2")
    assert third.code == 0 and third.report["replayed"] is False


def test_another_package_is_welcome_and_another_protocol_is_refused(lab):
    here = lab(3)
    here.deployment.start_dealer()
    changes = ("pass", "umpc.__version__ = '9.9.9'", "umpc.protocol_version.PROTOCOL = '9.9.9'")
    for name, change in zip(here.names, changes, strict=True):
        program = f"import umpc.protocol_version; {change}; from umpc.cli.main import main; main()"
        here.deployment.command = (sys.executable, "-c", program)
        here.table(name).write_text(TABLE)
        here.deployment.start_node(name, here.table(name), "10")
    here.served.update(here.deployment.wait_until_ready())
    alike = [(name, here.served[name].address) for name in here.names[:2]]
    together = here.run(nodes=alike, name="alike")
    assert together.code == 0, together.error
    refused(here, e.VersionMismatch, "node-3", "9.9.9", "the same protocol")


def issued(
    tmp_path,
    role: str,
    *,
    authority: Authority | None = None,
    days: int = 90,
    now: datetime | None = None,
):
    authority = authority or Authority.create(tmp_path / "another-authority")
    authority.issue("coordinator", role, tmp_path / "other", days, **({"now": now} if now else {}))
    return tmp_path / "other"


def run_as(here: Lab, identity) -> subprocess.CompletedProcess:
    file = here.study_file(name="as-another")
    file.write_text(
        file.read_text().replace('identity = "coordinator"', f'identity = "{identity}"')
    )
    return command("study", "run", str(file))


def test_a_coordinator_of_another_authority_is_refused(running, tmp_path):
    ended = run_as(running, issued(tmp_path, "coordinator"))
    assert ended.returncode == e.CertificateError.exit_code, ended.stderr
    assert "authority" in ended.stderr.splitlines()[-1]


def test_a_coordinator_with_an_expired_certificate_is_refused(running, tmp_path):
    long_ago = datetime.now(UTC) - timedelta(days=3)
    authority = Authority.create(tmp_path / "old-authority", now=long_ago)
    ended = run_as(
        running, issued(tmp_path, "coordinator", authority=authority, days=1, now=long_ago)
    )
    assert ended.returncode == e.CertificateError.exit_code, ended.stderr
    assert "expired" in ended.stderr.splitlines()[-1]


def test_a_node_certificate_cannot_coordinate(running, tmp_path):
    identity = issued(tmp_path, "node", authority=Authority.open(running.folder / "authority"))
    ended = run_as(running, identity)
    assert ended.returncode == e.CertificateError.exit_code, ended.stderr
    assert "role" in ended.stderr.splitlines()[-1]


def test_a_port_in_use_is_refused(running, tmp_path):
    address = running.served["dealer"].address
    ended = command(
        "dealer", "start", "--identity", str(running.folder / "dealer"), "--listen", address
    )
    assert ended.returncode == e.AddressInUse.exit_code
    assert address in ended.stderr.splitlines()[-1]


def test_a_second_node_on_the_same_ledger_is_refused(running):
    ended = command("node", "start", "--config", str(running.folder / "node-1.toml"))
    assert ended.returncode == e.LedgerError.exit_code
    assert "node-1-ledger.sqlite" in ended.stderr


def test_a_deployment_says_why_a_process_does_not_start(tmp_path):
    deployment = Deployment(tmp_path)
    deployment.start_node("node-1", tmp_path / "absent.csv", "1")
    with pytest.raises(e.PeerUnavailable, match=r"node-1 did not start: .*absent.csv"):
        deployment.wait_until_ready()


def test_a_category_with_blanks_is_refused_before_anything_is_charged(running):
    """Its texts are read without them. Each node says so, whatever its values are."""
    field = FieldText.of_categories("age", ["30 ", "other"])
    asked = {"statistic": "duplicate_pair_ratio", "columns": ["age"], "fields": [field]}
    outcome = running.run(name="blanks", epsilon="1/1000", **asked)
    assert outcome.code == e.StudyError.exit_code, outcome.error
    assert "a category without blanks at its ends was expected" in outcome.error
