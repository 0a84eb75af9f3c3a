"""The files of two nodes of the first release with a protocol's version, in `release_0_2_0`.

Commit 8528f06 wrote them in a run of `first.toml`. Each node's key is only for these files.
`make upgrade-test` does the same with the code of that commit, from git.
"""

from __future__ import annotations

import shutil
from pathlib import Path

FOLDER = Path(__file__).with_name("release_0_2_0")
ESTIMATE = 17.46153846153846
"""The estimate of `first` that its report had then."""


def copy_release(folder: Path, name: str) -> Path:
    """Copy a node's files, for their owner only, and return the path of its ledger."""
    for file in FOLDER.glob(f"{name}*"):
        shutil.copy(file, folder / file.name)
        (folder / file.name).chmod(0o600)
    return folder / f"{name}-ledger.sqlite"


def study_text(name: str, addresses: dict[str, str]) -> str:
    """Return the text of a study file of that release, with the addresses of now."""
    text = (FOLDER / f"{name}.toml").read_text()
    head, *_ = text.partition("[[nodes]]")
    nodes = (f'[[nodes]]\nname = "{node}"\naddress = "{at}"\n' for node, at in addresses.items())
    return head + "".join(nodes)
