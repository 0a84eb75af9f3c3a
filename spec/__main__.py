"""Write the vectors: `python -m spec [FOLDER]`, by default into spec/vectors.

Do it only after a change of the protocol that is meant, and then read the difference: another
implementation that has not changed will refuse what ours sends.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

from spec.cases.vectors import document

FOLDER = Path(__file__).parent / "vectors"
PARTS = (
    "prg",
    "joint_seed",
    "edges",
    "sharing",
    "dcf",
    "masked_pairs",
    "base_transfers",
    "transfers",
    "checked_transfers",
    "garbled",
    "grid",
    "noise",
    "coins",
    "dealt_coins",
    "zero_shares",
    "ledger",
)


def text_of(part: str) -> str:
    """The JSON file of one part, as the specification computes it now."""
    vectors = document(import_module(f"spec.{part}"), import_module(f"spec.cases.{part}"))
    return json.dumps(vectors, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(exist_ok=True)
    for name in PARTS:
        (folder / f"{name}.json").write_text(text_of(name), encoding="utf-8")
        print(folder / f"{name}.json")
