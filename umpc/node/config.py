"""A node's configuration: one TOML file that its administrator writes.

`template` is the documentation of every key. Paths are relative to the file's own folder. Everything that can
be wrong is found when the node starts, as a ConfigError that names file and key. Numbers stay exact: epsilon
0.1 is one tenth.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from umpc.errors import ConfigError
from umpc.node.policy import ANYTHING, Policy
from umpc.node.records import TableSource

KEYS = {
    "": ("name", "listen", "identity", "ledger", "data", "budget", "policy"),
    "data": ("path", "delimiter", "missing", "clip", "name"),
    "budget": ("epsilon",),
    "policy": ("kernels",),
}
IDENTITY_FILES = ("ca.pem", "cert.pem", "key.pem")
NAME = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
NAME_EXPECTED = "a-z, 0-9 and inner '-', at most 63, as in the certificate"
EPSILON = r"[0-9]{1,30}(\.[0-9]{1,30}|/[0-9]{1,30})?"


@dataclass(frozen=True)
class NodeConfig:
    """What a node needs to start. Paths are absolute and exist, except perhaps the ledger's file."""

    file: Path
    name: str
    listen: str
    identity: Path
    source: TableSource
    clip: bool
    dataset: str
    epsilon: Fraction
    ledger: Path
    policy: Policy = ANYTHING


def load_node_config(path: Path) -> NodeConfig:
    """Reads and checks a node's TOML file. Raises: ConfigError: file, key, what was expected, what came."""
    file = Path(path).resolve()
    top = _Section(file, "", _parse(file))
    data, budget, policy = top.section("data"), top.section("budget"), top.section("policy", optional=True)
    name = top.text("name", NAME, NAME_EXPECTED)
    source = TableSource(data.existing("path"), data.delimiter(), data.missing())
    return NodeConfig(
        file=file,
        name=name,
        listen=top.listen(),
        identity=top.identity(),
        source=source,
        clip=data.flag("clip"),
        dataset=data.text("name", r"[^\x00-\x1f]+", "a name", default=source.path.stem),
        epsilon=budget.epsilon(),
        ledger=top.ledger(default=f"{name}-ledger.sqlite"),
        policy=Policy(policy.hashes("kernels")),
    )


def template(name: str) -> str:
    """A commented example for a node of this name; `load_node_config` takes it once its paths exist."""
    if not re.fullmatch(NAME, name):
        raise ConfigError(f"a node's name ({NAME_EXPECTED}) was expected, and {name!r} came. Take another")
    return TEMPLATE.replace("@name@", name)


TEMPLATE = """\
# The configuration of one umpc node. Paths are relative to this file's folder.

name = "@name@"                    # as in the study's list of participants and in cert.pem
listen = "0.0.0.0:7100"            # host:port where coordinator and other nodes reach this one
identity = "site"                  # the folder of `umpc ca request`, with ca.pem, cert.pem and key.pem
# ledger = "@name@-ledger.sqlite"  # what was spent; keep it as long as the data, and back it up

[data]
path = "data.csv"                  # .csv, .tsv or .parquet, with the columns' names in the first line
# delimiter = ";"                  # default: whichever of , ; tab | splits the first line most
# missing = ["", "NA"]             # a row with one of these in a field of the study is left out
clip = false                       # true: move values beyond the study's bounds to the nearer bound
# name = "data"                    # the data set's name in the ledger; default: the file's name

[budget]
epsilon = 5                        # for all studies together; exact: 5, 0.5 or "1/3"

[policy]                           # hashes of the kernels that may be computed here, from `umpc kernels explain`
# kernels = ["0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"]
"""


def _parse(file: Path) -> dict:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"), parse_float=Decimal)
    except FileNotFoundError:
        raise ConfigError(
            f"{file}: a node's configuration was expected, and there is no such file. Write "
            "one as in the template, or correct the path"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: TOML in UTF-8 was expected: {error}. Correct the file there") from None
    except OSError as error:
        raise ConfigError(
            f"{file}: a readable file was expected: {error.strerror}. Correct the path or the permissions"
        ) from None


class _Section:
    """One table of the file. Each method yields one checked value or says what was expected and came."""

    def __init__(self, file: Path, name: str, values: dict):
        self.file, self.name, self.values = file, name, values
        for key in values:
            if key not in KEYS[name]:
                close = difflib.get_close_matches(key, KEYS[name], n=1, cutoff=0.5)
                hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(KEYS[name])}."
                raise ConfigError(f"{file}: unknown key {self._key(key)!r}; {hint} Correct or remove it")

    def section(self, name: str, *, optional: bool = False) -> _Section:
        default = {} if optional else None
        return _Section(self.file, name, self._typed(name, dict, f"a section [{name}]", default))

    def hashes(self, key: str) -> frozenset[str] | None:
        """Hashes of kernels; None where the key is missing."""
        if key not in self.values:
            return None
        expected = "a list of kernel hashes, 64 hexadecimal digits each, as `umpc kernels explain` prints them"
        hashes = self._typed(key, list, expected)
        if not all(isinstance(text, str) and re.fullmatch("[0-9a-f]{64}", text) for text in hashes):
            raise self._wrong(key, expected, hashes)
        return frozenset(hashes)

    def text(self, key: str, pattern: str, expected: str, default: str | None = None) -> str:
        value = self._typed(key, str, expected, default)
        if not re.fullmatch(pattern, value):
            raise self._wrong(key, expected, value)
        return value

    def flag(self, key: str) -> bool:
        return self._typed(key, bool, "true or false", False)

    def existing(self, key: str) -> Path:
        """A file that is there."""
        path = self._path(key, "the path of a file")
        if not path.is_file():
            raise self._wrong(key, "an existing file", str(path))
        return path

    def identity(self) -> Path:
        folder = self._path("identity", "the path of a folder")
        absent = [name for name in IDENTITY_FILES if not (folder / name).is_file()]
        if absent:
            raise self._wrong(
                "identity", f"a folder with {', '.join(IDENTITY_FILES)}", f"{folder} without {', '.join(absent)}"
            )
        return folder

    def ledger(self, default: str) -> Path:
        path = self._path("ledger", "the path of the ledger's file", default)
        if not path.parent.is_dir() or path.is_dir():
            raise self._wrong("ledger", "a file in an existing folder", str(path))
        return path

    def listen(self) -> str:
        expected = 'host:port with a port from 0 to 65535, like "127.0.0.1:0"'
        value = self.text("listen", r"(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]+):[0-9]{1,5}", expected, "127.0.0.1:0")
        if int(value.rpartition(":")[2]) > 65535:
            raise self._wrong("listen", expected, value)
        return value

    def delimiter(self) -> str | None:
        if "delimiter" not in self.values:
            return None
        return self.text("delimiter", r"[^\"\r\n\x00A-Za-z0-9.+-]", "one character that occurs in no number, like ';'")

    def missing(self) -> tuple[str, ...]:
        expected = 'a list of texts, like ["", "NA"]'
        words = self._typed("missing", list, expected, list(TableSource.missing))
        if not all(isinstance(word, str) for word in words):
            raise self._wrong("missing", expected, words)
        return tuple(words)

    def epsilon(self) -> Fraction:
        """Exact: the file's digits, never a double."""
        expected = 'a number above 0 with at most 30 digits, like 5, 0.5 or "1/3"'
        value = self._typed("epsilon", (int, Decimal, str), expected)
        written = f"{value:f}" if isinstance(value, Decimal) and abs(value.adjusted()) < 60 else str(value)
        if not re.fullmatch(EPSILON, written) or re.fullmatch(r".*/0+", written) or Fraction(written) <= 0:
            raise self._wrong("epsilon", expected, value)
        return Fraction(written)

    def _path(self, key: str, expected: str, default: str | None = None) -> Path:
        return (self.file.parent / self.text(key, r"[^\x00]+", expected, default)).resolve()

    def _typed(self, key: str, types: type | tuple[type, ...], expected: str, default: object = None):
        value = self.values.get(key, default)
        if value is None:
            raise ConfigError(f"{self.file}: key {self._key(key)!r} is missing; {expected} was expected. Add it")
        if not isinstance(value, types):
            raise self._wrong(key, expected, value)
        return value

    def _wrong(self, key: str, expected: str, came: object) -> ConfigError:
        shown = str(came) if isinstance(came, Decimal) else repr(came)
        return ConfigError(
            f"{self.file}: key {self._key(key)!r}: {expected} was expected, and {shown} came. Correct it there"
        )

    def _key(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key
