"""`umpc` with clocks in it: `python -m bench.clocked node start …` is `umpc node start …`.

Each clocked function books the processor time of its thread, without the time of other clocked
functions that it calls. The clocks count while the folder UMPC_CLOCKED holds a file `counting`.
When that file is gone, or the process ends, seconds by category are written into the folder.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

CATEGORIES = {
    "AES": (
        "crypto.prg:FixedKeyHash.__call__",
        "crypto.prg:Stream.bytes",
    ),
    "other hashing": (
        "crypto.prg:derive",
        "crypto.prg:digest",
    ),
    "packing": (
        "crypto.ring:pack",
        "crypto.ring:unpack",
        "mpc.masked.dcf:ComparisonKeys.encode",
        "mpc.masked.dcf:ComparisonKeys.decode",
        "mpc.masked.material:DealtPart.encode_all",
        "mpc.masked.material:DealtPart.decode_all",
    ),
    "E": (
        "mpc.attempt:edges_of",
        "ustat.hypergraph:CompleteCell.edges",
        "ustat.hypergraph:Hypergraph.degrees",
        "ustat.hypergraph:Hypergraph.shared_records",
        "ustat.hypergraph:Hypergraph.neighbours",
    ),
    "keys of comparisons": ("mpc.masked.dcf:generate",),
    "the rest of dealing": (
        "mpc.masked.tasks:deal_chunks",
        "dealer.material:MaterialDealer._record_masks",
    ),
    "sign gates": ("mpc.masked.dcf:evaluate",),
    "the rest of evaluation": (
        "node.run.rounds:resume",
        "node.run.rounds:Rounds.begin",
        "mpc.masked.tasks:TaskRounds.after",
    ),
    "masks, masked fields": (
        "mpc.masked.edge_layout:wire_masks",
        "mpc.masked.edge_layout:masked_wires",
        "protocols.u_mpc.node:UMpcNode.fields_for",
        "protocols.u_mpc.node:UMpcNode.receive_fields",
    ),
    "inside a node, in the clear": ("ustat.kernel:Kernel.evaluate",),
    "noise": ("protocols.u_mpc.node:UMpcNode.own_noise",),
    "zero shares": (
        "crypto.zero_shares:zero_shares",
        "crypto.zero_shares:KeyAgreement.__init__",
    ),
    "plans, chunks": (
        "mpc.attempt:compile_program",
        "mpc.attempt:SharedAttempt.chunks_ahead",
        "protocols.u_mpc.noise_binding:shared_attempt",
    ),
    "frames": (
        "proto.codec:encode_frame",
        "proto.codec:decode_frame",
        "node.run.link:Mailbox.put",
    ),
    "records, ledger": (
        "node.records:load_records",
        "node.budget.ledger:Ledger.reserve",
        "node.budget.ledger:Ledger.reserve_delta",
        "node.budget.ledger:Ledger.hold",
        "node.budget.ledger:Ledger.charge",
        "node.budget.ledger:Ledger.cancel",
    ),
    "cost, report": ("mpc.backends:predict", "protocols.u_mpc.protocol:UMpcCoordinator.finish"),
}
"""Category → its functions, each as module:function below umpc."""
LOOP = "event loop, gRPC in Python"
NOT_PYTHON = "gRPC's own threads"
LOOK_SECONDS = 0.05


class Clocks:
    """Seconds by category, over all threads. Each thread adds to a counter of its own."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._counters: list[Counter[str]] = []

    def wrap(self, category: str, function: Callable) -> Callable:
        local, counters = self._local, self._counters

        @functools.wraps(function)
        def clocked(*arguments, **keywords):
            if not hasattr(local, "inner"):
                local.inner, local.spent = 0.0, Counter()
                counters.append(local.spent)
            outside, local.inner = local.inner, 0.0
            start = time.thread_time()
            try:
                return function(*arguments, **keywords)
            finally:
                taken = time.thread_time() - start
                local.spent[category] += taken - local.inner
                local.inner = outside + taken

        return clocked

    def total(self) -> Counter[str]:
        return sum(self._counters, Counter())


def install(clocks: Clocks) -> None:
    """Put a clock around each function, in every module of umpc that has it by name."""
    for module in ("cli.study", "coordinator.client", "node.server", "dealer.server"):
        import_module(f"umpc.{module}")
    for category, places in CATEGORIES.items():
        for place in places:
            module, _, name = place.partition(":")
            owner, _, attribute = name.rpartition(".")
            holder = import_module(f"umpc.{module}")
            holder = getattr(holder, owner) if owner else holder
            before = getattr(holder, attribute)
            after = clocks.wrap(category, before)
            setattr(holder, attribute, after)
            _replace_everywhere(before, after)


def _replace_everywhere(before: Callable, after: Callable) -> None:
    """Replace a function in every loaded module of umpc that has imported it by name."""
    modules = [each for each in sys.modules.values() if each.__name__.startswith("umpc.")]
    for module in modules:
        for name in [key for key, value in vars(module).items() if value is before]:
            setattr(module, name, after)


class Watch(threading.Thread):
    """A thread that starts and stops the count."""

    def __init__(self, folder: Path, clocks: Clocks):
        super().__init__(daemon=True)
        self.folder, self.clocks = folder, clocks
        self._before: Counter[str] | None = None
        self._threads: dict[int, float] = {}
        """Each Python thread's seconds when last seen. Some threads end with the study."""

    def run(self) -> None:
        while True:
            self._look()
            is_on = (self.folder / "counting").exists()
            if is_on and self._before is None:
                self._before = self._now()
            elif not is_on:
                self.write()
            time.sleep(LOOK_SECONDS)

    def write(self) -> None:
        if self._before is None:
            return
        before, self._before = self._before, None
        found = self._now()
        found.subtract(before)
        path = self.folder / f"{os.getpid()}.json"
        path.with_suffix(".part").write_text(json.dumps({"what": sys.argv[1], "seconds": found}))
        path.with_suffix(".part").rename(path)

    def _now(self) -> Counter[str]:
        """Seconds so far, with the rest of Python's threads, and with all other threads."""
        self._look()
        found, python = self.clocks.total(), sum(self._threads.values())
        found[NOT_PYTHON] = time.process_time() - python
        found[LOOP] = python - sum(
            spent for category, spent in found.items() if category in CATEGORIES
        )
        return found

    def _look(self) -> None:
        for thread in threading.enumerate():
            try:
                clock = int(
                    Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text().split()[0]
                )
            except OSError:  # the thread ended meanwhile
                continue
            self._threads[thread.native_id] = clock / 1e9


def main() -> None:
    clocks = Clocks()
    install(clocks)
    watch = Watch(Path(os.environ["UMPC_CLOCKED"]), clocks)
    watch.start()
    atexit.register(watch.write)
    from umpc.cli.main import main as umpc

    umpc()


if __name__ == "__main__":
    main()
