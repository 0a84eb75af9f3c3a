"""umpc/coordinator/run_file.py and umpc/cli/watch.py: a run as another process sees it."""

from __future__ import annotations

import asyncio
import json

from click.testing import CliRunner

from umpc.cli import watch
from umpc.cli.hub import status_lines
from umpc.cli.watch import _seat_lines, node_lines, step_line
from umpc.coordinator import run_file
from umpc.coordinator.run_file import RunFile, has_died, path_beside, read_run
from umpc.proto.v1 import umpc_pb2 as pb

NAMES = ["north", "south", "east"]


def test_a_run_is_seen_while_it_goes_on(tmp_path, limit):
    limit(run_file, EVERY_SECONDS=0.0)
    file, clock = tmp_path / "study.toml", iter(range(100, 10**6))
    said = []

    async def state():
        while (found := read_run(file)) is None or found == (said and said[-1]):
            await asyncio.sleep(0.005)
        said.append(found)
        return found

    async def scenario():
        assert read_run(file) is None
        with RunFile(file, "lab", NAMES, now=lambda: float(next(clock))) as notes:
            begun = await state()
            assert (begun.begun, has_died(begun)) == (100.0, False)
            assert "step connect" in step_line(begun, 105.0)
            assert next(node_lines(begun, 105.0)).split() == ["north", "not", "connected"]
            for name in NAMES[:2]:
                notes.note(name, "connect", 1, 1)
            notes.note("north", "prepare", 0, 1)
            notes.note("north", "prepare", 30, 100)
            found = await state()
            assert step_line(found, 163.0) == (
                "study 'lab' runs for 0:01:03: step prepare for 0:01:00, 0 of 3 nodes have done "
                "it, waiting for north, south, east"
            )
            lines = list(node_lines(found, 163.0))
            assert "connected for 0:01:02, prepare 30 of 100 for 0:01:00" in lines[0]
            assert "connect done" in lines[1] and "not connected" in lines[2]
            notes.note("north", "prepare", 1, 1)
            assert "1 of 3 nodes have done it, waiting for south, east" in step_line(
                await state(), 200.0
            )
        assert read_run(file) is None and not list(tmp_path.iterdir())

    asyncio.run(scenario())


def test_a_run_goes_on_where_its_state_cannot_be_written(tmp_path):
    async def scenario():
        with RunFile(tmp_path / "missing" / "study.toml", "lab", NAMES) as notes:
            notes.note("north", "connect", 1, 1)

    asyncio.run(scenario())


def test_a_file_of_another_form_is_no_run_and_a_dead_process_is_told(tmp_path):
    file = tmp_path / "study.toml"
    for text in ("", "[]", "{}", '{"study": 1}', '{"nodes": {"a": {"x": 1}}}', "9" * 99):
        path_beside(file).write_text(text)
        assert read_run(file) is None
    run = {"study": "lab", "pid": 2**22 + 1, "begun": 1.0, "nodes": {}}
    path_beside(file).write_text(json.dumps(run))
    assert has_died(read_run(file))


def test_what_a_hub_says_is_read_by_people():
    seats = [
        pb.HubSeat(role="node", name="north", listens=True, seconds=3661, silent=4, waiting=2048),
        pb.HubSeat(role="coordinator", name="stat", seconds=9, sent=1500, relayed=700),
    ]
    reply = pb.HubStatusReply(
        seats=seats, seconds=7200, waiting=2048, memory=50 << 20, most_memory=70 << 20
    )
    assert list(status_lines(reply)) == [
        "the hub runs for 2:00:00; 2 processes are connected, 2,048 bytes wait, "
        "50 MiB of memory (at most 70)",
        "node        north                    connected for 1:01:01, heard 0:00:04 ago; "
        "0 bytes from it, 0 to it, 2,048 wait",
        "coordinator stat                     connected for 0:00:09, heard 0:00:00 ago; "
        "1,500 bytes from it, 700 to it, 0 wait, only calls",
    ]
    lines = list(_seat_lines("relay", [("node", "north"), ("dealer", "d")], reply))
    assert "node, at hub relay for 1:01:01, heard 0:00:04 ago, 2,048 bytes wait" in lines[0]
    assert lines[1].split() == ["d", "dealer,", "not", "connected", "to", "hub", "relay"]


def test_the_command_says_when_no_run_goes_on(tmp_path, limit):
    from umpc.cli.study import study
    from umpc.transport.authority import Authority

    limit(watch, HUB_SECONDS=0.1)
    Authority.create(tmp_path / "authority").issue("stat", "coordinator", tmp_path / "stat")
    (tmp_path / "study.toml").write_text(
        'name = "lab"\nidentity = "stat"\nstatistic = "mean"\ncolumns = ["x"]\nepsilon = 1\n'
        'protocol = "local-mean"\n[[fields]]\nname = "x"\nlower = 0\nupper = 9\nwhole = true\n'
        '[[nodes]]\nname = "north"\naddress = "hub:relay@127.0.0.1:1"\n'
    )
    ended = CliRunner().invoke(study, ["watch", str(tmp_path / "study.toml"), "--once"])
    assert ended.exit_code == 0, ended.output
    assert "no run of study 'lab' goes on" in ended.output and "hub relay: " in ended.output
