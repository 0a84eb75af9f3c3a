"""Kill any one process at many moments after the first charge, and finish the study.

`make crash`, or `python -m tests.system.crash --moments 200`. Moments are spread over the second
after the first charge, half of them over its first eighth, and go round the processes. Each time
the study is run again under its name, and then once more. The command prints one line for each
process, and fails if any result changed, or if any node charged other than once. `test_paid.py`
does the same at named points. With `--hub` all processes dial a hub, and the hub is killed in its
turn too.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.support.node_ledgers import beside, held_by, share_of, start_again
from tests.system.conftest import Lab
from umpc.deployment.processes import stop

NODES = 3
VICTIMS = ("node-1", "node-2", "node-3", "coordinator", "dealer")
OUTCOMES = ("finished before", "finished later", "wrong")


def first_charge(lab: Lab, before: dict[str, bytes], seconds: float = 60) -> None:
    """Wait until a node's anchor moves: only a charge moves it."""
    deadline = time.monotonic() + seconds
    while anchors(lab) == before:
        assert time.monotonic() < deadline, "no node charged"
        time.sleep(0.0005)


def anchors(lab: Lab) -> dict[str, bytes]:
    files = {name: Path(f"{lab.folder / name}-ledger.sqlite.anchor") for name in lab.names}
    return {name: file.read_bytes() for name, file in files.items()}


def moment(lab: Lab, number: int, victim: str, delay: float) -> str:
    """Kill the victim so many seconds after the first charge. Returns: one of OUTCOMES."""
    study = {"name": f"moment-{number}", "epsilon": "0.01"}
    spent = {node: beside(lab, node).account.spent.epsilon for node in lab.names}
    before = anchors(lab)
    coordinator = lab.coordinate(lab.study_file(**study))
    try:
        first_charge(lab, before)
        time.sleep(delay)
        victim_process = coordinator if victim == "coordinator" else lab.served[victim].process
        victim_process.kill()
        output, _ = coordinator.communicate(timeout=60)
    finally:
        stop([coordinator])
    name = study["name"]
    kept = {node: share_of(lab, node, name) or held_by(lab, node, name) for node in lab.names}
    revive(lab, victim)
    again = lab.run(**study)
    last = lab.run(**study)
    shares = {node: share_of(lab, node, name) for node in lab.names}
    after = {node: beside(lab, node).account.spent.epsilon for node in lab.names}
    paid = {node: float(after[node] - spent[node]) for node in lab.names}
    is_right = (
        (again.code, last.code) == (0, 0)
        and again.report["estimate"] == last.report["estimate"]
        and shares == kept
        and set(paid.values()) == {0.01}
    )
    if is_right and output:
        is_right = json.loads(output)["estimate"] == again.report["estimate"]
    if not is_right:
        print(f"moment {number}, {victim}, {delay:.3f} s: {again.error} {last.error} {paid}")
        return "wrong"
    return "finished before" if output else "finished later"


def revive(lab: Lab, victim: str) -> None:
    """Start the process again that was killed."""
    if victim == "dealer":
        stop([lab.served[victim].process])
        lab.deployment.start_dealer()
        lab.served.update(lab.deployment.wait_until_ready())
    elif victim == "hub":
        hub = lab.served["hub"]
        hub.process.wait()
        lab.served["hub"] = lab.deployment.start_hub(hub.address)
    elif victim != "coordinator":
        start_again(lab, victim, epsilon="100")


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill one process after the first charge.")
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--hub", action="store_true", help="all processes dial a hub")
    options = parser.parse_args()
    moments, victims = options.moments, VICTIMS + ("hub",) * options.hub
    found: dict[str, Counter[str]] = {victim: Counter() for victim in victims}
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder), NODES)
        try:
            if options.hub:
                lab.served["hub"] = lab.deployment.start_hub()
            lab.start("100")
            for number in range(moments):
                victim = victims[number % len(victims)]
                found[victim][moment(lab, number, victim, (number / moments) ** 3)] += 1
        finally:
            lab.stop()
    print(f"{'killed':<14}" + "".join(f"{outcome:>17}" for outcome in OUTCOMES))
    for victim, counts in found.items():
        print(f"{victim:<14}" + "".join(f"{counts[outcome]:>17}" for outcome in OUTCOMES))
    sys.exit(any(counts["wrong"] for counts in found.values()))


if __name__ == "__main__":
    main()
