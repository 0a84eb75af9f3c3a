"""The same statistic by every protocol: what each would miss, cost and ask to be trusted, and which to take.

A study file is turned to each protocol in turn, with that protocol's defaults for all that the file says of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt

import msgspec

from umpc.coordinator.studyfile import DEFAULTS, StudyFile
from umpc.errors import UmpcError
from umpc.mpc.attempt import Attempt
from umpc.mpc.cost import Cost
from umpc.planning.error import (
    PredictedError,
    ReferenceTable,
    edges_for_error,
    edges_for_noise,
    error_of_curator,
    error_of_sums,
)
from umpc.planning.prediction import attempt_over, cost_of
from umpc.planning.seconds import (
    Machine,
    Network,
    Seconds,
    measure_machine,
    predict_local_seconds,
    predict_seconds,
)
from umpc.protocols.central.messages import OfCurator
from umpc.protocols.central.settings import MECHANISMS
from umpc.protocols.gopa.settings import GOPA
from umpc.protocols.kinds import PAIR_NOISES, PROTOCOLS
from umpc.protocols.local.messages import one_message_of
from umpc.protocols.local.settings import OF_CELLS, SHUFFLED
from umpc.protocols.u_mpc.noise_binding import delta_of
from umpc.study.document import Study
from umpc.study.parts import Participant

TRUST = ("nobody", "helpers", "curator")
"""In ascending order: nobody beside the sites; processes without data that collude with nobody; one that sees all."""
ASSUMED = {
    "nobody": "-",
    "dealer": "the dealer",
    "shufflers": "both shufflers",
    "curator": "a curator",
}
USUAL_DELTA = "1e-9"
NOISES = {"bell-2pc": PAIR_NOISES, "central": MECHANISMS}
"""Of protocols with several kinds of noise, each a protocol of its own to whoever chooses."""


@dataclass(frozen=True)
class Alternative:
    """label: the protocol, and what it runs with. trust: one of TRUST; assumed: the same in words."""

    label: str
    study: Study
    edges: int
    error: PredictedError
    delta: float
    cost: Cost
    seconds: Seconds
    trust: str
    assumed: str

    def to_dict(self) -> dict:
        error = asdict(self.error) | {"mse": self.error.mse}
        costs = {
            name: getattr(self.cost, name) for name in ("rounds", "bytes_online", "bytes_offline")
        }
        facts = {
            "protocol": self.label,
            "edges": self.edges,
            "delta": self.delta,
            "trust": self.trust,
        }
        return {**facts, **error, **costs, "seconds": self.seconds.total}

    @property
    def megabytes(self) -> float:
        return (self.cost.bytes_online + self.cost.bytes_offline) / 1e6


@dataclass(frozen=True)
class Impossible:
    label: str
    reason: str


@dataclass(frozen=True)
class Targets:
    """error: root mean squared, at most. trust: as TRUST, at most that. None: any."""

    error: float | None = None
    megabytes: float | None = None
    seconds: float | None = None
    trust: str = "helpers"

    def met_by(self, of: Alternative) -> bool:
        limits = (
            (self.error, sqrt(of.error.mse)),
            (self.megabytes, of.megabytes),
            (self.seconds, of.seconds.total),
            (TRUST.index(self.trust), TRUST.index(of.trust)),
        )
        return all(most is None or came <= most for most, came in limits)


def recommended(alternatives: Sequence[Alternative], targets: Targets) -> Alternative | None:
    """Of those that meet the targets: with the least error, or the fewest bytes if there is a target for the error."""
    meeting = [each for each in alternatives if targets.met_by(each)]
    if targets.error is not None:
        return min(meeting, key=lambda each: (each.megabytes, each.error.mse), default=None)
    return min(meeting, key=lambda each: (each.error.mse, each.megabytes), default=None)


def alternatives(
    file: StudyFile,
    records: str,
    like: ReferenceTable,
    network: Network,
    error: float | None,
    tell: Callable[[str], None],
) -> Iterator[Alternative | Impossible]:
    """One after the other, each with its prediction; a few seconds each.

    Args:
        records: of each node, as `umpc plan` takes them. error: a root mean squared error that is asked for.
        tell: called with the label of what is looked at.
    """
    machines: dict[tuple, Machine] = {}
    for label, make in _candidates(file, records, like, error):
        tell(label)
        try:
            study = make()
            yield _predicted(label, study, attempt_over(study, records), like, network, machines)
        except UmpcError as reason:
            yield Impossible(label, reason.message)


def _candidates(
    file: StudyFile, records: str, like: ReferenceTable, error: float | None
) -> Iterator[tuple[str, Callable[[], Study]]]:
    """Labels, and how each study is made, which may be refused."""
    yield "u-mpc", lambda: turned(file, "u-mpc")
    yield "u-mpc, sampling = noise", lambda: _with_edges(turned(file, "u-mpc"), records, like, None)
    if error is not None:
        yield (
            "u-mpc, as asked for",
            lambda: _with_edges(turned(file, "u-mpc"), records, like, error),
        )
    yield "u-mpc, no dealer", lambda: turned(file, "u-mpc", backend="garbled", preprocessing="none")
    for protocol in PROTOCOLS[1:]:
        for noise in NOISES.get(protocol, (None,)):
            label = f"{protocol}, {noise}" if noise else protocol
            yield label, lambda protocol=protocol, noise=noise: turned(file, protocol, noise=noise)


def turned(file: StudyFile, protocol: str, **changes) -> Study:
    """The file's study by another protocol, or by its own; what goes with the file's own only is left out.

    Raises: StudyError where it cannot be.
    """
    entries, usual = file.entries, DEFAULTS[protocol]
    facts: dict = {"protocol": protocol, **changes}
    if protocol != entries.protocol or changes:
        facts = {
            "noise": None,
            "backend": None,
            "preprocessing": None,
            "edges": None,
            "levels": None,
            **facts,
        }
        facts["delta"] = USUAL_DELTA if protocol == GOPA else ""
        if {protocol, entries.protocol} == {"u-mpc"}:
            facts["edges"] = changes.get("edges", entries.edges)
    if protocol not in OF_CELLS:
        facts |= {"bins": {}, "rounding": "simple"}
    needs_dealer = (facts.get("preprocessing") or usual.preprocessing) == "dealer"
    shufflers = entries.shufflers or [
        Participant(name, "") for name in ("shuffler-1", "shuffler-2")
    ]
    facts["shufflers"] = shufflers if protocol in SHUFFLED else []
    facts["dealer"] = (entries.dealer or Participant("dealer", "")) if needs_dealer else None
    return replace(file, entries=msgspec.structs.replace(entries, **facts)).study("coordinator")


def _with_edges(study: Study, records: str, like: ReferenceTable, error: float | None) -> Study:
    """With as many edges as make sampling no larger than noise, or the error no larger than asked for."""
    sizes = attempt_over(study, records).sizes
    edges = edges_for_noise(sizes, like) if error is None else edges_for_error(sizes, like, error)
    if edges is None:
        raise UmpcError(
            f"no number of edges gives an error of {error:g}: the noise alone is larger"
        )
    return msgspec.structs.replace(
        study, edges="all" if edges >= sizes.sets else str(edges)
    ).check()


def _predicted(
    label: str,
    study: Study,
    attempt: Attempt,
    like: ReferenceTable,
    network: Network,
    machines: dict[tuple, Machine],
) -> Alternative:
    cost, error = cost_of(attempt), error_of(attempt, like)
    seconds, (trust, assumed) = seconds_of(attempt, cost, like, network, machines), trust_of(study)
    sets = (
        OfCurator(study).choice(like.records).sets(like.records)
        if study.central
        else attempt.sizes.edges
    )
    return Alternative(
        label, study, sets, error, float(delta_of(attempt.sizes)), cost, seconds, trust, assumed
    )


def error_of(attempt: Attempt, like: ReferenceTable) -> PredictedError:
    """Raises: StudyError where it cannot be told."""
    if not attempt.study.one_message:
        return error_of_sums(attempt.sizes, like)
    if attempt.study.central:
        return error_of_curator(attempt.sizes, like)
    if not attempt.study.in_cells:
        return PredictedError(one_message_of(attempt.study).predicted_std(like.columns, like.first))
    protocol, small = (
        one_message_of(attempt.study, [member.classes for member in attempt.members]),
        like.small,
    )
    bias = protocol.quantised(small.columns, small.first) - small.statistic
    return PredictedError(protocol.predicted_std(like.columns, like.first), bins=bias)


def seconds_of(
    attempt: Attempt,
    cost: Cost,
    like: ReferenceTable,
    network: Network,
    machines: dict[tuple, Machine],
) -> Seconds:
    """machines: what trials said before, by kind of study."""
    study = attempt.study
    if study.one_message:
        return predict_local_seconds(attempt, cost, like.columns, network)
    key = (study.backend, study.protocol, study.noise if study.noise_of_pairs else "")
    if key not in machines:
        machines[key] = measure_machine(study)
    return predict_seconds(attempt, cost, machines[key], network)


def trust_of(study: Study) -> tuple[str, str]:
    """What of TRUST a study asks for, and in words."""
    if study.central:
        return "curator", ASSUMED["curator"]
    if study.dealer:
        return "helpers", ASSUMED["dealer"]
    if study.shuffled:
        return "helpers", ASSUMED["shufflers"]
    return "nobody", ASSUMED["nobody"]
