"""Run docs/tutorial.ipynb from its first cell and store what it shows: `make tutorial`.

The notebook draws new noise in every run, so the stored numbers change.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parent / "tutorial.ipynb"
SECONDS = 240
"""The most that one cell may take."""


def executed(path: Path = NOTEBOOK) -> dict[str, Any]:
    """The notebook with the outputs of a run in a new kernel.

    Raises: nbclient.exceptions.CellExecutionError with the cell that failed.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    return client.execute()


def main() -> None:
    text = json.dumps(executed(), indent=1, ensure_ascii=False)
    NOTEBOOK.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
