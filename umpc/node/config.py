"""A node's configuration: one TOML file that its administrator writes.

The template (`template.py`) documents every key. Paths are relative to the file's own folder. Every
mistake in the file is found when the node starts, as a ConfigError that names file and key. Numbers
stay exact: epsilon 0.1 is one tenth. The section [policy] is read again at every proposal
(`datasets.py`).

*Budget section.* The keys of a configuration that are amounts of budget: exact, as the file writes
them.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any, TypeVar

from umpc.compute.place import THIS_MACHINE, ComputePlace
from umpc.counts import COUNTED
from umpc.dp.composition import BASIC, COMPOSITIONS, Composition
from umpc.errors import ConfigError
from umpc.node.budget.budget_account import BASIC_COMPOSITION, DEFAULT_DELTA, DEFAULT_HOLD_SECONDS
from umpc.node.budget.ledger_place import Place, note_in_lock, noted_by_holder
from umpc.node.config_section import Section, table_of
from umpc.node.policy import ANYTHING, KINDS, Policy
from umpc.node.table.source import TableSource, is_same_file, is_same_table, named
from umpc.protocols.registry import PROTOCOLS, possible_values
from umpc.text_file import NODE, read_text, refuse_other_kind
from umpc.transport.addresses import HubAddress
from umpc.ustat.statistics import LIBRARY

NAME = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
NAME_EXPECTED = "a-z, 0-9 and inner '-', at most 63, as in the certificate"
DATASET = r"[^\x00-\x1f]{1,200}"
DATASET_EXPECTED = "a name of at most 200 characters"
HASHES_EXPECTED = (
    "a list of hashes, 64 hexadecimal digits each, as `umpc kernels explain` prints them"
)
LISTABLE = sorted(
    {
        name
        for name, statistic in LIBRARY.items()
        if all(parameter.default is not None for parameter in statistic.parameters)
    }
    | COUNTED.keys()
)
LISTABLE_ONLY = (
    "; one with a parameter that has no default can be allowed by its kernel's hash only"
)


@dataclass(frozen=True, kw_only=True)
class SitePlaces:
    """The places and the budget of a data set; the table and the identity may be absent.

    `dataset` is empty where the file has a single data set without a name. Paths are absolute. The
    files of ledger and anchor need not exist yet. An `anchor` of None means a file beside the
    ledger.
    """

    file: Path
    name: str
    dataset: str
    ledger: Path
    anchor: Path | None = None
    identity: Path
    epsilon: Fraction
    delta: Fraction = DEFAULT_DELTA
    composition: Composition = BASIC_COMPOSITION


@dataclass(frozen=True, kw_only=True)
class PeoplePlace:
    """The folder and the door of an aggregator of people.

    folder: of what they send. listen: the address of their door. cap: ε that an enrolment may
    spend in all; None for no limit. most: boxes a second of one address; 0 for the usual number.
    """

    folder: Path
    listen: str
    cap: Fraction | None
    most: int


@dataclass(frozen=True, kw_only=True)
class LinkedPlace:
    """Where a site keeps studies of linked rows, and the column of its table with their keys."""

    folder: Path
    key: str


@dataclass(frozen=True, kw_only=True)
class NodeConfig(SitePlaces):
    """The settings of a node for one of its data sets, which always has a name.

    The identity exists. At most `most_prepared` studies may wait that were prepared ahead, each for
    `prepared_seconds`. A run, and then its finished attempt, may reserve budget for `hold_seconds`.
    `hook` is the command that runs when a study waits. With a `hub`, the node dials it and does not
    listen. `place` is where it computes. `without_effect` are keys that an older umpc had, and the
    names under `plugins` that no installed package has. With `people` there is no table. With
    `linked` the site links its rows with another one's.
    """

    listen: str
    source: TableSource
    people: PeoplePlace | None = None
    linked: LinkedPlace | None = None
    policy: Policy = ANYTHING
    most_prepared: int = 4
    prepared_seconds: float = 86_400
    hold_seconds: float = DEFAULT_HOLD_SECONDS
    hub: HubAddress | None = None
    hook: tuple[str, ...] = ()
    place: ComputePlace = THIS_MACHINE
    without_effect: tuple[str, ...] = ()


Chosen = TypeVar("Chosen", bound=SitePlaces)


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
    PROTOCOLS.allow(top.texts("plugins", r"[^\x00]+", "a list of names of protocols"))
    found = [_of_dataset(top, *each, reads_table=reads_table) for each in _datasets(top)]
    _refuse_shared_places(found)
    _check_people(top, found)
    if reads_table:
        _refuse_shared_tables(found)
    return tuple(found)


def _refuse_shared_places(found: Sequence[SitePlaces]) -> None:
    """Refuse two data sets with one name, or with one ledger or anchor. Raises: ConfigError."""
    for one, other in combinations(found, 2):
        if one.dataset == other.dataset:
            raise ConfigError(
                f"{one.file}: two data sets have the name {one.dataset!r}. Correct one of them"
            )
        pairs = product(_files_of_budget(one), _files_of_budget(other))
        for mine, theirs in pairs:
            if is_same_file(mine, theirs):
                raise ConfigError(
                    f"{one.file}: the data sets {one.dataset!r} and {other.dataset!r} both have "
                    f"{mine}, and each was expected to have a ledger and an anchor of its own. "
                    "Correct the path of one of them"
                )


def _refuse_shared_tables(found: Sequence[NodeConfig]) -> None:
    """Refuse two data sets with one table. Raises: ConfigError."""
    for one, other in combinations(found, 2):
        if is_same_table(one.source, other.source):
            raise ConfigError(
                f"{one.file}: the data sets {one.dataset!r} and {other.dataset!r} have one table, "
                f"{named(one.source)}, so its records would have two budgets. Correct it: keep "
                "one of the two"
            )


def _files_of_budget(found: SitePlaces) -> tuple[Path, Path]:
    place = Place.of(found.ledger, found.anchor)
    return place.ledger, place.anchor


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


def _datasets(top: Section) -> Iterator[tuple[Section, Section, Path]]:
    """Yield each data set: its table, the section that has its budget and policy, and its ledger.

    A data set among several, whose name is no name of a file, needs the key `ledger`.
    Raises: ConfigError.
    """
    usual = f"{_name(top)}-ledger.sqlite"
    if "datasets" not in top.values:
        yield top.section("data"), top, top.ledger(usual)
        return
    for key in ("data", "budget", "policy", "ledger"):
        if key in top.values:
            raise top.error(
                key,
                " and [[datasets]] exclude each other: each data set has its own. Correct it: "
                f"move {key!r} into the data sets",
            )
    for data in top.tables("datasets"):
        name = _dataset(data)
        usual = f"{_name(top)}-{name}-ledger.sqlite"
        yield data, data, data.ledger(usual if re.fullmatch(NAME, name) else None)


def _name(top: Section) -> str:
    return top.text("name", NAME, NAME_EXPECTED)


def _dataset(data: Section, default: str | None = None) -> str:
    return data.text("name", DATASET, DATASET_EXPECTED, default)


def _of_dataset(
    top: Section, data: Section, holder: Section, ledger: Path, *, reads_table: bool
) -> NodeConfig:
    prepare = top.section("prepare", optional=True)
    data.always_clips()
    source = table_of(data, reads_table=reads_table)
    usual = source.name if holder is top and not source.sql else None
    own = {"dataset": _dataset(data, usual), "identity": top.identity()}
    return NodeConfig(
        **{**vars(_places(top, data, holder, ledger)), **own},
        listen=top.listen(),
        hub=top.hub(),
        source=source,
        people=_people(top, data, source),
        linked=_linked(top),
        policy=_policy(holder.section("policy", optional=True)),
        most_prepared=prepare.count("most", NodeConfig.most_prepared),
        prepared_seconds=prepare.hours("hours", NodeConfig.prepared_seconds),
        hold_seconds=holder.section("budget").hours("hold_hours", NodeConfig.hold_seconds),
        hook=top.section("notify", optional=True).command(),
        place=top.place(),
        without_effect=(
            # an older umpc had this key: now each study reads the table
            *{"cache_megabytes"} & data.values.keys(),
            *set(top.values.get("plugins", ())) - set(PROTOCOLS),
        ),
    )


def _people(top: Section, data: Section, source: TableSource) -> PeoplePlace | None:
    """Return the folder and the door, if the data set is an aggregator's; None for a table."""
    if "people" not in data.values:
        return None
    section = top.section("people")
    cap = epsilon_of(section, "cap") if "cap" in section.values else None
    return PeoplePlace(
        folder=source.path, listen=section.listen(), cap=cap, most=section.count("most_per_second")
    )


def _linked(top: Section) -> LinkedPlace | None:
    """Return the folder and the column under [linked], if the file has the section."""
    if "linked" not in top.values:
        return None
    section = top.section("linked")
    folder = section.path("folder", "the path of a folder, which the node makes")
    return LinkedPlace(folder=folder, key=section.text("key", r"[^\x00]+", "a column's name"))


def _check_people(top: Section, found: Sequence[NodeConfig]) -> None:
    """Refuse a door beside anything but one folder. Raises: ConfigError."""
    aggregators = sum(each.people is not None for each in found)
    if "linked" in top.values and (aggregators, len(found)) != (0, 1):
        raise top.error(
            "linked",
            f" goes with one data set, which has a table: {len(found)} are there, {aggregators} "
            "without one. Correct it: give this table a node of its own, or remove the "
            "section",
        )
    # a study of people names no data set, so a node with others would not know whose it is
    if "people" in top.values and (aggregators, len(found)) != (1, 1):
        raise top.error(
            "people",
            " goes with one data set, which has people = FOLDER in place of a table: "
            f"{aggregators} of {len(found)} have. Correct it: write people = FOLDER under [data], "
            "give tables a node of their own, or remove the section",
        )


def load_places(path: Path, draft: Path | None = None, dataset: str | None = None) -> SitePlaces:
    """Read the places of a node's files.

    Args: draft: a file that will stand at the path. dataset: the name of one of several data sets;
        a file with a single one has that one, whatever its name.
    Raises: ConfigError.
    """
    file = Path(path).resolve()
    top = Section(file, "", _parse(draft or file))
    found = [_places(top, *each) for each in _datasets(top)]
    _refuse_shared_places(found)
    return choose_dataset(found, dataset if "datasets" in top.values else None)


def _places(top: Section, data: Section, holder: Section, ledger: Path) -> SitePlaces:
    budget = holder.section("budget")
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
    """Return the rules. A missing key leaves the default of `Policy`.

    Lists, amounts and `person` are named here. All other keys are counts or flags.
    """
    names = "a list of names ({})".format
    of_processes = NAME, names(NAME_EXPECTED)
    of_fields = r"[^\x00]+", "a list of names of fields"
    lists = {
        **dict.fromkeys(("coordinators", "dealers", "shufflers"), of_processes),
        **dict.fromkeys(("fields", "public_labels", "public_filters"), of_fields),
        "statistics": ("|".join(LISTABLE), names(", ".join(LISTABLE)) + LISTABLE_ONLY),
        "kernels": ("[0-9a-f]{64}", HASHES_EXPECTED),
    }
    for key in KINDS:
        allowed = possible_values(key)
        lists[key] = "|".join(allowed), names(", ".join(allowed))
    found: dict[str, Any] = {}
    for key in section.values:
        if key in lists:
            found[key] = section.texts(key, *lists[key])
        elif key == "person":
            found[key] = section.text(key, r"[^\x00]*", "the name of a column")
        elif key == "max_epsilon":
            found[key] = epsilon_of(section, key)
        elif key == "max_delta":
            found[key] = delta_of(section, key)
        else:
            is_flag = Policy.__annotations__[key] == "bool"
            found[key] = section.flag(key) if is_flag else section.count(key)
    return Policy(**found)


def _parse(file: Path) -> dict[str, Any]:
    text = read_text(file, NODE, ConfigError)
    try:
        values: dict[str, Any] = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{file}: {NODE} was expected, in TOML: {error}. Correct the file there, or the path"
        ) from None
    refuse_other_kind(file, values, NODE, ConfigError)
    return values


def note_start(config: NodeConfig) -> None:
    """Note beside the ledger which settings the node starts with, for `changed_since_start`."""
    with suppress(OSError, ValueError):  # it is for advice only
        note_in_lock(config.ledger, json.dumps(key_digests(config.file)))


def changed_since_start(config: NodeConfig) -> str:
    """Return a sentence if keys changed with which the running node does not count; else "".

    The keys of [policy] count at once, and all others from the next start on.
    """
    noted = noted_by_holder(config.ledger)
    if not noted:
        return ""  # no node runs, or one that notes nothing
    try:
        changed = changed_keys(json.loads(noted), config.file)
    except (AttributeError, ValueError):
        return ""
    if not changed:
        return ""
    return (
        f"{config.file}: {', '.join(changed)} changed since the node started, and it goes on with "
        "the former values: start it again"
    )


def changed_keys(before: Mapping[str, str], file: Path) -> list[str]:
    """Return the keys outside [policy] whose digests are others now; none for an unreadable file.

    Args: before: as `key_digests` gave them.
    """
    try:
        now = key_digests(file)
    except (OSError, ValueError):
        return []
    keys = sorted(before.keys() | now.keys())
    return [key for key in keys if before.get(key) != now.get(key)]


def key_digests(file: Path) -> dict[str, str]:
    """Each key outside [policy] with a digest of its value, which may have a password.

    Raises: OSError, ValueError.
    """
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


# --- budget section -------------------------------------------------------------------------------

EPSILON = r"[0-9]{1,30}(\.[0-9]{1,30}|/[0-9]{1,30})?"
MOST_DIGITS = 30
DELTA = r"[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?|[0-9]{1,30}/[0-9]{1,30}"


def epsilon_of(section: Section, key: str) -> Fraction:
    """Return an ε, exact: the file's digits and never a double."""
    expected = 'a number above 0 with at most 30 digits, like 5, 0.5 or "1/3"'

    def plain(value: Any) -> str:
        is_short = isinstance(value, Decimal) and abs(value.adjusted()) < 60
        return f"{value:f}" if is_short else str(value)

    def is_right(value: Any) -> bool:
        return (_amount(EPSILON, value, plain(value)) or 0) > 0

    return Fraction(plain(section.checked(key, is_right, expected)))


def delta_of(section: Section, key: str) -> Fraction:
    """Return a δ, exact as ε. With 0, no study may cost any δ."""
    expected = (
        'a number from 0 to below 1 with at most 30 digits, like "1e-9", 0.000001 or "1/1000000"'
    )

    def is_right(value: Any) -> bool:
        delta = _amount(DELTA, value, str(value))
        return delta is not None and delta < 1 and delta.denominator <= 10**MOST_DIGITS

    return Fraction(str(section.checked(key, is_right, expected, "1e-9")))


def _amount(pattern: str, value: Any, written: str) -> Fraction | None:
    """Return the amount that a value is as it is written; None where it is no amount."""
    is_number = type(value) in (int, Decimal, str) and re.fullmatch(pattern, written)
    try:
        return Fraction(written) if is_number else None
    except ZeroDivisionError:
        return None


def composition_of(section: Section) -> Composition:
    """Return how the costs of studies add up: its name, and its own δ."""
    expected = f"one of {', '.join(map(repr, COMPOSITIONS))}"
    name = section.text("composition", "|".join(COMPOSITIONS), expected, BASIC)
    has_delta = "composition_delta" in section.values
    if name == BASIC:
        if has_delta:
            raise section.error(
                "composition_delta",
                ' goes with composition = "advanced" or "zcdp": basic composition costs no delta '
                "of its own. Remove it, or add composition",
            )
        return Composition()
    delta = delta_of(section, "composition_delta") if has_delta else Fraction(0)
    if not delta:
        raise section.error(
            "composition_delta",
            f' is missing or 0, and composition = "{name}" needs it: the delta above 0 that the '
            'composition itself costs, such as "1e-9". Add it',
        )
    return Composition(name, delta)
