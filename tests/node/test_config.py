"""umpc.node.config: every key, exactly; every mistake is named by file and key."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.node_files import BUDGET, DATA, HEAD, load, refused
from umpc.compute.place import ComputePlace
from umpc.errors import ConfigError
from umpc.node.config import NodeConfig, changed_keys, key_digests, load_node_config
from umpc.node.config_section import IDENTITY_FILES
from umpc.node.policy import ANYTHING, Policy
from umpc.node.records import load_records
from umpc.node.table.conversions import NumberFormat
from umpc.node.table.source import TableSource


def test_defaults(site):
    assert load(site, HEAD + DATA + BUDGET) == NodeConfig(
        file=site / "node.toml",
        name="a",
        listen="127.0.0.1:0",
        identity=site / "id",
        source=TableSource(site / "bank.csv", None, ("", "nan", "NaN", "NA")),
        dataset="bank",
        epsilon=Fraction(5),
        ledger=site / "a-ledger.sqlite",
    )


def test_every_key(site):
    (site / "sub").mkdir()
    config = load(
        site,
        f"""
        name = "hospital-a-1"
        listen = "[::1]:7001"
        identity = "{site}/id"
        ledger = "sub/budget.sqlite"
        [data]
        path = "sub/../bank.csv"
        delimiter = "\\t"
        missing = ["", "NA"]
        name = "Patients 2024"
        [budget]
        epsilon = "1/3"
        """,
    )
    assert config.source == TableSource(site / "bank.csv", "\t", ("", "NA"))
    assert (config.name, config.listen) == ("hospital-a-1", "[::1]:7001")
    assert (config.dataset, config.ledger) == ("Patients 2024", site / "sub" / "budget.sqlite")
    assert config.identity == site / "id"


def test_a_hub_takes_the_place_of_the_address_to_listen_on(site):
    relay = 'hub = {name = "relay", address = "hub.example.org:7443"}\n'
    assert str(load(site, relay + HEAD + DATA + BUDGET).hub) == "hub:relay@hub.example.org:7443"
    for lines, message in (
        (relay + 'listen = "127.0.0.1:0"\n', "'hub' and 'listen' exclude each other"),
        ('hub = {name = "relay"}\n', "'hub.address' is missing"),
        ('hub = {name = "re@lay", address = "a:1"}\n', "'hub.name'"),
        ('hub = {name = "relay", address = "a"}\n', "'hub': address 'a' is wrong"),
        ('hub = "relay@a:1"\n', r"section \[hub\]"),
    ):
        with pytest.raises(ConfigError, match=message):
            load(site, lines + HEAD + DATA + BUDGET)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('encoding = "latin-9000"', "'data.encoding': the name of a text encoding, like"),
        ('encoding = "rot13"', "'data.encoding'"),
        ('encoding = "hex"', "'data.encoding'"),
        ('decimal = ";"', "'data.decimal': one of '.', ',' was expected, and ';' came"),
        ('thousands = "x"', "'data.thousands': one of '', '.'"),
        ('decimal = ","\nthousands = ","', "'data.thousands': another character than the decimal"),
        ('thousands = "."', "'data.thousands': another character than the decimal mark"),
    ],
)
def test_how_a_table_writes_text_and_numbers_is_checked_at_the_start(site, lines, message):
    refused(site, f"{HEAD}{DATA}{lines}\n{BUDGET}", message)


def test_how_a_table_writes_text_and_numbers(site):
    lines = 'encoding = "cp1252"\ndecimal = ","\nthousands = " "'
    source = load(site, f"{HEAD}{DATA}{lines}\n{BUDGET}").source
    assert (source.encoding, source.numbers) == ("cp1252", NumberFormat(",", " "))


def test_paths_are_relative_to_the_file_wherever_the_process_runs(site, monkeypatch):
    (site / "node.toml").write_text(HEAD + DATA + BUDGET)
    monkeypatch.chdir(site.parent)
    assert load_node_config(Path(site.name) / "node.toml").source.path == site / "bank.csv"


def test_what_the_configuration_names_can_be_loaded(site):
    assert load_records(load(site, HEAD + DATA + BUDGET).source, [], node="a").count == 1


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("5", "5"),
        ("0.1", "1/10"),
        ('"0.1"', "1/10"),
        ('"1/3"', "1/3"),
        ("1e-3", "1/1000"),
        ("2.50e1", "25"),
        ("1_000", "1000"),
        ("0.3333333333333333333", "3333333333333333333/10000000000000000000"),
    ],
)
def test_epsilon_is_exact(site, written, value):
    assert load(site, HEAD + DATA + f"[budget]\nepsilon = {written}").epsilon == Fraction(value)


@pytest.mark.parametrize(
    ("written", "most", "seconds"),
    [
        ("", 4, 86_400),
        ("most = 0", 0, 86_400),
        ("hours = 0.5", 4, 1800),
        ("most = 1\nhours = 168", 1, 604_800),
    ],
)
def test_what_may_be_prepared(site, written, most, seconds):
    config = load(site, HEAD + DATA + BUDGET + f"[prepare]\n{written}")
    assert (config.most_prepared, config.prepared_seconds) == (most, seconds)


@pytest.mark.parametrize("written", ["0", "-1", "169", "nan", "inf", "true", '"1"'])
def test_hours_refused(site, written):
    refused(
        site,
        HEAD + DATA + BUDGET + f"[prepare]\nhours = {written}",
        "'prepare.hours'",
        "at most 168",
        "came",
    )


@pytest.mark.parametrize("written", ["-1", "1.5", "true"])
def test_numbers_of_prepared_studies_refused(site, written):
    refused(
        site,
        HEAD + DATA + BUDGET + f"[prepare]\nmost = {written}",
        "'prepare.most'",
        "0 or more",
        "came",
    )


@pytest.mark.parametrize(
    "written",
    [
        "0",
        "0.0",
        "-1",
        "-0.5",
        "inf",
        "nan",
        "true",
        "[1]",
        '"1/0"',
        '"-1/3"',
        '"one"',
        '"1/"',
        '"1e3"',
        '" 1"',
        '"٣"',
        "1e999999999",
        "1e-999999999",
        "1" * 31,
        '""',
        "2020-01-01",
    ],
)
def test_epsilon_refused(site, written):
    refused(
        site,
        HEAD + DATA + f"[budget]\nepsilon = {written}",
        "'budget.epsilon'",
        "a number above 0",
        "came",
    )


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            HEAD + 'listn = "x:1"\n' + DATA + BUDGET,
            ["unknown key 'listn' in line 3; ", "did you mean 'listen'?"],
        ),
        (
            HEAD + DATA + "clips = true\n" + BUDGET,
            ["unknown key 'data.clips'", "did you mean 'clip'?"],
        ),
        (HEAD + DATA + BUDGET + "epsilom = 1\n", ["unknown key 'budget.epsilom'", "'epsilon'"]),
        (HEAD + DATA + BUDGET + "zzz = 1\n", ["unknown key 'budget.zzz'", "known are epsilon, "]),
        (HEAD + DATA + BUDGET + "[extra]\n", ["unknown key 'extra'"]),
    ],
)
def test_unknown_keys_are_refused_with_a_suggestion(site, text, parts):
    refused(site, text, *parts)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('identity = "id"\n' + DATA + BUDGET, "'name'"),
        ('name = "a"\n' + DATA + BUDGET, "'identity'"),
        (HEAD + BUDGET, "'data'"),
        (HEAD + DATA, "'budget'"),
        (HEAD + "[data]\n" + BUDGET, "'data.path'"),
        (HEAD + DATA + "[budget]\n", "'budget.epsilon'"),
    ],
)
def test_missing_keys(site, text, key):
    refused(site, text, f"key {key} is missing", "was expected")


@pytest.mark.parametrize(
    "written", ["5", '""', '"../a"', '"a b"', '"-a"', '"ä"', '"a\\n"', f'"{"a" * 64}"']
)
def test_names(site, written):
    refused(
        site,
        f'name = {written}\nidentity = "id"\n' + DATA + BUDGET,
        "key 'name'",
        "a-z, 0-9",
        f"{written.replace(chr(34), chr(39))} came",
    )


@pytest.mark.parametrize(
    "listen", ["7001", "localhost", "localhost:", ":7001", "h:65536", "h:-1", "::1:70", "a b:1", ""]
)
def test_listen(site, listen):
    refused(
        site,
        f'listen = "{listen}"\n' + HEAD + DATA + BUDGET,
        "key 'listen'",
        "host:port",
        repr(listen),
    )


@pytest.mark.parametrize(
    ("line", "key", "came"),
    [
        ('delimiter = ";;"', "delimiter", "';;'"),
        ('delimiter = ""', "delimiter", "''"),
        ("delimiter = '\"'", "delimiter", "'\"'"),
        ('delimiter = "."', "delimiter", "'.'"),
        ('missing = "NA"', "missing", "'NA'"),
        ("missing = [-1]", "missing", "[-1]"),
        ('clip = "yes"', "clip", "'yes'"),
        ("clip = 1", "clip", "1"),
        ('name = ""', "name", "''"),
    ],
)
def test_values_under_data(site, line, key, came):
    refused(
        site,
        HEAD + DATA + line + "\n" + BUDGET,
        f"key 'data.{key}'",
        "was expected",
        f"{came} came",
    )


def test_a_node_always_clips_and_a_file_that_asks_it_not_to_is_refused(site):
    assert load(site, HEAD + DATA + "clip = true\n" + BUDGET) == load(site, HEAD + DATA + BUDGET)
    refused(
        site,
        HEAD + DATA + "clip = false\n" + BUDGET,
        "key 'data.clip': true was expected, and false came",
        "a refusal would tell the coordinator about them",
    )


def test_sections_are_sections(site):
    refused(
        site, HEAD + "data = 1\n" + BUDGET, "key 'data'", "a section [data] was expected", "1 came"
    )


def test_the_data_file_exists(site):
    refused(
        site,
        HEAD + '[data]\npath = "absent.csv"\n' + BUDGET,
        "'data.path'",
        str(site / "absent.csv"),
    )
    refused(site, HEAD + '[data]\npath = "id"\n' + BUDGET, "'data.path'", "an existing file")


@pytest.mark.parametrize("name", IDENTITY_FILES)
def test_the_identity_is_complete(site, name):
    (site / "id" / name).unlink()
    refused(site, HEAD + DATA + BUDGET, "key 'identity'", f"without {name}' came")


def test_the_ledger_has_a_folder(site):
    refused(
        site,
        'ledger = "absent/x"\n' + HEAD + DATA + BUDGET,
        "key 'ledger'",
        str(site / "absent" / "x"),
    )
    refused(
        site,
        'ledger = "id"\n' + HEAD + DATA + BUDGET,
        "key 'ledger'",
        "a file in an existing folder",
    )


def test_no_toml(site):
    refused(site, HEAD + "[data\n", "in TOML", "line 3")
    refused(site, HEAD + 'name = "b"\n', "in TOML")
    (site / "node.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(ConfigError, match="no text in UTF-8"):
        load_node_config(site / "node.toml")


def test_no_file(site):
    with pytest.raises(ConfigError, match="no such file"):
        load_node_config(site / "absent.toml")
    with pytest.raises(ConfigError, match="was expected, and this is a folder"):
        load_node_config(site / "id")


def test_no_rule_allows_anything_and_an_empty_list_nothing(site):
    assert load(site, HEAD + DATA + BUDGET + "[policy]\n").policy == ANYTHING == Policy()
    assert load(site, HEAD + DATA + BUDGET + "[policy]\nfields = []\n").policy == Policy(
        fields=frozenset()
    )


def test_a_statistic_that_cannot_be_allowed_by_name_says_why(site):
    text = HEAD + DATA + BUDGET + '[policy]\nstatistics = ["uniformity"]\n'
    refused(
        site,
        text,
        "can be allowed by its kernel's hash only",
        "kendall_tau, kendall_tau_b, kendall_tau_label, logrank, mann_whitney_u",
    )


def test_which_keys_need_a_restart(site):
    file = load(site, HEAD + DATA + BUDGET).file
    before = key_digests(file)
    load(site, HEAD + DATA + BUDGET + "[policy]\nmin_nodes = 3\n")
    assert changed_keys(before, file) == []
    (site / "other.csv").write_text("age\n")
    load(site, HEAD + '[data]\npath = "other.csv"\nname = "bank"\n[budget]\nepsilon = 6\n')
    assert changed_keys(before, file) == ["budget.epsilon", "data.name", "data.path"]
    file.write_text("[")
    assert changed_keys(before, file) == []


def test_keys_and_plugins_without_effect_are_told(site):
    assert load(site, 'plugins = ["gopa"]\n' + HEAD + DATA + BUDGET).without_effect == ()
    text = 'plugins = ["misspelt", "gopa"]\n' + HEAD + DATA + "cache_megabytes = 9\n" + BUDGET
    assert load(site, text).without_effect == ("cache_megabytes", "misspelt")


def test_where_the_node_computes(site):
    text = HEAD + DATA + BUDGET
    assert load(site, text).place == ComputePlace()
    assert load(site, "cores = 3\n" + text).place == ComputePlace(cores=3)
    refused(site, "cores = -1\n" + text, "'cores'")
    dask = 'compute = "dask://scheduler:8786"\n'
    refused(site, dask + text, "'compute_tls'")
    place = load(site, dask + 'compute_tls = "cluster"\n' + text).place
    assert place == ComputePlace(0, "dask://scheduler:8786", site / "cluster")
    for wrong in ("scheduler:8786", "ray://scheduler:8786", "dask://scheduler", "tcp://a:1"):
        refused(site, f'compute = "{wrong}"\n' + text, "'compute'", wrong)
