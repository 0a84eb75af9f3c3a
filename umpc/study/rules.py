"""What every study must fulfil, as far as it can be said without data."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from umpc.errors import DuplicateParticipant, InvalidEpsilon, StudyError
from umpc.protocols.central.settings import check_central
from umpc.protocols.gopa.settings import check_gopa
from umpc.protocols.kinds import BACKENDS, NOISES, OF_OTHERS, PAIR_NOISES, PREPROCESSINGS, PROTOCOLS
from umpc.protocols.local.settings import check_local
from umpc.ustat.estimators import ESTIMATORS
from umpc.ustat.sampling import read_rule

if TYPE_CHECKING:
    from umpc.study.document import Study

MAX_DEGREE = 8
MAX_SUMS = 16
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def check_rules(study: Study) -> None:
    """Raises: StudyError and its kinds."""
    _check_participants(study)
    if study.exact_epsilon <= 0:
        raise InvalidEpsilon(f"epsilon must be positive, got {study.epsilon}; a usual value is 1")
    if not 0 <= study.max_colluding < len(study.nodes):
        raise StudyError(
            f"max_colluding must be between 0 and {len(study.nodes) - 1} for {len(study.nodes)} nodes, "
            f"got {study.max_colluding}"
        )
    _check_statistic(study)
    _check_protocol(study)
    check_local(study)
    check_gopa(study)
    if study.central:
        check_central(study)
    if not study.one_message:
        _check_noise(study)
        _check_backend(study)
    if len({field.name for field in study.fields}) != len(study.fields):
        raise StudyError(
            f"a field is named twice: {', '.join(field.name for field in study.fields)}"
        )
    if not 1 <= study.seconds_per_step <= 86_400:
        raise StudyError(
            f"seconds_per_step must be between 1 and 86400, got {study.seconds_per_step}"
        )
    read_rule(study.edges)
    _ = study.epsilons, study.parsed_kernels


def _check_protocol(study: Study) -> None:
    if study.protocol not in PROTOCOLS:
        raise StudyError(f"protocol must be one of {', '.join(PROTOCOLS)}, got {study.protocol!r}")
    if study.noise_of_pairs and (study.backend, study.degree) != ("garbled", 2):
        raise StudyError(
            f'protocol = "bell-2pc" is of pairs, by backend = "garbled"; got degree {study.degree} and '
            f"{study.backend!r}"
        )


def _check_noise(study: Study) -> None:
    others = [noise for noise in NOISES if noise not in (*PAIR_NOISES, *OF_OTHERS)]
    noises = PAIR_NOISES if study.noise_of_pairs else others
    if study.noise not in noises:
        raise StudyError(
            f'noise of "{study.protocol}" must be one of {", ".join(noises)}, got {study.noise!r}'
        )
    if study.committee_draws and len(study.nodes) < 2:
        raise StudyError(
            f'noise = "{study.noise}" takes at least two nodes; a single one draws it: "distributed"'
        )
    if (study.noise in ("skellam", "binomial")) != bool(study.delta) and not study.noise_of_pairs:
        raise StudyError(
            f'delta goes with noise = "skellam" or "binomial"; got {study.delta!r} with {study.noise!r}'
        )
    if study.delta and not 0 < study.exact_delta < 1:
        raise StudyError(f"delta must be between 0 and 1, got {study.delta}; a usual value is 1e-9")


def _check_backend(study: Study) -> None:
    backends = [backend for backend in BACKENDS if backend != "none"]
    if study.backend not in backends:
        raise StudyError(f"backend must be one of {', '.join(backends)}, got {study.backend!r}")
    if study.preprocessing not in PREPROCESSINGS:
        raise StudyError(
            f"preprocessing must be one of {', '.join(PREPROCESSINGS)}, got {study.preprocessing!r}"
        )
    if (study.backend == "garbled") != (study.preprocessing == "none"):
        raise StudyError(
            f'backend = "garbled" and preprocessing = "none" go together: garbled edges take nothing from a '
            f"dealer, shared ones cannot do without; got {study.backend!r} with {study.preprocessing!r}"
        )
    if study.preprocessing == "dealer":
        if study.dealer is None:
            raise StudyError('the study names no dealer; name one, or say preprocessing = "none"')
        return
    if study.dealer is not None:
        raise StudyError(f'preprocessing = "none" has no dealer; leave {study.dealer.name!r} out')
    if study.degree > 2:
        raise StudyError(
            f"without a dealer an edge has one or two owners, and a statistic over {study.degree} records can have "
            f'edges of three and more; take preprocessing = "dealer"'
        )


def _check_statistic(study: Study) -> None:
    if not 1 <= study.degree <= MAX_DEGREE:
        raise StudyError(
            f"a statistic is over 1 to {MAX_DEGREE} records, got degree {study.degree}"
        )
    if not 1 <= len(study.kernels) <= MAX_SUMS:
        raise StudyError(f"a study releases 1 to {MAX_SUMS} sums, got {len(study.kernels)} kernels")
    if study.estimator not in ESTIMATORS:
        raise StudyError(
            f"estimator must be one of {', '.join(sorted(ESTIMATORS))}, got {study.estimator!r}"
        )
    if ESTIMATORS[study.estimator].sums != len(study.kernels):
        raise StudyError(
            f"the estimator {study.estimator!r} takes {ESTIMATORS[study.estimator].sums} sum(s), "
            f"the study has {len(study.kernels)} kernel(s)"
        )
    if study.sampling not in ("balanced", "two_sample"):
        raise StudyError(f'sampling must be "balanced" or "two_sample", got {study.sampling!r}')
    if study.two_sample:
        _ = study.label
    if study.two_sample and study.degree != 2:
        raise StudyError(f"two_sample sampling is of pairs, got degree {study.degree}")


def _check_participants(study: Study) -> None:
    names = [node.name for node in study.nodes] + [study.coordinator]
    names += [study.dealer.name] if study.dealer else []
    names += [shuffler.name for shuffler in study.shufflers]
    for name in names:
        if not NAME.fullmatch(name):
            raise StudyError(
                f"a participant's name has lower-case letters, digits and inner dashes, got {name!r}"
            )
    counts = Counter(names)
    for name in names:
        if counts[name] > 1:
            raise DuplicateParticipant(
                f"two participants are named {name!r}; give each of its participants a name of its own"
            )
    if not study.nodes:
        raise StudyError("a study needs at least one node, got none")
