"""A node's configuration: one TOML file that its administrator writes.

The template (`template.py`) documents every key. Paths are relative to the file's own folder. Every
mistake in the file is found when the node starts, as a ConfigError that names file and key. Numbers
stay exact: epsilon 0.1 is one tenth. The section [policy] is read again at every proposal
(`admission.py`).
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from umpc.compute.place import THIS_MACHINE, ComputePlace
from umpc.dp.composition import Composition
from umpc.errors import ConfigError
from umpc.node.budget.budget_account import BASIC_COMPOSITION
from umpc.node.budget.budget_limits import DEFAULT_DELTA, DEFAULT_HOLD_SECONDS
from umpc.node.budget.ledger_place import note_in_lock, noted_by_holder
from umpc.node.budget_section import composition_of, delta_of, epsilon_of
from umpc.node.config_section import KEYS, Section
from umpc.node.dataset_files import refuse_shared_places, refuse_shared_tables
from umpc.node.policy import ANYTHING, KINDS, Policy
from umpc.node.records import TableSource
from umpc.node.table_section import table_of
from umpc.protocols.registry import PROTOCOLS, possible_values
from umpc.text_file import NODE, read_text, refuse_other_kind
from umpc.transport.hub.address import HubAddress
from umpc.ustat.statistics import LIBRARY

NAME = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
NAME_EXPECTED = "a-z, 0-9 and inner '-', at most 63, as in the certificate"
DATASET = r"[^\x00-\x1f]{1,200}"
DATASET_EXPECTED = "a name of at most 200 characters"
HASHES_EXPECTED = (
    "a list of hashes, 64 hexadecimal digits each, as `umpc kernels explain` prints them"
)
LISTABLE = sorted(
    name
    for name, statistic in LIBRARY.items()
    if all(parameter.default is not None for parameter in statistic.parameters)
)
LISTABLE_ONLY = (
    "; one with a parameter that has no default can be allowed by its kernel's hash only"
)
WITHOUT_EFFECT = ("cache_megabytes",)
"""Keys under [data] that an older umpc had: each study reads the table."""


@dataclass(frozen=True)
class NodeConfig:
    """The settings of a node for one of its data sets.

    Paths are absolute and exist, except that the files of ledger and anchor need not exist yet. An
    `anchor` of None means a file beside the ledger. At most `most_prepared` studies may wait that
    were prepared ahead, each for `prepared_seconds`. A run, and then its finished attempt, may
    reserve budget for `hold_seconds`. `hook` is the command that runs when a study waits. With a
    `hub`, the node dials it and does not listen. `place` is where it computes. `without_effect`
    are keys that an older umpc had.
    """

    file: Path
    name: str
    listen: str
    identity: Path
    source: TableSource
    dataset: str
    epsilon: Fraction
    ledger: Path
    policy: Policy = ANYTHING
    delta: Fraction = DEFAULT_DELTA
    composition: Composition = BASIC_COMPOSITION
    anchor: Path | None = None
    most_prepared: int = 4
    prepared_seconds: float = 86_400
    hold_seconds: float = DEFAULT_HOLD_SECONDS
    hub: HubAddress | None = None
    hook: tuple[str, ...] = ()
    place: ComputePlace = THIS_MACHINE
    without_effect: tuple[str, ...] = ()

    def needs_restart(self, now: NodeConfig) -> list[str]:
        """Return the keys, other than the policy's, that a later reading changed."""
        names = [field.name for field in fields(self) if field.name != "policy"]
        changed = [name for name in names if getattr(self, name) != getattr(now, name)]
        return [SECTIONS.get(name, name) for name in changed]


Chosen = TypeVar("Chosen", NodeConfig, "SitePlaces")

SECTIONS = {name: f"budget.{name}" for name in KEYS["budget"]}
SECTIONS |= {
    "source": "data.path or sql, delimiter, missing, encoding, decimal, thousands, words, columns",
    "dataset": "data.name",
}
SECTIONS |= {"most_prepared": "prepare.most", "prepared_seconds": "prepare.hours"}
SECTIONS["composition"] = "budget.composition or composition_delta"
SECTIONS |= {"hold_seconds": "budget.hold_hours", "hook": "notify.command"}
SECTIONS["place"] = "cores, compute or compute_tls"
"""The place of a setting in the file, if it is not a key of its own name at the top."""


def load_node_config(
    path: Path, dataset: str | None = None, *, reads_table: bool = True
) -> NodeConfig:
    """Read and check a node's TOML file.

    Args: dataset: the name of one of several data sets. reads_table: as of `load_datasets`.
    Raises: ConfigError, which names the file, the key, what was expected and what came.
    """
    return choose_dataset(load_datasets(path, reads_table=reads_table), dataset)


def load_datasets(path: Path, *, reads_table: bool = True) -> tuple[NodeConfig, ...]:
    """Read and check a node's TOML file, with its one data set or all of several.

    Args: reads_table: the tables and their passwords must be there. False is for commands that look
        at no table: a table that is away, or a disk that hangs, does not keep them from working.
    Raises: ConfigError, as `load_node_config`.
    """
    file = Path(path).resolve()
    top = Section(file, "", _parse(file))
    PROTOCOLS.allow(top.texts("plugins", r"[^\x00]+", "a list of names of protocols") or ())
    if "datasets" not in top.values:
        data, budget = top.section("data"), top.section("budget")
        policy = top.section("policy", optional=True)
        ledger = top.ledger(_usual_ledger(top))
        return (_of_dataset(top, data, budget, policy, ledger, reads_table=reads_table),)
    found = []
    for data in _tables(top):
        budget, policy = data.section("budget"), data.section("policy", optional=True)
        ledger = _own_ledger(top, data)
        found.append(_of_dataset(top, data, budget, policy, ledger, reads_table=reads_table))
    refuse_shared_places(found)
    if reads_table:
        refuse_shared_tables(found)
    return tuple(found)


def choose_dataset(found: Sequence[Chosen], dataset: str | None) -> Chosen:
    """Return the only data set, or the named one of several. Raises: ConfigError."""
    file = found[0].file
    names = ", ".join(repr(each.dataset) for each in found)
    if dataset is None and len(found) > 1:
        raise ConfigError(
            f"{file}: it has the data sets {names}, and one of them was expected. Name it with "
            "--dataset"
        )
    for each in found:
        if dataset in (None, each.dataset):
            return each
    raise ConfigError(
        f"{file}: it has the data set {names}, and {dataset!r} came. Correct the name"
    )


def _tables(top: Section) -> list[Section]:
    """The sections [[datasets]]. Raises: ConfigError where keys of a single one are beside them."""
    top.refuse_beside("datasets", ("data", "budget", "policy", "ledger"))
    return top.tables("datasets")


def _usual_ledger(top: Section) -> str:
    return f"{_name(top)}-ledger.sqlite"


def _own_ledger(top: Section, data: Section) -> Path:
    """The ledger of one of several data sets. A name that is no name of a file needs the key."""
    name = _dataset(data)
    usual = f"{_name(top)}-{name}-ledger.sqlite" if re.fullmatch(NAME, name) else None
    return data.ledger(usual)


def _name(top: Section) -> str:
    return top.text("name", NAME, NAME_EXPECTED)


def _dataset(data: Section, default: str | None = None) -> str:
    return data.text("name", DATASET, DATASET_EXPECTED, default)


def _of_dataset(
    top: Section,
    data: Section,
    budget: Section,
    policy: Section,
    ledger: Path,
    *,
    reads_table: bool,
) -> NodeConfig:
    prepare = top.section("prepare", optional=True)
    notify = top.section("notify", optional=True)
    data.always_clips()
    source = table_of(data, reads_table=reads_table)
    is_single = data.name == "data"
    return NodeConfig(
        file=top.file,
        name=_name(top),
        listen=top.listen(),
        hub=top.hub(),
        identity=top.identity(),
        source=source,
        dataset=_dataset(data, source.name if is_single and not source.sql else None),
        epsilon=epsilon_of(budget, "epsilon"),
        ledger=ledger,
        policy=_policy(policy),
        delta=delta_of(budget, "delta"),
        composition=composition_of(budget),
        anchor=budget.anchor(),
        most_prepared=prepare.count("most", NodeConfig.most_prepared),
        prepared_seconds=prepare.hours("hours", NodeConfig.prepared_seconds),
        hold_seconds=budget.hours("hold_hours", NodeConfig.hold_seconds),
        hook=notify.command(),
        place=top.place(),
        without_effect=tuple(key for key in WITHOUT_EFFECT if key in data.values),
    )


@dataclass(frozen=True)
class SitePlaces:
    """The places and the budget of a data set; the table and the identity may be absent.

    `dataset` is empty where the file has a single data set without a name.
    """

    file: Path
    name: str
    dataset: str
    ledger: Path
    anchor: Path | None
    identity: Path
    epsilon: Fraction
    delta: Fraction
    composition: Composition


def load_places(path: Path, draft: Path | None = None, dataset: str | None = None) -> SitePlaces:
    """Read the places of a node's files.

    Args: draft: a file that will stand at the path. dataset: the name of one of several data sets;
        a file with a single one has that one, whatever its name.
    Raises: ConfigError.
    """
    file = Path(path).resolve()
    top = Section(file, "", _parse(draft or file))
    if "datasets" not in top.values:
        return _places(top, top.section("data"), top, top.ledger(_usual_ledger(top)))
    found = [_places(top, data, data, _own_ledger(top, data)) for data in _tables(top)]
    refuse_shared_places(found)
    return choose_dataset(found, dataset)


def _places(top: Section, data: Section, of_budget: Section, ledger: Path) -> SitePlaces:
    budget = of_budget.section("budget")
    return SitePlaces(
        file=top.file,
        name=_name(top),
        dataset=_dataset(data) if "name" in data.values else "",
        ledger=ledger,
        anchor=budget.anchor(),
        identity=top.identity_folder(),
        epsilon=epsilon_of(budget, "epsilon"),
        delta=delta_of(budget, "delta"),
        composition=composition_of(budget),
    )


def _policy(section: Section) -> Policy:
    names = "a list of names ({})".format
    listable = names(", ".join(LISTABLE)) + LISTABLE_ONLY
    kinds = {
        key: section.texts(key, "|".join(allowed), names(", ".join(allowed)))
        for key, allowed in ((key, possible_values(key)) for key in KINDS)
    }
    return Policy(
        coordinators=section.texts("coordinators", NAME, names(NAME_EXPECTED)),
        statistics=section.texts("statistics", "|".join(LISTABLE), listable),
        kernels=section.texts("kernels", "[0-9a-f]{64}", HASHES_EXPECTED),
        fields=section.texts("fields", r"[^\x00]+", "a list of names of fields"),
        public_labels=section.texts("public_labels", r"[^\x00]+", "a list of names of fields")
        or frozenset(),
        public_filters=section.texts("public_filters", r"[^\x00]+", "a list of names of fields")
        or frozenset(),
        person=section.text("person", r"[^\x00]*", "the name of a column", default=""),
        max_epsilon=epsilon_of(section, "max_epsilon") if "max_epsilon" in section.values else None,
        max_delta=delta_of(section, "max_delta") if "max_delta" in section.values else None,
        min_records=section.count("min_records"),
        min_nodes=section.count("min_nodes"),
        min_colluding=(
            section.count("min_colluding") if "min_colluding" in section.values else None
        ),
        protocol=kinds["protocol"],
        noise=kinds["noise"],
        coins=kinds["coins"],
        backend=kinds["backend"],
        preprocessing=kinds["preprocessing"],
        adversary=kinds["adversary"],
        dealers=section.texts("dealers", NAME, names(NAME_EXPECTED)),
        shufflers=section.texts("shufflers", NAME, names(NAME_EXPECTED)),
        trusted_curator=section.flag("trusted_curator"),
        approval=section.flag("approval"),
    )


def _parse(file: Path) -> dict[str, Any]:
    text = read_text(file, NODE, ConfigError)
    try:
        values = _values_in(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{file}: {NODE} was expected, in TOML: {error}. Correct the file there, or the path"
        ) from None
    refuse_other_kind(file, values, NODE, ConfigError)
    return values


@lru_cache(
    maxsize=64
)  # a node reads its file several times in each study; nobody changes the values
def _values_in(text: str) -> dict[str, Any]:
    return tomllib.loads(text, parse_float=Decimal)


def note_start(config: NodeConfig) -> None:
    """Note beside the ledger which settings the node starts with, for `changed_since_start`."""
    with suppress(OSError, ValueError):  # it is for advice only
        note_in_lock(config.ledger, json.dumps(_digests(config.file)))


def changed_since_start(config: NodeConfig) -> str:
    """Return a sentence if keys changed with which the running node does not count; else "".

    The keys of [policy] count at once, and all others from the next start on.
    """
    noted = noted_by_holder(config.ledger)
    if not noted:
        return ""  # no node runs, or one that notes nothing
    try:
        before = json.loads(noted)
        now = _digests(config.file)
        keys = sorted(before.keys() | now.keys())
        changed = [key for key in keys if before.get(key) != now.get(key)]
    except (OSError, ValueError, AttributeError):
        return ""
    if not changed:
        return ""
    return (
        f"{config.file}: {', '.join(changed)} changed since the node started, and it goes on with "
        "the former values: start it again"
    )


def _digests(file: Path) -> dict[str, str]:
    """Each key outside [policy] with a digest of its value, which may have a password."""
    found: dict[str, str] = {}

    def visit(place: str, value: Any) -> None:
        if isinstance(value, dict | list):
            pairs = value.items() if isinstance(value, dict) else enumerate(value, 1)
            for key, inner in pairs:
                if key != "policy":
                    visit(f"{place}.{key}" if place else str(key), inner)
        else:
            found[place] = hashlib.sha256(repr(value).encode()).hexdigest()

    visit("", tomllib.loads(file.read_text(encoding="utf-8")))
    return found
