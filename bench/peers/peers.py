"""Peers that run here: SPU, if a Python that has it is named.

SPU's two processes run in a network namespace of their own where that is allowed, so that their
bytes on the loopback interface are theirs alone.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from bench.peers.turns import spread

PROGRAM = Path(__file__).with_name("programs") / "spu_kendall.py"
ALONE = ("unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")


def spu_row(python: str, protocol: str, turns: int) -> tuple[str, ...]:
    """SPU's figures as a row of the table. Raises: RuntimeError with SPU's last line."""
    words = [python, str(PROGRAM), "--protocol", protocol, "--runs", str(turns)]
    alone = [*ALONE] if shutil.which("unshare") and shutil.which("ip") else []
    ended = subprocess.run([*alone, *words], capture_output=True, text=True)
    if ended.returncode or not ended.stdout.strip():
        said = ended.stderr.strip().splitlines() or ["it said nothing"]
        raise RuntimeError(f"{protocol}: {said[-1]}")
    figures = json.loads(ended.stdout.strip().splitlines()[-1])
    if figures["wrong"]:
        raise RuntimeError(f"{protocol}: expected {figures['expected']}, got {figures['wrong']}")
    seconds = ("in_all", "with_connecting", "online")
    return (
        f"SPU, {protocol}, no TLS",
        *(spread([1e3 * value for value in figures[key]]) for key in seconds),
        f"{figures['bytes'][1]:,.0f}" if alone else "not alone",
        "in those",
    )
