"""Addresses and keys of objects in node.toml, and which keys of a store fit a pattern."""

from __future__ import annotations

import pytest

from tests.support.node_files import BUDGET, HEAD, load, refused
from umpc.errors import ConfigError
from umpc.node.table.object_store import fits, keys_of_store
from umpc.node.table.source import ObjectSource, is_same_table

KEYS = "[default]\naws_access_key_id = READER\naws_secret_access_key = hunter2-Zx\n"
URL = 'url = "s3://visits/2026/*.parquet"\n'


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("a/*.csv", ["a/x.csv"], ["a/b/x.csv", "a/.x.csv", "x.csv", "a/x.csv.gz"]),
        ("a/**/*.csv", ["a/x.csv", "a/b/c/x.csv"], ["x.csv", "a/.b/x.csv"]),
        ("a/[ab]?.csv", ["a/b1.csv"], ["a/c1.csv", "a/b/.csv"]),
        ("a.b/x.csv", ["a.b/x.csv"], ["acb/x.csv"]),
    ],
)
def test_a_pattern_of_keys_is_that_of_files(pattern, fitting, others):
    parts = pattern.split("/")
    assert [key for key in fitting + others if fits(key.split("/"), parts)] == fitting


def test_the_configuration_names_objects_and_the_file_of_keys(site):
    (site / "keys").write_text(KEYS)
    (site / "keys").chmod(0o600)
    data = f'[data]\n{URL}endpoint = "https://minio.north:9000/"\ncredentials_file = "keys"\n'
    config = load(site, HEAD + data + 'region = "eu-west-1"\nobject_megabytes = 5\n' + BUDGET)
    found = config.source.objects
    assert config.dataset == "2026" and not config.source.is_local and not config.source.files()
    assert found == ObjectSource(
        "visits",
        "2026/*.parquet",
        "https://minio.north:9000",
        "eu-west-1",
        site / "keys",
        5_000_000,
    )
    assert keys_of_store(found.credentials_file)[0]["aws_secret_access_key"] == "hunter2-Zx"
    assert "hunter2" not in repr(config)
    assert is_same_table(config.source, config.source)
    usual = load(site, f"{HEAD}[data]\n{URL}{BUDGET}").source
    assert usual.objects.endpoint == "https://s3.us-east-1.amazonaws.com"
    assert not keys_of_store(None, {})[0] and not is_same_table(usual, config.source)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('url = "s3://visits"\n', "s3://BUCKET/KEY"),
        ('url = "s3://Visits/a.csv"\n', "s3://BUCKET/KEY"),
        ('url = "s3://visits/../a.csv"\n', "empty part"),
        (URL + 'endpoint = "http://minio.north:9000"\n', "without TLS"),
        (URL + 'endpoint = "minio.north"\n', "https://HOST:PORT"),
        (URL + 'endpoint = "https://me:hunter2-Zx@minio.north"\n', "more than scheme"),
        (URL + 'region = "eu west"\n', "'data.region'"),
        (URL + 'credentials_file = "open"\n', "chmod 600"),
        (URL + 'credentials_file = "none"\n', "no such file"),
        (URL + 'credentials_file = "empty"\n', "no section"),
        (URL + 'path = "bank.csv"\n', "'data.path'"),
        (URL + 'sql = "visits"\n', "'data.sql'"),
        (URL + "cache_megabytes = 1\n", "'data.cache_megabytes'"),
        ('path = "bank.csv"\nregion = "eu"\n', "'data.region'"),
        ('path = "bank.csv"\ncredentials_file = "open"\n', "'data.credentials_file'"),
    ],
)
def test_a_mistake_is_named_and_no_key_is_shown(site, lines, message):
    for name, text, mode in (("open", KEYS, 0o644), ("empty", "[other]\n", 0o600)):
        (site / name).write_text(text)
        (site / name).chmod(mode)
    text = f'{HEAD}[data]\nname = "visits"\n{lines}{BUDGET}'
    refused(site, text, message)
    with pytest.raises(ConfigError) as caught:
        load(site, text)
    assert "hunter2" not in caught.value.message + caught.value.detail
