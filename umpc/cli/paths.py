"""The types of options and arguments that name a file or a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click


class _Named(click.Path):
    """A path that, where something is there, must be a file or must be a folder.

    Args: is_folder: which of the two.
    """

    def __init__(self, *, is_folder: bool) -> None:
        super().__init__(
            file_okay=not is_folder,
            dir_okay=is_folder,
            readable=False,  # whoever reads it says more than click does
            path_type=Path,
        )

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Return the path. Raises: click.BadParameter, where the other one of the two is there."""
        if self.dir_okay and os.path.isfile(value):
            self.fail(f"a folder was expected, and {value} is a file. Correct the path", param, ctx)
        if self.file_okay and os.path.isdir(value):
            self.fail(
                f"a file was expected, and {value} is a folder. Name a file in it", param, ctx
            )
        return super().convert(value, param, ctx)


FILE = _Named(is_folder=False)
FOLDER = _Named(is_folder=True)
