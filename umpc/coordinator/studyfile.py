"""study.toml: a study as people write it, checked key by key; README.md and `umpc study --help` show one."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from umpc.coordinator.kernelfile import load_kernel
from umpc.errors import StudyError
from umpc.mpc.masked.committee_coins import ALL_MEMBERS
from umpc.protocols.central.settings import CENTRAL, usual_edges
from umpc.protocols.local.settings import USUAL_LEVELS, with_usual_bins
from umpc.study.document import Study
from umpc.study.parts import FieldBins, FieldText, Participant, exact
from umpc.ustat.statistics import find_statistic
from umpc.ustat.text import to_text

Number = int | str


class _FieldEntry(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    lower: Number | None = None
    upper: Number | None = None
    resolution: Number = 1
    categories: list[str] | None = None
    public: bool = False

    def text(self) -> FieldText:
        """Raises: StudyError where it has neither bounds nor categories, or both."""
        if (self.lower is None or self.upper is None) == (self.categories is None) or (
            self.categories is not None
            and (self.lower, self.upper, self.resolution) != (None, None, 1)
        ):
            raise StudyError(
                f"field {self.name!r}: either lower and upper or categories were expected; give these"
            )
        if self.categories is not None:
            return FieldText.of_categories(self.name, self.categories, public=self.public)
        return FieldText(
            self.name, str(self.lower), str(self.upper), str(self.resolution), public=self.public
        )


class _StudyFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    name: str
    fields: list[_FieldEntry]
    epsilon: Number
    dealer: Participant | None = None
    nodes: list[Participant]
    identity: str
    statistic: str | None = None
    columns: list[str] | None = None
    parameters: dict[str, Number | list[Number]] = {}
    kernel: str | None = None
    estimator: str | None = None
    sampling: str | None = None
    split: list[Number] = []
    protocol: str = "u-mpc"
    edges: Number | None = None
    max_colluding: int | None = None
    noise: str | None = None
    delta: Number = ""
    backend: str | None = None
    preprocessing: str | None = None
    bins: dict[str, int | list[Number]] = {}
    rounding: str = "simple"
    levels: int | None = None
    shufflers: list[Participant] = []
    seconds_per_step: int = 600


class _Usual(NamedTuple):
    """What a protocol takes where the file does not say."""

    edges: str
    noise: str | None
    backend: str
    preprocessing: str
    levels: int = 0


DEFAULTS = {
    "u-mpc": _Usual("2n", None, "shared", "dealer"),
    "bell-2pc": _Usual("1p", "pair_laplace", "garbled", "none"),
    "bell-ldp": _Usual("all", "local", "none", "none"),
    "bell-auc": _Usual("all", "local", "none", "none", USUAL_LEVELS),
    "ghazi-ldp": _Usual("all", "local", "none", "none"),
    "ghazi-rounds": _Usual("all", "local", "none", "none"),
    "gopa": _Usual("all", "gopa", "none", "none"),
    "central": _Usual("all", "laplace", "none", "none"),
    "ghazi-shuffle": _Usual("all", "shuffled", "none", "none"),
}


@dataclass(frozen=True)
class StudyFile:
    """What study.toml holds, without the coordinator's name, which is in its certificate."""

    path: Path
    identity: Path
    entries: _StudyFile

    def study(self, coordinator: str) -> Study:
        """The study document, checked. Raises: StudyError and its kinds."""
        entries, nodes = self.entries, tuple(self.entries.nodes)
        usual, statistic = DEFAULTS.get(entries.protocol, DEFAULTS["u-mpc"]), self._statistic()
        edges = (
            "2n" if usual.edges == "1p" and statistic["sampling"] == "two_sample" else usual.edges
        )
        edges = usual_edges(entries.noise) if entries.protocol == CENTRAL else edges
        preprocessing = entries.preprocessing or usual.preprocessing
        noise = entries.noise or usual.noise or default_noise(len(nodes), entries.epsilon)
        study = Study(
            name=entries.name,
            **statistic,
            split=tuple(map(str, entries.split)),
            fields=tuple(field.text() for field in entries.fields),
            epsilon=str(entries.epsilon),
            edges=str(edges if entries.edges is None else entries.edges),
            max_colluding=max(len(nodes) - 1, 0)
            if entries.max_colluding is None
            else entries.max_colluding,
            delta=str(entries.delta),
            protocol=entries.protocol,
            noise=noise,
            backend=entries.backend or usual.backend,
            preprocessing=preprocessing,
            bins=tuple(_bins(field, given) for field, given in entries.bins.items()),
            rounding=entries.rounding,
            levels=usual.levels if entries.levels is None else entries.levels,
            shufflers=tuple(entries.shufflers),
            coordinator=coordinator,
            dealer=entries.dealer,
            nodes=nodes,
            seconds_per_step=entries.seconds_per_step,
        )
        return with_usual_bins(study).check()

    def _statistic(self) -> dict:
        """The study's statistic: one of the library, or one's own function, traced here and now."""
        entries = self.entries
        if entries.statistic is not None:
            of = find_statistic(entries.statistic)
            expressions = of.expressions(entries.columns or [], entries.parameters)
            name, degree, estimator, sampling = of.name, of.degree, of.estimator, of.sampling
        else:
            traced = load_kernel(entries.kernel, self.path.parent)
            name, expressions, degree = (
                entries.kernel.rpartition(":")[2],
                traced.expressions,
                traced.degree,
            )
            estimator, sampling = entries.estimator or "mean", entries.sampling or "balanced"
        return {
            "statistic": name,
            "kernels": tuple(map(to_text, expressions)),
            "degree": degree,
            "estimator": estimator,
            "sampling": sampling,
        }


def _bins(field: str, given: int | Sequence[Number]) -> FieldBins:
    """A number of bins, or cut points."""
    return (
        FieldBins(field, given)
        if isinstance(given, int)
        else FieldBins(field, 0, tuple(map(str, given)))
    )


def default_noise(nodes: int, epsilon: Number) -> str:
    """Inside MPC for few nodes; not for an ε at which the δ of finite bits would mean nothing."""
    try:
        small = exact(str(epsilon), "epsilon") <= 16
    except StudyError:
        small = False
    return "in_mpc" if 2 <= nodes <= ALL_MEMBERS and small else "distributed"


def load_study_file(path: Path) -> StudyFile:
    """Read study.toml. Raises: StudyError naming file and key."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: a readable study file was expected: {error}") from error
    try:
        values = tomllib.loads(text, parse_float=Decimal)
        entries = msgspec.convert(_as_text(values), type=_StudyFile, strict=True)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise StudyError(f"{path}: TOML was expected: {error}. Correct the file there") from error
    except msgspec.ValidationError as error:
        raise StudyError(f"{path}: {error}. Correct the key there") from error
    for number, field in enumerate(entries.fields):
        try:
            field.text()
        except StudyError as error:
            raise StudyError(f"{path}: {error.message} at `fields[{number}]`") from error
    if (entries.statistic is None) == (entries.kernel is None):
        raise StudyError(
            f"{path}: one of `statistic` and `kernel` was expected. Name the one you mean"
        )
    if (entries.statistic is None) != (entries.columns is None):
        raise StudyError(
            f"{path}: `columns` goes with `statistic`, and a kernel names its fields itself. Correct that"
        )
    if entries.statistic is not None and (entries.estimator or entries.sampling):
        raise StudyError(
            f"{path}: a `statistic` has its own estimator and sampling. Remove `estimator` and `sampling`"
        )
    if entries.kernel is not None and entries.parameters:
        raise StudyError(
            f"{path}: `parameters` go with `statistic`; write numbers into the kernel. Correct that"
        )
    return StudyFile(path, (path.parent / entries.identity).resolve(), entries)


def _as_text(value: object) -> object:
    """Decimals as the text that was written: numbers stay exact."""
    if isinstance(value, dict):
        return {key: _as_text(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_text(inner) for inner in value]
    return str(value) if isinstance(value, Decimal) else value


def write_study_file(
    folder: Path,
    *,
    name: str,
    fields: Sequence[FieldText],
    epsilon: str,
    dealer: tuple[str, str] | None,
    nodes: Sequence[tuple[str, str]],
    statistic: str | None = None,
    columns: Sequence[str] = (),
    parameters: Mapping[str, str | Sequence[str]] | None = None,
    kernel: str | None = None,
    edges: str | None = None,
    max_colluding: int | None = None,
    protocol: str | None = None,
    noise: str | None = None,
    delta: str | None = None,
    backend: str | None = None,
    preprocessing: str | None = None,
    bins: Mapping[str, int | Sequence[str]] | None = None,
    rounding: str | None = None,
    levels: int | None = None,
    shufflers: Sequence[tuple[str, str]] = (),
) -> Path:
    """study.toml for participants given as (name, address), of a statistic over columns, or of a kernel."""
    text = partial(json.dumps, ensure_ascii=False)  # JSON strings and lists of strings are TOML too
    lines = [
        f"name = {text(name)}",
        f"epsilon = {text(epsilon)}",
        'identity = "coordinator"',
    ]
    if statistic is not None:
        lines += [f"statistic = {text(statistic)}", f"columns = {text(list(columns))}"]
    lines += [] if kernel is None else [f"kernel = {text(kernel)}"]
    lines += [] if max_colluding is None else [f"max_colluding = {max_colluding}"]
    choices = {
        "edges": edges,
        "protocol": protocol,
        "noise": noise,
        "delta": delta,
        "backend": backend,
        "preprocessing": preprocessing,
        "rounding": rounding,
        "levels": levels,
    }
    lines += [f"{key} = {text(value)}" for key, value in choices.items() if value is not None]
    if parameters:
        lines += ["[parameters]", *(f"{key} = {text(value)}" for key, value in parameters.items())]
    if bins:
        lines += ["[bins]", *(f"{text(key)} = {text(value)}" for key, value in bins.items())]
    for field in fields:
        lines += ["[[fields]]", f"name = {text(field.name)}"]
        if field.categories:
            lines += [f"categories = {text(list(field.categories))}"]
            lines += ["public = true"] if field.public else []
        else:
            lines += [
                f"{key} = {text(getattr(field, key))}" for key in ("lower", "upper", "resolution")
            ]
    if dealer:
        lines += ["[dealer]", f"name = {text(dealer[0])}", f"address = {text(dealer[1])}"]
    for table, those in (("shufflers", shufflers), ("nodes", nodes)):
        for participant, address in those:
            lines += [f"[[{table}]]", f"name = {text(participant)}", f"address = {text(address)}"]
    path = folder / "study.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
