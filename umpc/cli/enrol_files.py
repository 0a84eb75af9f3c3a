"""The texts that `umpc enrol` reads, and the node.toml that it writes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from umpc.errors import ConfigError
from umpc.transport.files import read_file, write_public

if TYPE_CHECKING:
    from umpc.enrolment.members import ConsortiumMember

STANDARD_INPUT = "-"
BEGINNING = "umpc-"


def read_text(argument: str) -> str:
    """Return a text that is given itself, as a file's path, or as "-" for standard input.

    Raises: CertificateError if there is no such file.
    """
    if argument.startswith(BEGINNING):
        return argument
    if argument == STANDARD_INPUT:
        return sys.stdin.read()
    content = read_file(Path(argument), "give the text itself, or the file that holds it")
    return content.decode("utf-8", "replace")


def identity_folder(folder: Path, role: str) -> Path:
    """Return the identity's folder below a site's own: `site` for a node, else the role."""
    return folder / ("site" if role == "node" else role)


@dataclass(frozen=True)
class NodeFile:
    """The values of a new node.toml.

    Args: table: a path, as the administrator gave it. is_open: no person is asked before a study.
    """

    name: str
    table: Path | None
    epsilon: str | None
    listen: str
    is_open: bool = False

    def write(self, folder: Path) -> list[str]:
        """Write node.toml, unless the folder has one, and return what the administrator must know.

        Raises: ConfigError, CertificateError if the disk refuses.
        """
        from umpc.node.template import configured

        path = folder / "node.toml"
        if path.exists():
            return [f"{path} stays as it is"]
        table = self.table.absolute() if self.table else Path("data.csv")
        if table.is_relative_to(folder.absolute()):
            table = table.relative_to(folder.absolute())
        text = configured(
            self.name,
            table=str(table),
            epsilon=self.epsilon or "5",
            listen=self.listen,
            is_open=self.is_open,
        )
        write_public(path, text.encode())
        lacking = [] if self.table else ["path under [data]"]
        lacking += [] if self.epsilon else ["epsilon under [budget]"]
        told = [f"{path}: read it, and write into [policy] what this site allows"]
        if self.is_open:
            told += ["open: until then, every study of a member runs, and no person is asked"]
        else:
            told += ["until then, a person must accept each study: `umpc approve --help`"]
        return [*told, f"and write {' and '.join(lacking)}"] if lacking else told


def write_members(folder: Path, members: Sequence[ConsortiumMember]) -> Path:
    """Write the consortium's members beside node.toml. Raises: CertificateError."""
    from umpc.enrolment.members import to_toml
    from umpc.transport.certificates import clock

    path = folder / "members.toml"
    write_public(path, to_toml(members, clock()).encode())
    return path


def check_table(table: Path | None) -> None:
    """Check that a table is there, before anything is written. Raises: ConfigError."""
    if table is not None and not table.is_file():
        raise ConfigError(
            f"--table {table}: a CSV or Parquet file was expected, and there is no such file. "
            "Correct the path, or leave --table out and write it into node.toml later"
        )
