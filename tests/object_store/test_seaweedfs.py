"""Tables in an object store, on a real server: `make test-objects`."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import obstore
import pytest

from tests.object_store.conftest import ACCESS, SECRET, Weed
from tests.support.studyfiles import run_two_sites
from umpc.deployment.processes import UMPC, Deployment, ended_with_us
from umpc.errors import ConfigError, DataError
from umpc.node.records import load_records
from umpc.node.table import object_store
from umpc.node.table.source import ObjectSource, TableSource
from umpc.testing import lying
from umpc.ustat.schema import FieldSchema

AGE = FieldSchema("age", Fraction(0), Fraction(120), Fraction(1))


def table(weed: Weed, bucket: str, pattern: str, keys: Path | None) -> TableSource:
    objects = ObjectSource(bucket, pattern, weed.endpoint, credentials_file=keys)
    return TableSource(Path(bucket, pattern), is_pattern="*" in pattern, objects=objects)


def ages(source: TableSource) -> list[int]:
    return load_records(source, [AGE], node="north").columns["age"].tolist()


def test_objects_of_both_formats_are_read(weed, keys, tmp_path):
    file = tmp_path / "part.parquet"
    duckdb.sql("SELECT range % 100 AS age FROM range(2000000)").write_parquet(str(file))
    assert file.stat().st_size > 2000
    weed.put("visits", a__x_csv=b"age\n31\n", a__y_csv=b"age\n32\n", a__b__z_csv=b"age\n33\n")
    weed.put("visits", p__x_parquet=file.read_bytes())
    assert ages(table(weed, "visits", "a/*.csv", keys)) == [31, 32]
    assert ages(table(weed, "visits", "a/**/*.csv", keys)) == [33, 31, 32]
    assert ages(table(weed, "visits", "a/x.csv", keys)) == [31]
    assert ages(table(weed, "visits", "p/*.parquet", keys)) == [i % 100 for i in range(2_000_000)]


def test_an_object_of_many_pieces_is_put_together(weed, keys, limit):
    rows = [i % 120 for i in range(50_000)]
    weed.put("pieces", a_csv=("age\n" + "\n".join(map(str, rows))).encode())
    limit(object_store, PIECE=10_000)
    assert ages(table(weed, "pieces", "a.csv", keys)) == rows


def test_a_change_while_the_table_is_read_is_refused_by_the_store(weed, keys):
    weed.put("changing", a_csv=b"age\n31\n", b_csv=b"age\n32\n")
    source = table(weed, "changing", "*.csv", keys)
    calls = []

    def written_before(honest, store, key, *rest):
        calls.append(key)
        if len(calls) == 2:
            weed.put("changing", b_csv=b"age\n42\n")
        return honest(store, key, *rest)

    with lying("process", read=written_before):
        with pytest.raises(DataError, match="while they are read") as caught:
            ages(source)
        assert calls == ["a.csv", "b.csv"] and "s3://changing" in caught.value.detail
        assert ages(source) == [31, 42]  # the next study sees the new state

    def added_after(honest, *given):
        weed.put("changing", c_csv=b"age\n33\n")
        return honest(*given)

    with lying("process", read=added_after), pytest.raises(DataError, match="added or removed"):
        ages(source)


def test_refusals_have_a_class_and_an_advice_and_show_no_key(weed, keys, tmp_path):
    weed.put("closed", a__x_csv=b"age\n31\n")

    def keys_of(key: str, secret: str) -> Path:
        file = tmp_path / f"{key}-{secret}.keys"
        file.write_text(keys.read_text().replace(ACCESS, key).replace(SECRET, secret))
        file.chmod(0o600)
        return file

    source = table(weed, "closed", "a/*.csv", keys)
    nobody = replace(weed, endpoint="http://127.0.0.1:1")
    cases = (
        (table(weed, "nobucket", "a/*.csv", keys), ConfigError, "no such bucket"),
        (table(weed, "nobucket", "a/x.csv", keys), ConfigError, "no such bucket"),
        (table(weed, "closed", "a/none.csv", keys), ConfigError, "no such object"),
        (
            table(weed, "closed", "a/*.csv", keys_of("NOBODY", SECRET)),
            ConfigError,
            "does not know",
        ),
        (
            table(weed, "closed", "a/*.csv", keys_of(ACCESS, "wrong")),
            ConfigError,
            "secret key is",
        ),
        (table(weed, "closed", "a/*.csv", keys_of("STRANGER", SECRET)), ConfigError, "may not"),
        (table(nobody, "closed", "a/*.csv", keys), DataError, "nothing listens there"),
    )
    for each, cls, advice in cases:
        with pytest.raises(cls, match="own log says why") as caught:
            pytest.fail(f"{advice}: {ages(each)}")
        said = caught.value.detail
        assert advice in said, said
        for text in (said, caught.value.message, repr(caught.value)):
            assert SECRET not in text and ACCESS not in text and "Signature=" not in text
    assert ages(source) == [31]


def test_a_node_reads_objects_in_a_study_of_real_processes(weed, keys, tmp_path):
    rows = "".join(f"{i % 50},{i * 13 % 90 / 2}\n" for i in range(40)).encode()
    half = rows.index(b"\n", len(rows) // 2) + 1
    weed.put(
        "ward", v__a_csv=b"age,balance\n" + rows[:half], v__b_csv=b"age,balance\n" + rows[half:]
    )
    south = tmp_path / "south.csv"
    south.write_text("age,balance\n" + "".join(f"{i % 50},{i % 90 / 2}\n" for i in range(30)))
    deployment = Deployment(tmp_path)
    with ended_with_us(deployment.processes):
        deployment.start_dealer()
        deployment.start_node("south", south, "10")
        deployment.authority.issue("north", "node", tmp_path / "north")
        config = tmp_path / "north.toml"
        config.write_text(
            'name = "north"\nidentity = "north"\n[data]\nname = "visits"\nurl = "s3://ward/v/*.csv"'
            f'\nendpoint = "{weed.endpoint}"\ncredentials_file = "{keys.name}"\n'
            "[budget]\nepsilon = 10\n"
        )
        deployment.start("north", ["node", "start", "--config", str(config)])
        served = deployment.wait_until_ready()
        run = run_two_sites(tmp_path, served)
        doctor = [*UMPC, "node", "doctor", "--config", str(config)]
        checked = subprocess.run(doctor, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert -1e3 < json.loads(run.stdout)["estimate"] < 1e3
    assert "40 rows and 2 columns" in checked.stdout, checked.stdout + checked.stderr
    logs = "".join(path.read_text() for path in tmp_path.glob("*.log"))
    assert "40 records" in logs
    for text in (run.stdout, run.stderr, checked.stdout, checked.stderr, logs):
        assert SECRET not in text and ACCESS not in text


def test_a_bucket_that_nobody_made_is_none(weed):
    with pytest.raises(Exception, match="NoSuchBucket"):
        list(obstore.list(weed.bucket("nobucket")))
