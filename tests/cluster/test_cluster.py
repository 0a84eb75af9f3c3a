"""umpc.compute.cluster, on a real scheduler and workers: `make test-cluster`."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from bench.cluster_demo import Outcome, evaluate, study_in_memory
from bench.dask_sites import Cluster, cluster
from umpc.compute.executor import Executor
from umpc.crypto.prg import FixedKeyHash
from umpc.errors import ConfigError, PeerUnavailable
from umpc.mpc.fss import point
from umpc.node.people_server import adding_place
from umpc.node.people_store import added
from umpc.transport.authority import Authority

RECORDS = 550
"""The records of each node: 302,500 edges, in several chunks."""
HERE = Executor()


@pytest.fixture(scope="module")
def site() -> Iterator[Cluster]:
    with cluster() as found:
        yield found


@pytest.fixture(scope="module")
def alone() -> Outcome:
    return asyncio.run(evaluate(study_in_memory(RECORDS), (HERE, HERE, HERE)))


def test_the_cluster_computes_the_same_bytes_also_for_the_dealer(site, alone):
    place = site.place.open()
    found = asyncio.run(evaluate(study_in_memory(RECORDS), (place, HERE, place)))
    place.close()
    assert found == alone and alone.chunks > 4


def test_both_sites_may_have_a_cluster_of_their_own(site, alone):
    with cluster() as other:
        places = site.place.open(), other.place.open()
        found = asyncio.run(evaluate(study_in_memory(RECORDS), (*places, HERE)))
        for place in places:
            place.close()
    assert found == alone


def test_keys_of_people_are_added_up_there(site):
    cells, people, tree_hash = 1000, 50, FixedKeyHash(bytes(range(16)))
    places = np.arange(people, dtype=np.uint64)
    roots = np.arange(4 * people, dtype=np.uint64).reshape(2, people, 2)
    given = point.generate(cells, places, roots, tree_hash), 7 * places, roots[0], tree_hash.key

    async def there() -> list[int]:
        place = site.place.open()
        add = adding_place(place)
        try:
            (found,) = await asyncio.to_thread(add, [(0, *given)])
            return found.tolist()
        finally:
            place.close()

    assert asyncio.run(there()) == added(0, *given).tolist()


def test_a_scheduler_that_asks_for_no_certificate_does_not_exist_here(site):
    host, port = site.place.cluster.removeprefix("dask://").rsplit(":", 1)
    context = ssl.create_default_context(cafile=str(site.tls / "ca.pem"))
    context.check_hostname = False
    with socket.create_connection((host, int(port)), timeout=20) as plain:
        plain.settimeout(20)
        with pytest.raises(OSError), context.wrap_socket(plain) as line:
            line.do_handshake()
            if not line.recv(1):  # TLS 1.3: the refusal comes after the handshake
                raise ConnectionError("hung up")


def test_a_certificate_of_another_authority_is_refused(site, tmp_path):
    Authority.create(tmp_path / "other").issue("cluster", "node", tmp_path / "tls")
    with pytest.raises(PeerUnavailable, match="cluster"):
        replace(site.place, tls=tmp_path / "tls").open()


def test_a_worker_that_may_write_to_its_disk_is_refused():
    spilling = cluster(1, DASK_DISTRIBUTED__WORKER__MEMORY__SPILL="0.7")
    with spilling as site, pytest.raises(ConfigError, match=r"memory\.spill"):
        site.place.open()


def test_a_worker_that_is_killed_changes_nothing(alone):
    with cluster() as site:
        place, killed = site.place.open(), []

        def kill_once(done: int) -> None:
            if done == 2:
                killed.append(site.kill_worker(0))

        study = study_in_memory(RECORDS)
        found = asyncio.run(evaluate(study, (place, HERE, HERE), kill_once))
        place.close()
        assert killed and found == alone
