"""One statistic by every protocol: the error, the cost, the trust that is needed, and the best one.

A study file is turned to each protocol in turn. Where the file has settings of another protocol,
the usual settings of this one take their place.

*Cores.* Independent pieces of planning on all cores of this machine.

A study's settings that trade one error for another, tuned for a table like the sites' own.

The protocol says which settings those are: the number of bins, levels or pairings. The table is
public, or older than the sites' data, so that the settings tell nothing about their records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

from umpc.coordinator.studyfile import StudyFile
from umpc.errors import StudyError, UmpcError
from umpc.planning.prediction import attempt_over
from umpc.planning.reference_table import ConstantAnswer, PredictedError, ReferenceTable
from umpc.planning.seconds import Machines, Network, Seconds, seconds_of
from umpc.protocols.base.promise import GRADES
from umpc.protocols.base.protocol import Line, StudyProtocol, Variant
from umpc.protocols.registry import PROTOCOLS, checked, delta_of, protocol_of
from umpc.study.attempt import Attempt
from umpc.study.cost import Cost
from umpc.study.document import Study
from umpc.study.settings import keys_of


@dataclass(frozen=True)
class Tuned:
    """A study with its best settings.

    Args:
        changed: the settings that are not those of the given study, as a study file has them.
        error, before: the predicted errors of the tuned study and of the given one.
        constant: the best answer without any record; None where the table does not tell.
        notes: what else the protocol says of its choices: a label, and a text.
    """

    study: Study
    changed: Mapping[str, Any]
    error: PredictedError
    before: PredictedError
    constant: ConstantAnswer | None = None
    notes: tuple[Line, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The object under `tuned` that `umpc plan --tune --format json` prints."""
        return {
            "settings": dict(self.changed),
            "mse": self.error.mse,
            "mse_now": self.before.mse,
            "beats_constant": self.beats_constant,
        }

    @property
    def beats_constant(self) -> bool | None:
        """Whether the tuned study tells more than the best constant; None where it is not known."""
        return None if self.constant is None else sqrt(self.error.mse) < self.constant.error

    def in_words(self) -> str:
        """The line that `umpc plan --tune` prints."""
        now = f"error {sqrt(self.before.mse):.3g}"
        keys = ", ".join(f"{key} = {_written(value)}" for key, value in self.changed.items())
        found = f"{keys}; error {sqrt(self.error.mse):.3g} instead of {sqrt(self.before.mse):.3g}"
        if not self.changed:
            found = f"the study's own settings are the best that were tried; {now}"
        if self.constant is None:
            return found
        beside = f"the constant {self.constant.value:.4g} has error {self.constant.error:.3g}"
        if self.beats_constant:
            return f"{found}; {beside}"
        return f"no setting here beats answering with a constant: {found}, and {beside}"


def tune(attempt: Attempt, table: ReferenceTable) -> Tuned:
    """The best settings of a study over so many records.

    Raises: StudyError where the protocol has nothing to tune, errors cannot be told, or no setting
    that was tried lets the estimate depend on the records.
    """
    study = attempt.study
    protocol = protocol_of(study)
    found = protocol.tuned(attempt, table)
    if found is None:
        raise StudyError(
            f"protocol = {study.protocol!r} has no setting that trades one error for another; "
            "leave --tune out, or take a protocol of bins or pairings"
        )
    other = attempt.with_study(checked(found))
    protocol.check_new_run(found)
    return Tuned(
        found,
        _changed(study, found),
        protocol.error(other, table),
        protocol.error(attempt, table),
        table.constant,
        tuple(protocol.describe_tuned(attempt, table)),
    )


def _changed(study: Study, found: Study) -> dict[str, Any]:
    """The settings of `found` that differ, as a study file has them."""
    changed = {}
    for key in keys_of(type(study.settings)):
        value = getattr(found.settings, key)
        if value != getattr(study.settings, key):
            changed[key] = value
    if "bins" in changed:
        changed["bins"] = {each.field: each.count or list(each.cuts) for each in changed["bins"]}
    return changed


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {each}" for key, each in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else str(value)


# --- other protocols ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alternative:
    """A planned study.

    label: the protocol and its variant. edges: the number of sets that the estimate averages over.
    trust: one of GRADES. assumed: the trusted parties in words.
    """

    label: str
    study: Study
    edges: int
    error: PredictedError
    delta: float
    cost: Cost
    seconds: Seconds
    trust: str
    assumed: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "protocol": self.label,
            "edges": self.edges,
            "delta": self.delta,
            "trust": self.trust,
            **asdict(self.error),
            "mse": self.error.mse,
            "rounds": self.cost.rounds,
            "bytes_online": self.cost.bytes_online,
            "bytes_offline": self.cost.bytes_offline,
            "seconds": self.seconds.total,
        }

    @property
    def megabytes(self) -> float:
        return (self.cost.bytes_online + self.cost.bytes_offline) / 1e6


@dataclass(frozen=True)
class Impossible:
    """A protocol that cannot run the study, and why."""

    label: str
    reason: str


@dataclass(frozen=True)
class Targets:
    """The most that a user accepts; None accepts anything.

    error: root mean squared. trust: one of GRADES. constant: the error of the best answer without
    any record, which a setting has to beat.
    """

    error: float | None = None
    trust: str = "helpers"
    constant: float | None = None

    def met_by(self, alternative: Alternative) -> bool:
        """Whether the alternative is within all limits."""
        is_trusted = GRADES.index(alternative.trust) <= GRADES.index(self.trust)
        return is_trusted and (self.error is None or sqrt(alternative.error.mse) <= self.error)

    def beats_constant(self, alternative: Alternative) -> bool:
        """Whether the alternative tells more than the best answer without any record."""
        return self.constant is None or sqrt(alternative.error.mse) < self.constant


def recommended(alternatives: Sequence[Alternative], targets: Targets) -> Alternative | None:
    """The best alternative that meets the targets.

    It has the least error; or the fewest bytes, if there is a target for the error. None where none
    meets them and has a smaller error than the best constant.
    """
    meeting = [
        each for each in alternatives if targets.met_by(each) and targets.beats_constant(each)
    ]
    if targets.error is not None:
        return min(meeting, key=lambda each: (each.megabytes, each.error.mse), default=None)
    return min(meeting, key=lambda each: (each.error.mse, each.megabytes), default=None)


def alternatives(
    file: StudyFile,
    records: str,
    table: ReferenceTable,
    network: Network,
    error: float | None,
    tell: Callable[[str], None],
    machines: Machines | None = None,
) -> Iterator[Alternative | Impossible]:
    """Plan the study by each variant of each protocol.

    Args:
        records: each node's number of records, as `umpc plan` takes them.
        table: a table like the sites' own.
        error: the root mean squared error that is asked for.
        tell: called with each label, before that alternative is planned.
        machines: the results of earlier trials, by kind of study.
    """
    machines = {} if machines is None else machines
    for protocol in PROTOCOLS.values():
        for variant in protocol.variants(error):
            tell(variant.label)
            try:
                study = _study_of(file, protocol, variant, records, table)
                attempt = attempt_over(study, records)
                yield _predicted(variant.label, attempt, table, network, machines)
            except UmpcError as reason:
                yield Impossible(variant.label, reason.message)


def _study_of(
    file: StudyFile, protocol: StudyProtocol, variant: Variant, records: str, table: ReferenceTable
) -> Study:
    """The study of one variant. Raises: UmpcError where it cannot be."""
    study = turned(file, protocol, variant)
    if variant.is_tuned:
        return tune(attempt_over(study, records), table).study
    if variant.edges is None:
        return study
    sizes = attempt_over(study, records).sizes
    edges = variant.edges(sizes, table)
    if edges is None:
        raise UmpcError("no number of edges gives this error: the noise alone is larger")
    return checked(study.replaced(edges="all" if edges >= sizes.sets else str(edges)))


def turned(file: StudyFile, protocol: StudyProtocol, variant: Variant) -> Study:
    """The file's study by a variant of a protocol. Raises: StudyError where it cannot be.

    The file's own protocol keeps all of the file's settings, unless the variant changes some.
    """
    own = protocol is file.protocol
    if own and not variant.entries:
        return file.study("coordinator")
    settings = {**protocol.carried(file.settings, own=own), **variant.entries}
    if settings.get("preprocessing") == "none":
        settings.pop("dealer", None)
    return file.sampled_by(protocol).turned_to(protocol, settings).study("coordinator")


def _predicted(
    label: str,
    attempt: Attempt,
    table: ReferenceTable,
    network: Network,
    machines: Machines,
) -> Alternative:
    study = attempt.study
    protocol = protocol_of(study)
    protocol.check_new_run(study)
    cost = protocol.cost(attempt)
    trust = protocol.trust(study)
    return Alternative(
        label=label,
        study=study,
        edges=protocol.sets_used(attempt),
        error=protocol.error(attempt, table),
        delta=float(delta_of(attempt.sizes)),
        cost=cost,
        seconds=seconds_of(attempt, cost, table, network, machines),
        trust=trust.grade,
        assumed=trust.who,
    )
