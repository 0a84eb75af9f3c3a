"""Run docs/tutorial.ipynb from its first cell and store what it shows: `make tutorial`.

The notebook draws new noise in every run, so the stored numbers change.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parent / "tutorial.ipynb"
SECONDS = 600
"""The most that one cell may take."""


def executed(path: Path = NOTEBOOK) -> dict[str, Any]:
    """The notebook with the outputs of a run in a new kernel, to which no network leads.

    Raises: nbclient.exceptions.CellExecutionError with the cell that failed.
    """
    import nbformat
    from nbclient import NotebookClient
    from traitlets.config import Config

    config = Config()
    config.KernelManager.transport = "ipc"
    with tempfile.TemporaryDirectory(prefix="umpc-") as folder:
        config.KernelManager.ip = f"{folder}/kernel"
        client = NotebookClient(
            nbformat.read(path, as_version=4),
            config=config,
            timeout=SECONDS,
            kernel_name="python3",
            record_timing=False,
        )
        # IPython keeps its history there
        return client.execute(cwd=str(path.parent), env={**os.environ, "IPYTHONDIR": folder})


def main() -> None:
    text = json.dumps(executed(), indent=1, ensure_ascii=False)
    NOTEBOOK.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
