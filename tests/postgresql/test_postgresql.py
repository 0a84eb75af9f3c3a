"""A real PostgreSQL server: types, refusals, secrets, and a study of real processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from tests.cli.test_omop import IN_FIRST, IN_LAST, written
from tests.postgresql.conftest import PASSWORD
from tests.support.omop import FIRST, LAST, statements
from tests.support.studyfiles import run_two_sites
from umpc.deployment.processes import UMPC, Deployment, ended_with_us
from umpc.errors import DataError
from umpc.node.records import load_records
from umpc.node.table.source import TableSource
from umpc.node.table.sql_source import SqlSource
from umpc.transport.patience import waited_for
from umpc.ustat.schema import FieldSchema

SETUP = """
CREATE TYPE sex AS ENUM ('f', 'm');
CREATE TABLE ward (
    id int PRIMARY KEY, age smallint, cost numeric(12,4), weight real, smoker boolean, sex sex,
    "Note %" text, born date, seen timestamptz, stay interval, labs jsonb, codes int[], scan bytea
);
INSERT INTO ward VALUES
    (1, 40, 12.3450, 0.1, true, 'f', '1.5', '1980-01-01', now(), '1 day', '{}', '{1}', 'x'),
    (2, 50, 'NaN', 70.25, false, 'm', 'x', NULL, NULL, NULL, NULL, NULL, NULL),
    (3, NULL, 1, 'NaN', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, 60, 99999999.9999, 'Infinity', true, 'f', '2', NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE secrets (age int);
CREATE FUNCTION sneak() RETURNS int LANGUAGE sql AS 'INSERT INTO ward (id) VALUES (99) RETURNING 1';
GRANT SELECT, INSERT, DELETE ON ward TO reader;
"""


def numbers(name: str, low: str, high: str, step: str) -> FieldSchema:
    return FieldSchema(name, Fraction(low), Fraction(high), Fraction(step))


AGE = numbers("age", "0", "120", "1")


@pytest.fixture(scope="module")
def ward(cluster):
    cluster.execute(SETUP)
    return cluster


@pytest.fixture
def source(ward, password_file) -> TableSource:
    sql = SqlSource(ward.url(), "SELECT * FROM ward ORDER BY id", password_file)
    return TableSource(password_file.parent / "node.toml", sql=sql)


def of(source: TableSource, query: str) -> TableSource:
    return replace(source, sql=replace(source.sql, query=query))


def read(source: TableSource, field: FieldSchema) -> list[int]:
    return load_records(source, [field], node="north").columns[field.name].tolist()


def test_texts_of_a_database_without_an_encoding_are_texts(ward, source):
    ward.execute_alone(
        "CREATE DATABASE plain ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    )
    url = ward.url(database="plain")
    query = "SELECT * FROM (VALUES ('f', 1), ('m', 2), ('', 3)) AS t(sex, age)"
    plain = replace(source, sql=replace(source.sql, url=url, query=query))
    sex = FieldSchema("sex", Fraction(0), Fraction(1), Fraction(1), ("m", "f"))
    assert read(plain, sex) == [1, 0]
    utf8 = "convert_from(convert(convert_to(sex, 'SQL_ASCII'), 'LATIN1', 'UTF8'), 'SQL_ASCII')"
    query = f"SELECT {utf8} AS sex FROM (VALUES (E'm\\351'), ('m')) AS t(sex)"
    latin = replace(source, sql=replace(source.sql, url=url, query=query))
    assert read(latin, replace(sex, categories=("m", "mé"))) == [1, 0], "as docs/sql.md says"


def test_columns_are_typed_exactly(source):
    assert read(source, AGE) == [40, 50, 60]
    cost = numbers("cost", "-1", "1e8", "1/10000")
    assert read(source, cost) == [123450, 10000, 999999999999]  # NaN is missing
    assert read(source, numbers("weight", "0", "100", "0.05")) == [2, 1405, 2000]
    assert read(source, numbers("smoker", "0", "1", "1")) == [1, 0, 1]
    words = FieldSchema("smoker", Fraction(0), Fraction(1), Fraction(1), ("true", "false"))
    assert read(source, words) == [0, 1, 0]
    sex = FieldSchema("sex", Fraction(0), Fraction(1), Fraction(1), ("m", "f"))
    assert read(source, sex) == [1, 0, 1]
    assert read(source, numbers("Note %", "0", "9", "0.5")) == [3, 0, 4]
    assert read(of(source, "SELECT age FROM ward WHERE sex::text LIKE '%f%'"), AGE) == [40, 60]


def test_other_types_are_refused_with_what_to_write(source):
    for name in ("born", "seen", "stay", "labs", "codes", "scan"):
        with pytest.raises(DataError, match=rf"field '{name}'.*has the type.*change sql"):
            read(source, numbers(name, "0", "9", "1"))
    days = "SELECT (born - DATE '1970-01-01') AS days FROM ward ORDER BY id"
    assert read(of(source, days), numbers("days", "0", "99999", "1")) == [3652]


def test_what_cannot_be_read_is_said_without_values_or_secrets(ward, source, tmp_path):
    wrong = tmp_path / "wrong.pw"
    wrong.write_text("not-" + PASSWORD)
    wrong.chmod(0o600)
    sql = source.sql
    cases = (
        (replace(sql, password_file=wrong), "refuses the user"),
        (replace(sql, password_file=None), "asks for a password"),
        (replace(sql, url=ward.url(database="none")), "no such database"),
        (replace(sql, url=ward.url(port=1)), "nothing listens there"),
        (replace(sql, query="secrets"), "GRANT SELECT"),
        (replace(sql, query="nowhere"), "no such table"),
        (replace(sql, query='SELECT "Note %"::int AS age FROM ward'), "cannot convert"),
        (replace(sql, query="SELECT sneak() AS age"), "tries to change data"),
        (
            replace(sql, query="WITH x AS (DELETE FROM ward RETURNING age) SELECT * FROM x"),
            "SELECT",
        ),
        (replace(sql, query="SELECT 1 AS age) q; COMMIT; DELETE FROM ward; SELECT (1"), "42601"),
    )
    for each, advice in cases:
        with pytest.raises(DataError) as caught:
            load_records(replace(source, sql=each), [AGE], node="north")
        said = caught.value.detail.replace(str(tmp_path), "")
        assert advice in said and "'x'" not in said, said
        assert PASSWORD not in said + caught.value.message + repr(caught.value)
    assert ward.execute("SELECT count(*) FROM ward") == [(4,)]
    with pytest.raises(DataError, match="more than once"):
        read(of(source, "SELECT age, id AS age FROM ward"), AGE)


def test_many_rows_are_read_in_one_snapshot(source):
    query = "SELECT i % 101 AS age FROM generate_series(1, 50000) AS i ORDER BY i"
    assert read(of(source, query), AGE) == [i % 101 for i in range(1, 50001)]


@pytest.mark.parametrize("hangs", [False, True])
def test_a_reading_ends_with_its_study_also_where_the_server_hangs(ward, source, hangs):
    """Each study would otherwise take one more thread and connection, and some stop the node."""
    backends = "SELECT pid FROM pg_stat_activity WHERE usename = 'reader'"
    slow = of(source, "SELECT age FROM ward, pg_sleep(600) ORDER BY id")

    async def give_up() -> int:
        with waited_for():
            reading = asyncio.create_task(asyncio.to_thread(read, slow, AGE))
            while not (found := ward.execute(backends)):
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)  # until it sleeps
            if hangs:
                os.kill(found[0][0], signal.SIGSTOP)
        with pytest.raises(DataError):
            await asyncio.wait_for(reading, 30)
        return found[0][0]

    backend = asyncio.run(give_up())
    if hangs:
        os.kill(backend, signal.SIGCONT)
    deadline = time.monotonic() + 30
    while ward.execute(backends):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_server_that_ends_the_connection_is_said_so(ward, source):
    query = "SELECT age FROM ward, (SELECT pg_terminate_backend(pg_backend_pid())) AS x"
    with pytest.raises(DataError) as caught:
        read(of(source, query), AGE)
    assert "ended the connection" in caught.value.detail


@pytest.mark.parametrize("words, expected", [(IN_FIRST, FIRST), (IN_LAST, LAST)])
def test_the_select_over_an_omop_model_is_the_same_here(
    words, expected, ward, source, cluster, tmp_path
):
    cluster.execute("DROP SCHEMA IF EXISTS cdm, results CASCADE", *statements())
    select = written(tmp_path / "select.sql", *words)
    rows = cluster.execute(select)
    assert [(*row[:3], row[3] and float(row[3])) for row in rows] == [*expected]
    cluster.execute(
        written(tmp_path / "view.sql", *words, "--view", "results.crp"),
        "GRANT USAGE ON SCHEMA cdm, results TO reader",
        "GRANT SELECT ON ALL TABLES IN SCHEMA cdm, results TO reader",
    )
    values = sorted(2 * row[3] for row in expected if row[3] is not None)
    for query in (select, "results.crp"):
        assert sorted(read(of(source, query), numbers("crp", "0", "500", "0.5"))) == values


def test_a_node_reads_from_postgresql_in_a_study_of_real_processes(ward, tmp_path, password_file):
    ward.execute(
        "CREATE TABLE visits AS SELECT i % 50 AS age, (i * 13 % 90)::numeric / 2 AS balance"
        " FROM generate_series(1, 40) AS i",
        "GRANT SELECT ON visits TO reader",
    )
    table = tmp_path / "south.csv"
    table.write_text("age,balance\n" + "".join(f"{i % 50},{i % 90 / 2}\n" for i in range(30)))
    deployment = Deployment(tmp_path)
    with ended_with_us(deployment.processes):
        deployment.start_dealer()
        deployment.start_node("south", table, "10")
        north = _database_node(deployment, tmp_path, ward.url(), password_file)
        served = deployment.wait_until_ready()
        run = run_two_sites(tmp_path, served)
    assert run.returncode == 0, run.stderr
    budget = [*UMPC, "budget", "show", "--config", str(north), "--format", "json"]
    shown = subprocess.run(budget, capture_output=True, text=True, check=True).stdout
    (released,) = json.loads(shown)["studies"]
    assert released["state"] == "charged" and released["data"]["fields"].keys() == {
        "age",
        "balance",
    }
    assert (released["data"]["at_least"], released["data"]["at_most"]) == (32, 63)
    logs = "".join(path.read_text() for path in tmp_path.glob("*.log"))
    assert PASSWORD not in run.stdout + run.stderr + shown + logs
    assert "40 records" in logs


def _database_node(deployment: Deployment, folder: Path, url: str, password: Path) -> Path:
    """Start node north over the view, by the configuration that an administrator would write."""
    deployment.authority.issue("north", "node", folder / "north")
    config = folder / "north.toml"
    config.write_text(
        'name = "north"\nidentity = "north"\n[data]\nname = "visits"\nsql = "visits"\n'
        f'url = "{url}"\npassword_file = "{password.name}"\n[budget]\nepsilon = 10\n'
    )
    deployment.start("north", ["node", "start", "--config", str(config)])
    return config
