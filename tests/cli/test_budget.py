"""umpc budget: it shows and verifies a ledger while the node runs, and accepts only on request."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.ledgers import OpenLedger, pay
from umpc.cli.main import umpc
from umpc.errors import ConfigError, LedgerError
from umpc.node.budget.ledger import Ledger
from umpc.node.budget.ledger_place import read_anchor
from umpc.node.config_section import IDENTITY_FILES

A, B, C = (bytes([i]) * 32 for i in (0xA1, 0xB2, 0xC3))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "id").mkdir()
    (tmp_path / "other").mkdir()
    for name in IDENTITY_FILES:
        (tmp_path / "id" / name).write_text("pem")
    (tmp_path / "bank.csv").write_text("age\n30\n")
    file = tmp_path / "node.toml"
    file.write_text(
        'name = "a"\nidentity = "id"\nledger = "ledger"\n[data]\npath = "bank.csv"\n'
        '[budget]\nepsilon = 5\ndelta = "1e-9"\nanchor = "other/anchor"\n'
    )
    return file


def node(config: Path, **options) -> OpenLedger:
    folder = config.parent
    anchor = folder / "other" / "anchor"
    return OpenLedger(
        folder / "ledger", "bank", Fraction(5), Fraction(1, 10**9), anchor=anchor, **options
    )


def worked(ledger: Ledger) -> None:
    """A study in every state."""
    ledger.reserve(A, Fraction(1, 3), name="kendall [bold]")
    ledger.reserve_delta(A, Fraction(1, 10**12))
    pay(ledger, A, b"attempt", b"the share itself")
    ledger.reserve(B, Fraction(1), Fraction(0), name="held")
    ledger.cancel(B)
    ledger.reserve(B, Fraction(2), Fraction(0), name="held")
    ledger.hold(B, b"attempt", b"the share itself")
    ledger.reserve(C, Fraction(1, 2), Fraction(1, 10**10), name="charged")
    pay(ledger, C, b"", b"")


def run(config: Path, *arguments: str) -> str:
    result = CliRunner().invoke(umpc, ["budget", *arguments, "--config", str(config)])
    if result.exception:
        raise result.exception
    return result.output


def test_show_as_json_while_the_node_runs(config):
    with node(config) as ledger:
        worked(ledger)
        shown = json.loads(run(config, "show", "--format", "json"))
        assert (
            shown["row"] == len(ledger.history())
            and shown["row_hash"] == ledger.history()[-1].hash.hex()
        )
        assert kinds_before(ledger) == shown["row"], "showing wrote a row"
    assert shown["epsilon"] == {"total": "5", "spent": "5/6", "reserved": "2", "left": "13/6"}
    assert shown["delta"] == {
        "total": "1/1000000000",
        "spent": "101/1000000000000",
        "reserved": "0",
        "left": "899/1000000000000",
    }
    assert shown["dataset"] == "bank" and shown["anchor_fault"] == ""
    states = [
        (s["hash"], s["name"], s["epsilon"], s["delta"], s["state"]) for s in shown["studies"]
    ]
    assert states == [
        (A.hex(), "kendall [bold]", "1/3", "1/1000000000000", "charged"),
        (C.hex(), "charged", "1/2", "1/10000000000", "charged"),
        (B.hex(), "held", "2", "0", "held until then"),
    ]


def test_a_study_that_was_asked_and_answered_keeps_its_name_and_cost(config):
    with node(config) as ledger:
        worked(ledger)
        ledger.answer(C, b"", b"q" * 32, b"the answer itself")
        shown = run(config, "show", "--format", "json")
    last = json.loads(shown)["studies"][1]
    assert (last["name"], last["epsilon"], last["state"]) == ("charged", "1/2", "answered")
    assert "the answer itself" not in shown


def kinds_before(ledger: Ledger) -> int:
    return len(ledger.history())


def test_show_as_a_table(config):
    with node(config) as ledger:
        worked(ledger)
    shown = run(config, "show")
    for text in (
        "kendall [bold]",
        "a1a1a1a1a1a1a1a1",
        "5/6",
        "charged",
        "held until then",
        "agrees",
    ):
        assert text in shown, shown
    with node(config) as ledger:
        ledger.drop(B)
    assert "held until" not in run(config, "show")


@pytest.mark.parametrize(("columns", "widest"), [("", 110), ("70", 70), ("300", 300)])
def test_a_piped_table_follows_columns_and_cuts_no_date(config, monkeypatch, columns, widest):
    monkeypatch.setenv("COLUMNS", columns)
    with node(config) as ledger:
        ledger.reserve(A, Fraction(1, 4), Fraction(0), name="a study of a rather long name " * 4)
        pay(ledger, A, b"attempt", b"the share itself")
    table = run(config, "show").partition("ledger ")[0]
    assert max(map(len, table.splitlines())) <= widest
    assert re.search(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", table)
    assert "…" not in table


def test_a_prepared_study_is_shown_with_what_it_reserves(config):
    with node(config) as ledger:
        worked(ledger)
        ledger.reserve(b"p" * 32, Fraction(1), Fraction(0), name="ahead")
        ledger.prepare(b"p" * 32, 4e9)
        shown, text = json.loads(run(config, "show", "--format", "json")), run(config, "show")
    assert shown["epsilon"] == {"total": "5", "spent": "5/6", "reserved": "3", "left": "7/6"}
    last = shown["studies"][-1]
    assert (last["when"], last["name"], last["state"]) == (
        "2096-10-02T07:06:40+00:00",
        "ahead",
        "prepared until then",
    )
    assert "8.99e-10" in text


def test_a_ledger_of_an_earlier_version_is_shown_with_its_reservations(config):
    with node(config) as ledger:
        ledger.write_row("reserve", B, Fraction(2), note="cut off")
        ledger.write_row("reserve", C, Fraction(1), Fraction(0), note="former")
        ledger.write_row("charge", C, Fraction(1), Fraction(0))
        ledger.write_row("release", C)
        shown = json.loads(run(config, "show", "--format", "json"))
    states = [(s["name"], s["epsilon"], s["delta"], s["state"]) for s in shown["studies"]]
    assert states == [("cut off", "2", None, "reserved"), ("former", "1", "0", "released")]
    node(config).close()
    assert "given back" in run(config, "show")  # the next start returned it


def test_a_held_attempt_that_was_edited_is_shown_and_does_not_verify(config):
    import sqlite3

    with node(config) as ledger:
        worked(ledger)
        with sqlite3.connect(config.parent / "ledger") as other:
            other.execute("UPDATE store SET epsilon = '1/4'")
        other.close()
        assert f"the held attempt of {B.hex()} is wrong" in run(config, "show")
        with pytest.raises(LedgerError, match="the held attempt of b2b2b2b2b2b2b2b2 is wrong"):
            run(config, "verify")


def test_no_output_holds_a_share(config):
    with node(config) as ledger:
        worked(ledger)
    assert "the share itself" not in run(config, "show") + run(config, "show", "--format", "json")


def test_a_ledger_of_no_studies(config):
    node(config).close()
    assert "no study was asked for yet" in run(config, "show")


def test_a_ledger_that_is_not_there(config):
    for command in ("show", "verify", "anchor"):
        with pytest.raises(LedgerError, match="A node makes it"):
            run(config, command)
    assert not (config.parent / "ledger").exists()


def test_a_wrong_configuration(config):
    config.write_text("name = 1")
    with pytest.raises(ConfigError):
        run(config, "show")


def test_verify_prints_the_last_row_s_hash(config):
    with node(config) as ledger:
        worked(ledger)
        last = ledger.history()[-1]
        while_it_runs = run(config, "verify")
    assert f"row {last.seq}, hash {last.hash.hex()}" in while_it_runs
    assert run(config, "verify") == while_it_runs


def test_verify_fails_where_the_ledger_is_edited(config):
    import sqlite3

    with node(config) as ledger:
        worked(ledger)
        with sqlite3.connect(config.parent / "ledger") as other:
            other.execute("UPDATE ledger SET epsilon = '1/4' WHERE kind = 'charge'")
        other.close()
        for command in ("show", "verify", "anchor"):
            with pytest.raises(LedgerError, match="row 3 is wrong"):
                run(config, command)


def test_a_lost_anchor_is_shown_refused_and_accepted_on_request_only(config):
    with node(config) as ledger:
        worked(ledger)
    anchor = config.parent / "other" / "anchor"
    anchor.unlink()
    assert "no such file" in run(config, "show")
    assert "no such file" in json.loads(run(config, "show", "--format", "json"))["anchor_fault"]
    for command in ("verify", "anchor"):
        with pytest.raises(LedgerError, match="no such file"):
            run(config, command)
    assert not anchor.exists()
    said = run(config, "anchor", "--accept")
    assert str(read_anchor(anchor)) in said
    run(config, "verify")
    assert "nothing to accept" in run(config, "anchor", "--accept")
    with node(config) as ledger:
        assert [row.kind for row in ledger.history()].count("accept") == 1
        assert ledger.balance().spent == Fraction(5, 6)


def test_nothing_is_accepted_while_the_node_runs(config):
    with node(config) as ledger:
        worked(ledger)
        (config.parent / "other" / "anchor").unlink()
        with pytest.raises(LedgerError, match="another one holds"):
            run(config, "anchor", "--accept")
    assert not (config.parent / "other" / "anchor").exists()


def test_the_exit_code(config, monkeypatch, capsys):
    from umpc.cli.main import main

    node(config).close()
    (config.parent / "other" / "anchor").unlink()
    monkeypatch.setattr("sys.argv", ["umpc", "budget", "verify", "--config", str(config)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == LedgerError.exit_code
    assert "--accept" in capsys.readouterr().err
