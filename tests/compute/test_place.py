"""umpc.compute.place and cluster: a place that would not be safe is refused."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from tests.support.cores import computed_by, machine_of
from umpc import __version__
from umpc.compute.cluster import NEVER_ON_DISK, refusal
from umpc.compute.executor import CoreThreads
from umpc.compute.place import ComputePlace, named_place
from umpc.errors import ConfigError
from umpc.transport.authority import Authority

DASK = "dask://127.0.0.1:1"


def test_cores_are_bounded_by_the_machine_and_one_needs_no_threads():
    with machine_of(3), computed_by(None, 1):
        for asked, got in ((0, 3), (2, 2), (8, 3)):
            found = ComputePlace(asked).open()
            assert isinstance(found, CoreThreads) and found.at_once == got
            assert ComputePlace(asked).open() is found  # many nodes of one process share them
        assert ComputePlace(1).open() is None


def test_a_cluster_of_the_consortiums_authority_is_refused(tmp_path):
    consortium = Authority.create(tmp_path / "authority")
    consortium.issue("north", "node", tmp_path / "north")
    consortium.issue("cluster", "node", tmp_path / "cluster")
    with pytest.raises(ConfigError, match="consortium's"):
        ComputePlace(0, DASK, tmp_path / "cluster").open(tmp_path / "north")


def test_a_cluster_needs_its_certificates_and_the_extra(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="compute_tls"):
        ComputePlace(0, DASK).open()
    with pytest.raises(ConfigError, match=r"ca\.pem"):
        ComputePlace(0, DASK, tmp_path).open()
    Authority.create(tmp_path / "other").issue("cluster", "node", tmp_path / "cluster")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError, match=r"pip install .\.\[cluster\]"):
        ComputePlace(0, DASK, tmp_path / "cluster").open()


def test_a_dealer_names_its_place_on_the_command_line(tmp_path):
    assert named_place(2, None, None) == ComputePlace(2)
    assert named_place(None, DASK, tmp_path) == ComputePlace(0, DASK, tmp_path)
    with pytest.raises(ConfigError, match="dask://"):
        named_place(None, "tcp://127.0.0.1:1", tmp_path)


def test_a_worker_refuses_another_version_and_a_disk(monkeypatch):
    settings = dict(NEVER_ON_DISK)
    config = ModuleType("dask.config")
    vars(config)["get"] = lambda key, default: settings.get(key, default)
    monkeypatch.setitem(sys.modules, "dask.config", config)
    assert refusal(__version__) is None
    other = refusal("0.0.0")
    assert other is not None and "0.0.0" in other.message
    for key in NEVER_ON_DISK:
        for value in (0.7, None):
            settings[key] = value
            refused = refusal(__version__)
            assert refused is not None and key in refused.message
        settings[key] = False
