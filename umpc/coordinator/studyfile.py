"""study.toml: a study as people write it, checked key by key.

README.md and `umpc study --help` show one. The keys are those of every study, which are in
`studyfile_entries.py`, and the settings of the protocol, which the protocol itself describes.

*Own kernel.* A user's own kernel: a Python file and function, such as `kernels.py:close_in_age`.

    from umpc.ustat.tracing import select

    def close_in_age(a, b):
        near = (a.age - b.age < 5) & (b.age - a.age < 5)
        return select(near, abs(a.balance - b.balance), 0)

Only the coordinator runs the function, once, to trace it. Its number of arguments is the number of
records in an edge. Nodes get the expression that it computed. A function that returns a tuple
computes several sums over the same edges.
"""

from __future__ import annotations

import importlib.util
import re
import tomllib
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from umpc.coordinator.studyfile_entries import (
    PRIVATE,
    FieldEntry,
    NamedStatistic,
    StatisticEntry,
    StudyEntries,
    check_entries,
    datasets_of,
    matrix_of,
    of_library,
    parts_of,
    with_variance,
)
from umpc.counts import COUNTED
from umpc.decoding import convert
from umpc.errors import KernelError, StudyError
from umpc.protocols.base.protocol import StudyProtocol
from umpc.protocols.registry import USUAL, check_new_run, checked, chosen_protocol, is_open
from umpc.study.document import Study
from umpc.study.parts import FieldText, Participant, Person
from umpc.study.rules import advice
from umpc.study.settings import Settings, in_words, keys_of
from umpc.text_file import STUDY, read_text, refuse_other_kind
from umpc.ustat.condition import parse_condition
from umpc.ustat.expression import Expression
from umpc.ustat.pair_quantiles import usual_thresholds
from umpc.ustat.sampling import TWO_SAMPLE
from umpc.ustat.statistics import find_statistic
from umpc.ustat.statistics.statistic import THRESHOLDS
from umpc.ustat.strata import PAIR
from umpc.ustat.text import from_text, to_text
from umpc.ustat.tracing import arity, trace_all

PLACEHOLDER = "coordinator"
"""The coordinator's name where only its certificate has it."""

OF_COUNTS = "counts"
"""The protocol of a file that names none and a statistic of counts."""
AGGREGATORS = "aggregators"
"""The word for nodes where they hold shares of one table."""
COMMON_KEYS = tuple(field.name for field in msgspec.structs.fields(StudyEntries))
TABLE_KEYS = tuple(
    field.name
    for table in (FieldEntry, StatisticEntry, Participant)
    for field in msgspec.structs.fields(table)
)
"""The keys of the tables in the file: fields, statistics, nodes."""


@dataclass(frozen=True)
class StudyFile:
    """The content of study.toml, without the coordinator's name, which is in its certificate.

    settings: the entries of the study's protocol, as the file has them.
    chosen: the reason why it is this protocol, where the file left it open; else empty.
    traced: the kernel, where the caller has traced a function of its own; else None.
    """

    path: Path
    identity: Path
    entries: StudyEntries
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
        fields = tuple(self._as_in_document(field.text()) for field in entries.fields)
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
            settings=self.read_settings(statistic["degree"]),
            coordinator=coordinator,
            nodes=nodes,
            seconds_per_step=entries.seconds_per_step,
        )
        if entries.where is not None:
            condition = parse_condition(entries.where, study.schema)
            study = study.replaced(where=condition.text)
        if entries.person is not None and entries.records_per_person is not None:
            study = study.replaced(person=Person(entries.person, entries.records_per_person))
        if entries.may_miss is not None:
            study = study.replaced(may_miss=entries.may_miss)
            if entries.required:
                study = study.replaced(required=tuple(entries.required))
        if datasets := datasets_of(nodes, entries.dataset):
            study = study.replaced(datasets=datasets)
        return checked(self.protocol.complete(study))

    def _as_in_document(self, field: FieldText) -> FieldText:
        """A field, whose public label has the class that should score higher first.

        In a file it is the second category, as for private labels. The kernel of a document's two
        classes takes its first record from the first one.
        """
        entries = self.entries
        names = [each.statistic for each in entries.statistics or ()]
        names += [entries.statistic] if entries.statistic else []
        is_two_sample = any(find_statistic(name).sampling == TWO_SAMPLE for name in names)
        if not (field.public and is_two_sample):
            return field
        return FieldText.of_categories(field.name, reversed(field.categories), public=True)

    def new_study(self, coordinator: str) -> Study:
        """`study` for a run that has no result yet. Raises: as `study` and `check_new_run`."""
        study = self.study(coordinator)
        check_new_run(study)
        return study

    def read_settings(self, degree: int) -> Settings:
        """The settings of the study's protocol. Args: degree: the records of a set.

        Raises: StudyError naming file and key.
        """
        nodes = len(self.entries.nodes)
        epsilon = str(self.entries.epsilon)
        try:
            settings = self.protocol.usual_of_grade(self.settings, self.entries.adversary)
            settings = self.protocol.usual_of_degree(settings, degree)
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
        is_matrix = self.settings.get("matrix") is True
        if is_matrix:
            statistics = matrix_of(entries.statistic or "", entries.columns or [])
        elif entries.statistics is None:
            statistics = [self._single(fields)]
        else:
            statistics = [
                of_library(each.statistic, each.columns, each.parameters, entries.sampling)
                for each in entries.statistics
            ]
        if entries.weight is not None:
            statistics = [each.weighted(entries.weight, fields) for each in statistics]
        if entries.statistics is None and entries.strata is None and not is_matrix:
            (own,) = statistics
            return {
                "statistic": own.statistic,
                "kernels": tuple(map(to_text, own.expressions)),
                "degree": own.degree,
                "estimator": own.estimator,
                "sampling": own.sampling,
            }
        strata = entries.strata or ""
        return parts_of(statistics, strata, _categories(strata, fields) if strata else ())

    def _single(self, fields: Sequence[FieldText]) -> NamedStatistic:
        """A statistic of the library, the protocol's own, or a function, traced here and now."""
        entries = self.entries
        if entries.statistic is not None:
            columns, parameters = entries.columns or [], entries.parameters
            if THRESHOLDS in find_statistic(entries.statistic).parameters and not parameters:
                known = {field.name: field.text().schema() for field in entries.fields}
                found = [known[name] for name in columns if name in known]
                parameters = {THRESHOLDS.name: [*usual_thresholds(entries.statistic, found)]}
            return of_library(entries.statistic, columns, parameters, entries.sampling)
        place = entries.kernel or ""
        if own := self.protocol.own_sums(self.settings, fields):
            sampling = entries.sampling or "balanced"
            return NamedStatistic(place, (), (from_text(own[0]),), 1, own[1], sampling)
        named_protocol(self.protocol.name, place)
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
        return convert(fields, list[FieldEntry])
    except msgspec.ValidationError as error:
        raise StudyError(f"{path}: fields: {in_words(error)}. Correct the key there") from error


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
    try:
        name = named_protocol(name, values.get("statistic"))
        left_open = is_open(name, values)
        protocol = chosen_protocol(USUAL if name is None or left_open else name, values)
    except (StudyError, TypeError) as error:
        raise StudyError(f"{path}: {error}. Correct the key `protocol`") from error
    if AGGREGATORS in values and protocol.settings().shares_tables:
        if "nodes" in values:
            raise StudyError(f"{path}: aggregators are nodes. Write [[aggregators]] only")
        values["nodes"] = values.pop(AGGREGATORS)
    common = set(COMMON_KEYS)
    settings: Mapping[str, Any] = {key: value for key, value in values.items() if key not in common}
    known = keys_of(protocol.settings)
    if left_open:
        from umpc.protocols.auto import open_keys  # it loads the grid

        known = open_keys()
    _check_keys(path, settings, protocol, known)
    values = dict(protocol.complete_entries(values))
    settings = {key: value for key, value in values.items() if key not in common}
    settings = protocol.read_lists(settings, lambda name: _list_of_keys(path.parent / name))
    try:
        own = {key: value for key, value in values.items() if key in common}
        entries = convert(own, StudyEntries)
    except msgspec.ValidationError as error:
        raise StudyError(
            f"{path}: {in_words(error)}.{_advice(path, error)} Correct the key there"
        ) from error
    try:
        check_entries(entries)
    except KernelError:
        raise
    except StudyError as error:
        raise StudyError(f"{path}: {error.message}") from error
    identity = (path.parent / entries.identity).resolve()
    file = StudyFile(path, identity, entries, protocol, settings, traced=traced)
    if left_open:
        file = _decided(file)
    _ = file.read_settings(PAIR)  # the same keys for each degree
    return file


def named_protocol(name: str | None, statistic: object) -> str | None:
    """The protocol that a study names, or that its statistic has for itself; else None.

    Raises: StudyError for another protocol than that of the statistic.
    """
    if not (isinstance(statistic, str) and statistic in COUNTED):
        return name
    if name not in (None, OF_COUNTS):
        raise StudyError(
            f"{statistic} is read off a table of counts, and protocol = {name!r} has none; leave "
            f"protocol out"
        )
    return OF_COUNTS


def _list_of_keys(path: Path) -> tuple[str, int]:
    """The digest of a list of keys, and its length. Raises: StudyError naming the line."""
    from umpc.people.places import keys_digest, read_keys

    return keys_digest(read_keys(path))


def _decided(file: StudyFile) -> StudyFile:
    """The file with a definite protocol. Raises: StudyError for a number of records below 1."""
    records = file.entries.records
    if records is not None and records < 1:
        raise StudyError(f"{file.path}: `records` is a whole number from 1 on, got {records}")

    def study_of(protocol: StudyProtocol, settings: Mapping[str, Any]) -> Study:
        return file.turned_to(protocol, settings).study(PLACEHOLDER)

    from umpc.protocols.auto import choose

    choice = choose(file.settings, study_of, records)
    return replace(file.turned_to(choice.protocol, choice.settings), chosen=choice.reason)


def read_values(path: Path, kind: str = STUDY) -> dict[str, Any]:
    """Return the keys of a TOML file, with numbers as they are written.

    Args: kind: the kind of file that is expected, one of `umpc.text_file`.
    Raises: StudyError for a file that cannot be read, is not TOML, or is of another kind.
    """
    text = read_text(path, kind, StudyError)
    try:
        values: dict[str, Any] = _as_text(tomllib.loads(text, parse_float=Decimal))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise StudyError(
            f"{path}: {kind} was expected, in TOML: {error}. Correct the file there, or the path"
        ) from error
    refuse_other_kind(path, values, kind, StudyError)
    return values


def _check_keys(
    path: Path, settings: Mapping[str, Any], protocol: StudyProtocol, known: Mapping[str, Any]
) -> None:
    """Raises: StudyError naming a key that neither every study nor this protocol has.

    Args: known: the settings that the file may write.
    """
    for key in settings:
        if key not in known:
            more = advice(_text(path), key, (*known, *COMMON_KEYS))
            raise StudyError(
                f"{path}: `{key}` is not a key of a study of protocol = {protocol.name!r}, which "
                f"has, beside the keys of every study, {', '.join(known) or 'none'}. Remove it, "
                f"or correct its name{more and '.'}{more}"
            )


def _advice(path: Path, error: msgspec.ValidationError) -> str:
    """The line of an unknown key of a table in the file, and the nearest known one."""
    found = re.search(r"unknown field `([^`]+)`", str(error))
    return advice(_text(path), found[1], TABLE_KEYS) if found else ""


def _text(path: Path) -> str:
    """The file's text; nothing for a study that is no file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _as_text(value: Any) -> Any:
    """Decimals as the text that was written, so that numbers stay exact."""
    if isinstance(value, dict):
        return {key: _as_text(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_text(inner) for inner in value]
    return str(value) if isinstance(value, Decimal) else value


# --- own kernel -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TracedKernel:
    """The sums that a function computes. `degree` is the number of records in an edge."""

    expressions: tuple[Expression, ...]
    degree: int


def load_kernel(place: str, folder: Path) -> TracedKernel:
    """Return the expressions of "FILE:FUNCTION", where FILE is relative to a folder.

    Raises: KernelError, which names file and line, what is wrong there, and what to write instead.
    """
    name, _, function = place.rpartition(":")
    path = folder / name
    if not name or not function.isidentifier():
        raise KernelError(
            f"a kernel is named FILE:FUNCTION, such as kernels.py:mine; got {place!r}"
        )
    kernel = getattr(_module(path), function, None)
    if not callable(kernel):
        raise KernelError(f"{path}: there is no function {function!r}; correct the study's kernel")
    return TracedKernel(trace_all(kernel), arity(kernel))


def _module(path: Path) -> object:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise KernelError(
            f"{path}: a Python file was expected, and there is none; correct the study's kernel"
        )
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's own code may raise anything
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, KernelError):
            reason = error.message
        raise KernelError(
            f"{path}: the file could not be run: {reason}{_where(error, path)}"
        ) from error
    return module


def _where(error: BaseException, path: Path) -> str:
    """Return the last line of the user's file that led to an error, as " (FILE, line N)"."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f" ({path.name}, line {error.lineno})"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    return f" ({path.name}, line {lines[-1]})" if lines else ""
