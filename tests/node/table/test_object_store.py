"""umpc.node.table.object_store: objects of one state, in memory, and no key in any text."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

from tests.support.files import key_file
from tests.support.small_s3 import BUCKET, SmallS3, small_s3
from umpc.errors import ConfigError, DataError, UmpcError
from umpc.node.records import load_records
from umpc.node.table import object_store
from umpc.node.table.source import ObjectSource, TableSite, TableSource
from umpc.node.table.survey import survey_table
from umpc.ustat.schema import FieldSchema

AGE = FieldSchema("age", Fraction(0), Fraction(120), Fraction(1))
KEY, SECRET = "READERKEY", "hunter2-Zx"


@pytest.fixture
def store() -> Iterator[SmallS3]:
    with small_s3() as found:
        yield found


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return key_file(tmp_path / "keys", KEY, SECRET)


def table(store: SmallS3, keys: Path | None, pattern: str, **changes) -> TableSource:
    objects = ObjectSource(BUCKET, pattern, store.endpoint, credentials_file=keys, **changes)
    return TableSource(Path(BUCKET, pattern), is_pattern="*" in pattern, objects=objects)


def ages(source: TableSource) -> list[int]:
    return load_records(source, [AGE], node="north").columns["age"].tolist()


def fails(source: TableSource, cls: type[UmpcError], message: str, detail: str = "") -> None:
    with pytest.raises(cls, match=message) as caught:
        load_records(source, [AGE], node="north")
    error = caught.value
    assert detail in error.detail and "north" in error.message
    for text in (error.message, error.detail, repr(error), str(error.__cause__)):
        assert SECRET not in text and KEY not in text


def memory_files() -> list[str]:
    """The anonymous files of this process."""
    links = Path("/proc/self/fd").iterdir()
    return [path for path in map(os.readlink, filter(Path.is_symlink, links)) if "memfd" in path]


def parquet(tmp_path: Path, rows: range) -> bytes:
    file = tmp_path / "part.parquet"
    duckdb.sql(f"SELECT range AS age FROM range({rows.start}, {rows.stop})").write_parquet(
        str(file)
    )
    return file.read_bytes()


def test_csv_and_parquet_are_read_from_one_object_or_many(store, keys, tmp_path):
    store.objects = {
        "2026/b.csv": b"age\n33\n",
        "2026/a.csv": b"age\n31\n32\n",
        "2026/.hidden.csv": b"age\n99\n",
        "2026/old/c.csv": b"age\n34\n",
        "p/region=n/x.parquet": parquet(tmp_path, range(40, 42)),
        "p/region=s/x.parquet": parquet(tmp_path, range(50, 52)),
    }
    assert ages(table(store, keys, "2026/a.csv")) == [31, 32]
    assert ages(table(store, keys, "2026/*.csv")) == [31, 32, 33]
    assert ages(table(store, keys, "2026/**/*.csv")) == [31, 32, 33, 34]
    folders = table(store, keys, "p/*/x.parquet")
    assert set(store.prefixes) == {"2026/"}, "no key elsewhere is listed"
    assert ages(folders) == [40, 41, 50, 51]
    assert survey_table(folders, [], TableSite("a", folders.path)).columns == ["age", "region"]


def test_large_objects_come_in_pieces_and_no_byte_reaches_a_disk(store, keys, limit):
    rows = np.arange(1000) % 100
    store.objects = {"a.csv": ("age\n" + "\n".join(map(str, rows)) + "\n").encode()}
    limit(object_store, PIECE=1000)
    source = table(store, keys, "a.csv")
    assert ages(source) == rows.tolist()
    assert store.seen.count("a.csv") == -(-len(store.objects["a.csv"]) // 1000)
    with object_store.fetched(source, source.objects, TableSite("a", source.path)) as local:
        (file,) = local.files()
        assert file.is_symlink() and "memfd" in os.readlink(os.readlink(file))
    assert not file.parent.exists() and not memory_files()


@pytest.mark.parametrize("ignores_conditions", [False, True])
def test_an_object_that_is_written_while_it_is_read_is_refused(
    store, keys, limit, ignores_conditions
):
    limit(object_store, PIECE=4)
    store.objects = {"a.csv": b"age\n31\n32\n"}
    store.ignores_conditions = ignores_conditions

    def write(key: str) -> None:
        if store.seen.count(key) == 2:
            store.objects[key] = b"age\n41\n42\n"

    store.before_read = write
    fails(table(store, keys, "a.csv"), DataError, "while they are read")


@pytest.mark.parametrize("change", ["added", "removed", "written"])
def test_a_bucket_that_changes_while_it_is_read_is_refused(store, keys, change):
    store.objects = {"a.csv": b"age\n31\n", "b.csv": b"age\n32\n"}

    def write(key: str) -> None:
        if key == "b.csv" and change == "removed":
            store.objects.pop("a.csv", None)
        elif key == "b.csv":
            store.objects["c.csv" if change == "added" else "a.csv"] = b"age\n33\n"

    store.before_read = write
    fails(table(store, keys, "*.csv"), DataError, "added or removed meanwhile")


@pytest.mark.parametrize(
    ("refusal", "cls", "detail"),
    [
        ((404, "NoSuchBucket"), ConfigError, "no such bucket"),
        ((403, "InvalidAccessKeyId"), ConfigError, "does not know the access key"),
        ((403, "SignatureDoesNotMatch"), ConfigError, "not that of the access key"),
        ((403, "AccessDenied"), ConfigError, "s3:ListBucket"),
        ((400, "Whatever"), DataError, "GenericError"),
    ],
)
def test_a_refusal_of_the_store_has_its_class_and_advice(store, keys, refusal, cls, detail):
    store.refusal = refusal
    fails(table(store, keys, "*.csv"), cls, "own log says why", detail)


def test_other_mistakes_have_a_class_too(store, keys, monkeypatch, limit):
    store.objects = {"a.csv": b"age\n31\n"}
    fails(table(store, keys, "b*.csv"), ConfigError, "own log", "no such object")
    fails(table(store, keys, "a.csv", most_bytes=3), DataError, "object_megabytes")
    fails(table(store, None, "a.csv"), ConfigError, "AWS_ACCESS_KEY_ID")
    gone = replace(store, port=1)
    limit(object_store, RETRIES=0)
    fails(table(gone, keys, "a.csv"), DataError, "own log", "nothing listens there")
    store.gives_etags = False
    fails(table(store, keys, "a.csv"), DataError, "own log", "no ETags")
    keys.chmod(0o644)
    fails(table(store, keys, "a.csv"), ConfigError, "credentials_file", "chmod 600")
    keys.chmod(0o600)
    monkeypatch.setitem(sys.modules, "obstore", None)
    fails(table(store, keys, "a.csv"), ConfigError, r"pip install '\.\[s3\]'")


def test_keys_of_the_environment_are_taken_where_no_file_has_them(store, monkeypatch):
    store.objects = {"a.csv": b"age\n31\n"}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:1")  # node.toml alone decides
    source = table(store, None, "a.csv")
    assert ages(source) == [31]
    store = object_store.ObjectStore(source, source.objects, TableSite("a", source.path))
    assert SECRET not in repr(source) + repr(store)


@pytest.mark.parametrize(
    ("names", "pattern", "detail"),
    [
        (["a.csv", "a.csv/b.csv"], "**/*.csv", "the folder of another"),
        (["a.csv", "a.csv/b/c.csv"], "**/*.csv", "the folder of another"),
        (["é" * 130 + ".csv"], "*.csv", ""),
    ],
)
def test_keys_that_cannot_be_files_are_refused_in_one_line(store, keys, names, pattern, detail):
    store.objects = {name: b"age\n31\n" for name in names}
    fails(table(store, keys, pattern), DataError, "the table's objects were expected", detail)
    assert not memory_files()


def test_more_objects_than_open_files_are_refused_in_one_line(store, keys):
    store.objects = {f"{number}.csv": b"age\n31\n" for number in range(200)}
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 40, limits[1]))
    try:
        fails(table(store, keys, "*.csv"), DataError, "expected to be opened", "LimitNOFILE")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert not memory_files()


def test_a_store_that_sends_without_end_fills_no_memory(store, keys):
    """Before, the node kept all that came until the request's time was over."""
    store.objects = {"a.csv": b"age\n31\n"}
    store.sends_more = True
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fails(table(store, keys, "a.csv"), DataError, "as they are while they are read")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000, "KiB"
