"""The sets of fields that coordinators have asked a node about, in a file beside its ledger.

For each set of fields a node tells its number of complete records, and for a public label also the
number of records of each class. With a condition it counts the records for which that holds, so
each condition makes another set. These numbers cost no ε. Every further set tells a little more
about which values are missing together, so a node answers for at most MOST sets. The count survives
a restart. Without a condition no number depends on bounds, resolutions or categories. A condition
sees values after these, so they count for the fields that it reads.

The file `<ledger>.fieldsets` has one line of hexadecimal digits for each set. An administrator who
removes it lets the count begin anew, also while the node runs. A file that is lost by accident
therefore costs nothing but the limit.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path

from umpc.crypto.prg import digest
from umpc.errors import ConfigError, TooManySchemas
from umpc.study.document import Study
from umpc.transport.files import write_durably

MOST = 32
"""Largest number of different sets of fields for which a node tells numbers of records."""
LINES = re.compile(r"([0-9a-f]{64}\n)*")


def field_sets_beside(ledger: Path) -> Path:
    """Return the path of the field sets that belong to a ledger."""
    return Path(f"{ledger}.fieldsets")


class FieldSets:
    """The file of field sets, which need not exist yet. Every method may run in any thread."""

    def __init__(self, path: Path):
        self._path = Path(path).resolve()
        self._lock = threading.Lock()

    def count(self, study: Study, node: str) -> None:
        """Count the study's fields, on disk when this returns.

        Raises: TooManySchemas; ConfigError where the file cannot be read or written.
        """
        name = _name(study)
        with self._lock:
            known = self._read()
            if name in known:
                return
            if len(known) >= MOST:
                raise TooManySchemas(
                    f"{node} was asked about {MOST} different sets of fields, and each tells how "
                    "many of its records have these fields; propose one of those sets, or have "
                    "its administrator begin the count anew",
                    culprit=node,
                    detail=f"remove {self._path} to begin the count anew; no restart is needed",
                )
            self._write([*known, name])

    def _read(self) -> list[str]:
        try:
            text = self._path.read_text(encoding="ascii")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise self._unusable(f"{type(error).__name__}: {error}") from error
        if not LINES.fullmatch(text):
            raise self._unusable("it has a line that is no hash")
        return text.split()

    def _write(self, names: list[str]) -> None:
        """Replace the file as a whole, so that a crash leaves the former or the new one."""
        try:
            write_durably(self._path, "".join(f"{name}\n" for name in names).encode())
        except OSError as error:
            raise self._unusable(f"{type(error).__name__}: {error}") from error

    def _unusable(self, reason: str) -> ConfigError:
        return ConfigError(
            f"{self._path}: a file of the field sets that were asked about was expected, readable "
            f"and writable, and {reason}. Check the disk and the permissions; a file that is "
            "damaged may be removed, and the count begins anew"
        )


def _name(study: Study) -> str:
    """64 hexadecimal digits for all of a study that a number of records depends on."""
    parts = []
    for field in sorted(study.fields, key=lambda each: each.name):
        classes = field.categories if field.public else ()
        parts.append(digest(b"umpc field 1", field.name.encode(), *map(str.encode, classes)))
    if study.condition is not None:
        read = set(study.condition.fields)
        seen = [field.schema() for field in study.fields if field.name in read]
        schemas = sorted(repr(schema).encode() for schema in seen)
        parts.append(digest(b"umpc condition 2", study.condition.text.encode(), *schemas))
    if study.people is not None:
        people = study.people
        parts.append(digest(b"umpc person 1", people.column.encode(), b"%d" % people.records))
    return digest(b"umpc field set 1", *parts).hex()
