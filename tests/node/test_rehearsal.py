"""umpc.node.rehearsal: what would make a first study slower is done before *ready*."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import umpc
from tests.support.studies import make_study
from umpc.cli import many, serve
from umpc.dealer import server as dealer
from umpc.deployment import fork_server
from umpc.mpc.masked.material import SeededPart
from umpc.node import rehearsal
from umpc.shuffler import server as shuffler

AFTERWARDS = """
import sys, threading
import msgspec._utils as of_decoders
from umpc.node.rehearsal import rehearse
from umpc.protocols.registry import decode_study

rehearse()
loaded = set(sys.modules)

def refuse(kind):
    raise AssertionError(f"the decoder of {kind} was made in a study")

of_decoders.get_class_annotations = refuse
study = decode_study(bytes.fromhex(sys.argv[1]))
print(study.name, threading.active_count(), sorted(set(sys.modules) - loaded))
"""


LEFT_OUT = """
import sys
from umpc.node.rehearsal import rehearse

rehearse()
print(*(set(sys.argv[1:]) - set(sys.modules)))
"""


class Rehearsed(Exception):
    """A rehearsal has begun, and the test needs no more."""


def test_afterwards_a_study_needs_no_new_decoder_and_no_import_and_no_thread_runs():
    document = make_study(name="first").encode().hex()
    found = subprocess.run(
        [sys.executable, "-c", AFTERWARDS, document], capture_output=True, text=True
    )
    assert found.stdout == "first 1 []\n", found.stderr


def test_afterwards_every_side_of_every_protocol_and_every_way_to_evaluate_is_loaded():
    root = Path(umpc.__file__).parent
    files = [file for folder in ("mpc", "protocols") for file in (root / folder).rglob("*.py")]
    places = [file.relative_to(root.parent).with_suffix("").parts for file in files]
    names = [".".join(place).removesuffix(".__init__") for place in places]
    assert "umpc.protocols.grid.node" in names and "umpc.mpc.garbled.cells" in names
    found = subprocess.run([sys.executable, "-c", LEFT_OUT, *names], capture_output=True, text=True)
    assert found.stdout == "\n", found.stderr


@pytest.mark.parametrize("server", [dealer.DealerServer, shuffler.ShufflerServer])
def test_a_dealer_and_a_shuffler_load_all_before_they_are_ready(monkeypatch, server):
    def begin():
        raise Rehearsed

    monkeypatch.setattr(sys.modules[server.__module__], "load_all", begin)
    with pytest.raises(Rehearsed):
        server(None, lambda error: None)


def test_it_takes_the_rounds_of_cells_that_are_computed_together(monkeypatch):
    chunks = []
    expand = SeededPart.expand_all.__func__

    def counted(cls, plan, seeds, *rest):
        chunks.append(len(seeds))
        return expand(cls, plan, seeds, *rest)

    monkeypatch.setattr(SeededPart, "expand_all", classmethod(counted))
    rehearsal._take_all_steps()
    assert max(chunks) > 1


def test_it_draws_from_the_system_and_takes_no_random_number_twice(monkeypatch):
    drawn = []

    def noted(count):
        drawn.append(os.getrandom(count))
        return drawn[-1]

    monkeypatch.setattr(rehearsal.os, "urandom", noted)
    rehearsal._take_all_steps()
    seeds = [each for each in drawn if len(each) >= 16]
    assert seeds and len(set(seeds)) == len(seeds)


def test_a_process_rehearses_once_and_so_does_one_that_is_forked_from_it(monkeypatch):
    taken = []
    monkeypatch.setattr(rehearsal, "_take_all_steps", lambda: taken.append(os.getpid()))
    for process in (-1, -1, -2, -2):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        rehearsal.rehearse()
    assert taken == [-1, -2]


def test_a_node_rehearses_before_it_opens_its_site(monkeypatch, tmp_path):
    def begin():
        raise Rehearsed

    monkeypatch.setattr(rehearsal, "rehearse", begin)
    monkeypatch.setattr("umpc.node.table.warm_up.warm_up", lambda: None)
    monkeypatch.setattr("umpc.node.config.load_datasets", lambda file: [None])
    with pytest.raises(Rehearsed):
        serve._start_one(tmp_path / "a.toml", None, ("info", "text"), ("", ""), False, False)
    monkeypatch.setattr(many, "configurations", lambda folder: [[None]])
    with pytest.raises(Rehearsed), ExitStack() as ending:
        many._open_sites(tmp_path, ending)


def test_a_light_node_does_not_rehearse(monkeypatch, tmp_path):
    monkeypatch.setattr(serve, "_start_light", lambda *given: True)
    monkeypatch.setattr(rehearsal, "rehearse", lambda: pytest.fail("a light node rehearsed"))
    serve._start_one(tmp_path / "a.toml", None, ("info", "text"), ("", ""), False, True)


def test_a_fork_server_rehearses_once_for_all_that_it_forks(monkeypatch):
    rehearsed = []
    monkeypatch.setattr(rehearsal, "rehearse", lambda: rehearsed.append(1))
    fork_server.prepare()
    assert rehearsed == [1]
