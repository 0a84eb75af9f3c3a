"""study.toml: a study as people write it, checked key by key.

README.md and `umpc study --help` show one. The keys are those of every study, which `_StudyFile`
describes, and the settings of the study's protocol, which the protocol itself describes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec

from umpc.coordinator.kernelfile import TracedKernel, load_kernel
from umpc.coordinator.several import (
    NamedStatistic,
    StatisticEntry,
    check_keys,
    parts_of,
    read_statistic,
)
from umpc.coordinator.variance import PRIVATE, check_variance_keys, with_variance
from umpc.errors import StudyError
from umpc.protocols.auto import choose, is_open, open_keys
from umpc.protocols.base.protocol import StudyProtocol
from umpc.protocols.registry import USUAL, checked, chosen_protocol
from umpc.study.document import Study
from umpc.study.grades import HONEST
from umpc.study.parts import FieldText, Participant, Person
from umpc.study.settings import Settings, keys_of
from umpc.ustat.condition import parse_condition
from umpc.ustat.sampling import BALANCED, UNBALANCED
from umpc.ustat.statistics import find_statistic
from umpc.ustat.text import from_text, to_text

Number = int | str
PLACEHOLDER = "coordinator"
"""The coordinator's name where only its certificate has it."""


def _about(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


class FieldEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A field as study.toml has it."""

    name: str
    lower: Number | None = None
    upper: Number | None = None
    resolution: Number | None = None
    whole: bool = False
    categories: list[str] | None = None
    public: bool = False

    @property
    def states_step(self) -> bool:
        """Whether it says which step its values have."""
        return self.whole or self.resolution is not None

    def text(self) -> FieldText:
        """Raises: StudyError where it has neither bounds nor categories, or both; or no step."""
        has_bounds = self.lower is not None and self.upper is not None
        numbers = (self.lower, self.upper, self.resolution, self.whole)
        if has_bounds == (self.categories is not None) or (
            self.categories is not None and numbers != (None, None, None, False)
        ):
            raise StudyError(
                f"field {self.name!r}: either lower and upper or categories were expected; give "
                f"these"
            )
        if self.categories is not None:
            return FieldText.of_categories(self.name, self.categories, public=self.public)
        step = "" if self.resolution is None else str(self.resolution)
        field = FieldText(
            self.name, str(self.lower), str(self.upper), step, public=self.public, whole=self.whole
        )
        _ = field.step
        return field


class _StudyFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The keys of every study."""

    name: Annotated[str, _about("A new name is a new study, with new noise and a new charge.")]
    fields: Annotated[
        list[FieldEntry],
        _about(
            "The columns that the study reads. Each has a name, and either categories or lower "
            "and upper with one of: a resolution, the step of its values; whole = true, for whole "
            "numbers. public = true marks a label that everybody may know."
        ),
    ]
    epsilon: Annotated[Number, _about("Privacy of the result, against replacing one record.")]
    nodes: Annotated[list[Participant], _about("Name and address of each site's node.")]
    identity: Annotated[str, _about("The coordinator's folder with ca.pem, cert.pem and key.pem.")]
    statistic: Annotated[
        str | None, _about("A statistic of the library, which `umpc kernels` lists.")
    ] = None
    columns: Annotated[
        list[str] | None, _about("The fields that the statistic takes, in its order.")
    ] = None
    parameters: Annotated[
        dict[str, Number | list[Number]], _about("A table: the statistic's parameters, if any.")
    ] = {}
    statistics: Annotated[
        list[StatisticEntry] | None,
        _about(
            "Several statistics of the library over the same sets, in place of `statistic`. Each "
            "has a statistic, columns and, if any, parameters. They share epsilon in equal parts."
        ),
    ] = None
    strata: Annotated[
        str | None,
        _about(
            "A field with categories, such as sex: the statistic is computed inside each category, "
            "over the sets whose records all have it. The numbers of sets are private."
        ),
    ] = None
    kernel: Annotated[
        str | None, _about("Your own kernel instead of a statistic, as kernels.py:mine.")
    ] = None
    estimator: Annotated[
        str | None,
        _about("What is computed from the kernel's sums, such as ratio. The default is mean."),
    ] = None
    sampling: Annotated[
        str | None,
        _about(
            "How E is taken from all sets: balanced, where every record is in equally many; "
            "uniform or bernoulli, which draw without regard to that, for protocol u-mpc; or "
            "two_sample for a kernel over two classes, and one field is then a public label."
        ),
    ] = None
    split: Annotated[
        list[Number],
        _about(
            'Parts of epsilon, one for each sum, such as ["1/2", "1/4", "1/4"]. The default is '
            "equal parts. With `statistics` or `strata` there is one for each statistic."
        ),
    ] = []
    variance: Annotated[
        str | None,
        _about(
            "The variance for a population's interval: largest, the largest possible, at no cost; "
            "or private, which a second sum estimates with a part of epsilon. private is for means "
            "over pairs with protocol u-mpc. The default is largest."
        ),
    ] = None
    variance_share: Annotated[
        Number | None, _about("With variance private: its part of epsilon. The default is 1/5.")
    ] = None
    adversary: Annotated[
        str,
        _about(
            "The grade of the promise: honest, where everybody follows the protocol, or "
            "lying_nodes, where the coordinator and max_colluding nodes may send anything. The "
            "default is honest."
        ),
    ] = HONEST
    max_colluding: Annotated[
        int | None,
        _about(
            "The number of nodes that may collude. The default is all but one. With fewer there "
            "is less noise wherever each node adds its own."
        ),
    ] = None
    where: Annotated[
        str | None,
        _about(
            "A condition on records, such as age >= 40 and sex = 'f'. Each site leaves out the "
            "records for which it does not hold, and discloses how many are left."
        ),
    ] = None
    person: Annotated[
        str | None,
        _about(
            "The column that tells people apart. Then all records of one person at a site are "
            "protected together, with records_per_person times the noise."
        ),
    ] = None
    records_per_person: Annotated[
        int | None,
        _about("The most records of one person that count at a site, the first ones. With person."),
    ] = None
    records: Annotated[
        int | None,
        _about(
            'About how many records all sites have together. Only backend = "auto" asks; the '
            "default is 10000."
        ),
    ] = None
    seconds_per_step: Annotated[
        int, _about("Seconds until a step that has not ended stops the study. The default is 600.")
    ] = 600


def describe_keys() -> dict[str, str]:
    """The keys that every study has, each with its description."""
    found = {}
    for field in msgspec.structs.fields(_StudyFile):
        described = [part for part in get_args(field.type) if isinstance(part, msgspec.Meta)]
        found[field.name] = described[0].description or ""
    return found


@dataclass(frozen=True)
class StudyFile:
    """The content of study.toml, without the coordinator's name, which is in its certificate.

    settings: the entries of the study's protocol, as the file has them.
    chosen: the reason why it is this protocol, where the file left it open; else empty.
    traced: the kernel, where the caller has traced a function of its own; else None.
    """

    path: Path
    identity: Path
    entries: _StudyFile
    protocol: StudyProtocol
    settings: Mapping[str, Any]
    chosen: str = ""
    traced: TracedKernel | None = None

    def study(self, coordinator: str) -> Study:
        """The study document, checked. Raises: StudyError and its kinds."""
        entries = self.entries
        nodes = tuple(entries.nodes)
        colluding = entries.max_colluding
        if colluding is None:
            colluding = max(len(nodes) - 1, 0)
        fields = tuple(field.text() for field in entries.fields)
        statistic, split = self._statistic(fields), tuple(map(str, entries.split))
        if entries.variance == PRIVATE:
            pair = from_text(statistic["kernels"][0])
            statistic, split = with_variance(statistic, pair, entries.variance_share)
        study = Study(
            name=entries.name,
            **statistic,
            split=split,
            fields=fields,
            epsilon=str(entries.epsilon),
            max_colluding=colluding,
            adversary=entries.adversary,
            settings=self.read_settings(),
            coordinator=coordinator,
            nodes=nodes,
            seconds_per_step=entries.seconds_per_step,
        )
        if entries.where is not None:
            condition = parse_condition(entries.where, study.schema)
            study = study.replaced(where=condition.text)
        if entries.person is not None and entries.records_per_person is not None:
            study = study.replaced(person=Person(entries.person, entries.records_per_person))
        return checked(self.protocol.complete(study))

    def read_settings(self) -> Settings:
        """The settings of the study's protocol. Raises: StudyError naming file and key."""
        nodes = len(self.entries.nodes)
        epsilon = str(self.entries.epsilon)
        try:
            settings = self.protocol.usual_of_grade(self.settings, self.entries.adversary)
            return self.protocol.read_settings(settings, nodes, epsilon)
        except StudyError as error:
            raise StudyError(f"{self.path}: {error.message}") from error

    def turned_to(self, protocol: StudyProtocol, settings: Mapping[str, Any]) -> StudyFile:
        """This file with another protocol or other settings, for the same statistic and nodes."""
        return replace(self, protocol=protocol, settings=settings)

    def sampled_by(self, protocol: StudyProtocol) -> StudyFile:
        """This file with the usual sampling, where the protocol does not take E in its way."""
        if self.entries.sampling in (None, *protocol.samplings):
            return self
        return replace(self, entries=msgspec.structs.replace(self.entries, sampling=None))

    def in_grade(self, adversary: str) -> StudyFile:
        """This file with another grade of promise."""
        entries = msgspec.structs.replace(self.entries, adversary=adversary)
        return replace(self, entries=entries)

    def _statistic(self, fields: Sequence[FieldText]) -> dict[str, Any]:
        """The study's statistic, or its statistics and their strata. Args: fields: the study's."""
        entries = self.entries
        if entries.statistics is None and entries.strata is None:
            own = self._single()
            return {
                "statistic": own.statistic,
                "kernels": tuple(map(to_text, own.expressions)),
                "degree": own.degree,
                "estimator": own.estimator,
                "sampling": own.sampling,
            }
        if entries.statistics is None:
            statistics = [self._single()]
        else:
            statistics = [read_statistic(each) for each in entries.statistics]
            if entries.sampling:
                statistics = [replace(each, sampling=entries.sampling) for each in statistics]
        strata = entries.strata or ""
        return parts_of(statistics, strata, _categories(strata, fields) if strata else ())

    def _single(self) -> NamedStatistic:
        """A statistic of the library, or one's own function, traced here and now."""
        entries = self.entries
        if entries.statistic is not None:
            found = find_statistic(entries.statistic)
            columns = entries.columns or []
            return NamedStatistic(
                found.name,
                tuple(columns),
                found.expressions(columns, entries.parameters),
                found.degree,
                found.estimator,
                entries.sampling or found.sampling,
            )
        place = entries.kernel or ""
        traced = self.traced or load_kernel(place, self.path.parent)
        return NamedStatistic(
            place.rpartition(":")[2],
            (),
            traced.expressions,
            traced.degree,
            entries.estimator or "mean",
            entries.sampling or "balanced",
        )


def _categories(strata: str, fields: Sequence[FieldText]) -> tuple[str, ...]:
    """The categories of the field of strata. Raises: StudyError where it has none."""
    for field in fields:
        if field.name == strata and field.categories:
            return field.categories
    raise StudyError(
        f"strata takes a field of the study with categories, and {strata!r} is none; add it to "
        f"the fields with categories = [...]"
    )


def load_field_entries(path: Path) -> list[FieldEntry]:
    """Read the fields of study.toml, also of one that does not state all of them yet.

    Raises: StudyError naming file and key.
    """
    fields = read_values(path).get("fields", [])
    try:
        return msgspec.convert(fields, type=list[FieldEntry], strict=True)
    except msgspec.ValidationError as error:
        raise StudyError(f"{path}: fields: {error}. Correct the key there") from error


def load_study_file(path: Path) -> StudyFile:
    """Read study.toml. Raises: StudyError naming file and key."""
    return read_study(path, read_values(path))


def read_study(
    path: Path, given: Mapping[str, Any], traced: TracedKernel | None = None
) -> StudyFile:
    """A study from the entries of a study.toml.

    Args: path: of the file, for errors and for relative paths. traced: the kernel, where it is a
        function that the caller has traced; `kernel` is then its name.
    Raises: StudyError naming file and key.
    """
    values = dict(given)
    name = values.pop("protocol", None)
    left_open = is_open(name, values)
    try:
        protocol = chosen_protocol(USUAL if name is None or left_open else name, values)
    except (StudyError, TypeError) as error:
        raise StudyError(f"{path}: {error}. Correct the key `protocol`") from error
    common = {field.name for field in msgspec.structs.fields(_StudyFile)}
    settings = {key: value for key, value in values.items() if key not in common}
    _check_keys(path, settings, protocol, open_keys() if left_open else keys_of(protocol.settings))
    try:
        entries = msgspec.convert(
            {key: value for key, value in values.items() if key in common},
            type=_StudyFile,
            strict=True,
        )
    except msgspec.ValidationError as error:
        raise StudyError(f"{path}: {error}. Correct the key there") from error
    _check_entries(path, entries)
    identity = (path.parent / entries.identity).resolve()
    file = StudyFile(path, identity, entries, protocol, settings, traced=traced)
    if left_open:
        file = _decided(file)
    _ = file.read_settings()
    return file


def _decided(file: StudyFile) -> StudyFile:
    """The file with a definite protocol. Raises: StudyError for a number of records below 1."""
    records = file.entries.records
    if records is not None and records < 1:
        raise StudyError(f"{file.path}: `records` is a whole number from 1 on, got {records}")

    def study_of(protocol: StudyProtocol, settings: Mapping[str, Any]) -> Study:
        return file.turned_to(protocol, settings).study(PLACEHOLDER)

    choice = choose(file.settings, study_of, records)
    return replace(file.turned_to(choice.protocol, choice.settings), chosen=choice.reason)


def read_values(path: Path) -> dict[str, Any]:
    """Raises: StudyError where the file is not TOML."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: a readable study file was expected: {error}") from error
    try:
        values: dict[str, Any] = _as_text(tomllib.loads(text, parse_float=Decimal))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise StudyError(f"{path}: TOML was expected: {error}. Correct the file there") from error
    return values


def _check_keys(
    path: Path, settings: Mapping[str, Any], protocol: StudyProtocol, known: Mapping[str, Any]
) -> None:
    """Raises: StudyError naming a key that neither every study nor this protocol has.

    Args: known: the settings that the file may write.
    """
    for key in settings:
        if key not in known:
            raise StudyError(
                f"{path}: `{key}` is not a key of a study of protocol = {protocol.name!r}, which "
                f"has, beside the keys of every study, {', '.join(known) or 'none'}. Remove it, "
                f"or correct its name"
            )


def _check_entries(path: Path, entries: _StudyFile) -> None:
    """Raises: StudyError naming a key that contradicts another."""
    for number, field in enumerate(entries.fields):
        try:
            field.text()
        except StudyError as error:
            raise StudyError(f"{path}: {error.message} at `fields[{number}]`") from error
    _check_what(path, entries)
    if (entries.person is None) != (entries.records_per_person is None):
        raise StudyError(
            f"{path}: `person` and `records_per_person` go together. Write both, or neither"
        )


def _check_what(path: Path, entries: _StudyFile) -> None:
    """Raises: StudyError where the keys do not say one statistic, one kernel or several."""
    if entries.statistics is not None:
        try:
            check_keys(msgspec.structs.asdict(entries))
        except StudyError as error:
            raise StudyError(f"{path}: {error.message}") from error
        for each in entries.statistics:
            _check_statistic(path, entries, each.statistic)
        return
    if (entries.statistic is None) == (entries.kernel is None):
        raise StudyError(
            f"{path}: one of `statistic` and `kernel` was expected. Name the one you mean"
        )
    if (entries.statistic is None) != (entries.columns is None):
        raise StudyError(
            f"{path}: `columns` goes with `statistic`, and a kernel names its fields itself. "
            f"Correct that"
        )
    if entries.statistic is not None:
        _check_statistic(path, entries, entries.statistic)
    check_variance_keys(path, entries.variance, entries.variance_share, entries.split)
    if entries.kernel is not None and entries.parameters:
        raise StudyError(
            f"{path}: `parameters` go with `statistic`; write numbers into the kernel. Correct that"
        )


def _check_statistic(path: Path, entries: _StudyFile, name: str) -> None:
    """Raises: StudyError naming a key that a statistic of the library does not go with."""
    if entries.estimator:
        raise StudyError(f"{path}: a `statistic` has its own estimator. Remove `estimator`")
    own = find_statistic(name).sampling
    if entries.sampling and entries.sampling not in (own, *(UNBALANCED if own == BALANCED else ())):
        raise StudyError(
            f"{path}: the statistic {name!r} takes pairs of {own} sampling. Remove `sampling`"
        )


def _as_text(value: Any) -> Any:
    """Decimals as the text that was written, so that numbers stay exact."""
    if isinstance(value, dict):
        return {key: _as_text(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_text(inner) for inner in value]
    return str(value) if isinstance(value, Decimal) else value
