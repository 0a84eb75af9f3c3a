"""The files of a data set as umpc left them before its Store, in `before_store`.

Commit 8f6f1f5a wrote them: a study that was charged and answered, one whose share is
held, with a mechanism and a fingerprint each, two sets of fields, and the line of a prepared study.
"""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

FOLDER = Path(__file__).with_name("before_store")
CHARGED, HELD, PREPARED = (bytes([number]) * 32 for number in (1, 2, 3))
TOTAL, DELTA = Fraction(5), Fraction(1, 10**9)


def copy_former(folder: Path) -> Path:
    """Copy the files into a folder, for their owner only, and return the ledger's path."""
    for file in FOLDER.glob("ledger.sqlite*"):
        shutil.copy(file, folder / file.name)
        (folder / file.name).chmod(0o600)
    return folder / "ledger.sqlite"
