"""Kendall's sum over pairs of two owners with SecretFlow's SPU, in two processes over loopback.

Run it with a Python that has `spu` (docs/peers.md says how it is installed):

    python spu_kendall.py --protocol semi2k --pairs 9042 --runs 9

Each process owns one record of every pair: two whole numbers of 0 to 127. The owners share them,
SPU computes the sum of sign(x - x')·sign(y - y'), and both open it. The ring has 32 bits, the
smallest that SPU has. There is no TLS, no agreement on pairs, no ledger and no noise.
"""

from __future__ import annotations

import argparse
import base64
import json
import multiprocessing
import pickle
import queue
import socket
import statistics
import sys
import time
from pathlib import Path
from typing import Any

PARTIES = 2


def table(pairs: int, seed: int) -> Any:
    """Two columns of one owner, (2, pairs) int32 in 0..127."""
    import numpy as np

    return np.random.default_rng(seed).integers(0, 128, (2, pairs)).astype(np.int32)


def kendall(mine: Any, theirs: Any) -> Any:
    """The sum of the products of signs, in JAX: four comparisons a pair."""
    import jax.numpy as jnp

    above, below = mine > theirs, mine < theirs
    signs = above.astype(jnp.int32) - below.astype(jnp.int32)
    return jnp.sum(signs[0] * signs[1])


def program(pairs: int) -> Any:
    """The compiled program. Its inputs are named in0 and in1."""
    import spu.libspu as libspu
    import spu.utils.frontend as frontend

    secret = [libspu.Visibility.VIS_SECRET] * PARTIES
    arguments = [table(pairs, seed) for seed in range(PARTIES)]
    executable, _ = frontend.compile(
        frontend.Kind.JAX,
        kendall,
        arguments,
        {},
        ["in0", "in1"],
        secret,
        lambda outputs: [f"out{place}" for place in range(len(outputs))],
        copts=libspu.CompilerOptions(),
    )
    return executable


def bytes_on_loopback() -> int:
    """Bytes that the loopback interface has sent since the machine started."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        if line.strip().startswith("lo:"):
            return int(line.split()[9])
    return 0


def party(rank: int, ports: list[int], options: dict[str, Any], answers: Any) -> None:
    """One process: compile, then for every run connect, share, compute and open."""
    import spu.api as api
    import spu.libspu as libspu

    config = libspu.RuntimeConfig(
        protocol=libspu.ProtocolKind.__members__[options["protocol"].upper()],
        field=libspu.FieldType.FM32,
    )
    executable = program(options["pairs"])
    mine = table(options["pairs"], rank)
    turns = []
    for run in range(options["runs"] + 1):
        description = libspu.link.Desc()
        description.id = f"run-{run}"
        description.recv_timeout_ms = 60_000
        for each, port in enumerate(ports[PARTIES * run : PARTIES * (run + 1)]):
            description.add_party(f"party-{each}", f"127.0.0.1:{port}")
        before, started = bytes_on_loopback(), time.perf_counter()
        link = libspu.link.create_brpc(description, rank)
        connected = time.perf_counter()
        io, runtime = api.Io(PARTIES, config), api.Runtime(link, config)
        shares = io.make_shares(mine, libspu.Visibility.VIS_SECRET, rank)
        sent = [pickle.dumps((share.meta, list(share.share_chunks))) for share in shares]
        received = [exchanged(link, rank, owner, sent) for owner in range(PARTIES)]
        for owner, (meta, chunks) in enumerate(received):
            share = libspu.Share()
            share.meta, share.share_chunks = meta, chunks
            runtime.set_var(f"in{owner}", share)
        shared = time.perf_counter()
        runtime.run(executable)
        opened = opened_sum(io, link, runtime.get_var(executable.output_names[0]))
        ended = time.perf_counter()
        turns.append(
            {
                "connecting": connected - started,
                "in_all": ended - connected,
                "with_connecting": ended - started,
                "online": ended - shared,
                "bytes": bytes_on_loopback() - before,
                "sum": int(opened),
            }
        )
        link.stop_link()
    if rank == 0:
        answers.put(turns[1:])  # the first run compiles and warms up


def exchanged(link: Any, rank: int, owner: int, sent: list[bytes]) -> Any:
    """My part of the owner's sharing."""
    if rank == owner:
        link.send(1 - owner, sent[1 - owner])
        return pickle.loads(sent[owner])
    return pickle.loads(link.recv(owner))


def opened_sum(io: Any, link: Any, share: Any) -> Any:
    """The result, of which each party has a share."""
    import spu.libspu as libspu

    mine = pickle.dumps((share.meta, list(share.share_chunks)))
    parts = link.all_gather(base64.b64encode(mine).decode())
    shares = []
    for part in parts:
        one = libspu.Share()
        one.meta, one.share_chunks = pickle.loads(base64.b64decode(part))
        shares.append(one)
    return io.reconstruct(shares)


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--protocol", default="semi2k", choices=["semi2k", "cheetah"])
    parser.add_argument("--pairs", type=int, default=9042)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=120, help="give up after these")
    options = vars(parser.parse_args())
    context = multiprocessing.get_context("spawn")
    ports, answers = free_ports(PARTIES * (options["runs"] + 1)), context.Queue()
    processes = [
        context.Process(target=party, args=(rank, ports, options, answers))
        for rank in range(PARTIES)
    ]
    for process in processes:
        process.start()
    try:
        turns = answers.get(timeout=options["seconds"])
    except queue.Empty:
        sys.exit("error: the parties did not finish; read what they wrote above")
    finally:
        for process in processes:
            process.terminate()
    mine, theirs = (table(options["pairs"], seed).astype(int) for seed in range(PARTIES))
    above, below = mine > theirs, mine < theirs
    signs = above.astype(int) - below.astype(int)
    expected = int((signs[0] * signs[1]).sum())
    wrong = [turn["sum"] for turn in turns if turn["sum"] != expected]
    figures = {
        key: [min(values), statistics.median(values), max(values)]
        for key in ("in_all", "with_connecting", "online", "bytes")
        if (values := [turn[key] for turn in turns])
    }
    print(json.dumps(options | {"wrong": wrong, "expected": expected} | figures))


if __name__ == "__main__":
    main()
