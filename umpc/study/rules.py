"""The rules that every study must fulfil, whatever its protocol, as far as they need no data.

*Misspelt.* Suggestions for a misspelt name in a TOML file: the nearest known name, and the line.

*Field rules.* The rules of the library's statistics for their fields, and what a study's classes
mean.

A study document has kernels and no columns. Which field is which argument of a statistic of the
library follows from a comparison of the kernels with the library's own.

Bounds are public, so a refusal discloses nothing. It is for new runs only: a node asks these rules
after it has found that it has not released the study, and a released study answers as before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, permutations

import msgspec

from umpc.errors import (
    DuplicateParticipant,
    InvalidEpsilon,
    KernelError,
    StudyError,
    VersionMismatch,
)
from umpc.protocol_version import PROTOCOL
from umpc.study.document import Study
from umpc.study.parts import LAPLACE, FieldText, StudyPart, sums_of
from umpc.study.settings import ADVERSARIES, HONEST
from umpc.study.sizes import MAX_MEMBERS
from umpc.ustat.estimators import ANY, ESTIMATORS, PAIR_MEDIAN, VECTOR, WITH_VARIANCE
from umpc.ustat.expression import Expression, Rebuild, interpret
from umpc.ustat.pair_quantiles import cuts_of
from umpc.ustat.sampling import BALANCED, SAMPLINGS, UNBALANCED, read_rule
from umpc.ustat.statistics import LIBRARY, Statistic
from umpc.ustat.statistics.statistic import SCORES_HIGHER, THRESHOLDS
from umpc.ustat.strata import (
    TRIPLE,
    WEIGHTED,
    is_inside,
    is_over_triples,
    restricted,
    weighted,
)
from umpc.ustat.text import MAX_DEPTH, to_text

MAX_DEGREE = 8
MAX_SUMS = 16
MAX_CELLS = 130
"""The most cells of a pair median."""
MAX_VECTOR = 4096
"""The most sums of a vector, which are released under one joint sensitivity."""
MOST_OF_PERSON = 1000
MOST_OF_NAME = 200
"""Characters of a data set's name."""
SHOWN = 8
"""Largest number of unused fields that a refusal names."""
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def check_version(version: str) -> None:
    """Raises: VersionMismatch where a study is for another protocol than this process speaks."""
    if version != PROTOCOL:
        raise VersionMismatch(
            f"the study is for protocol {version}, this process speaks protocol {PROTOCOL}; "
            "install versions of umpc with the same protocol"
        )


def check_common(study: Study) -> None:
    """The rules that come before those of the protocol. Raises: StudyError and its kinds."""
    check_version(study.version)
    check_choice("adversary", study.adversary, ADVERSARIES)
    _check_participants(study)
    if study.exact_epsilon <= 0:
        raise InvalidEpsilon(f"epsilon must be positive, got {study.epsilon}; a usual value is 1")
    if not 0 <= study.max_colluding < len(study.nodes):
        raise StudyError(
            f"max_colluding must be between 0 and {len(study.nodes) - 1} for "
            f"{len(study.nodes)} nodes, got {study.max_colluding}"
        )
    _check_statistic(study)


def check_rest(study: Study) -> None:
    """The rules that come after those of the protocol. Raises: StudyError and its kinds."""
    names = [field.name for field in study.fields]
    if len(set(names)) != len(names):
        raise StudyError(f"a field is named twice: {', '.join(names)}")
    if not 1 <= study.seconds_per_step <= 86_400:
        raise StudyError(
            f"seconds_per_step must be between 1 and 86400, got {study.seconds_per_step}"
        )
    if read_rule(study.edges)[1] == "p" and study.sampling in UNBALANCED:
        raise StudyError(
            f'edges = "{study.edges}" pairs all records, and sampling = "{study.sampling}" draws '
            f'edges without regard to records; take edges = "2n", or sampling = "balanced"'
        )
    _check_datasets(study)
    _ = study.epsilons
    _check_fields_are_used(study)


def _check_datasets(study: Study) -> None:
    """Raises: StudyError where the data sets are not one name for each node."""
    named = study.datasets
    if isinstance(named, msgspec.UnsetType):
        return
    if len(named) != len(study.nodes) or not any(named):
        raise StudyError(
            f"datasets was expected to name a data set for each of {len(study.nodes)} nodes, and "
            f"{len(named)} name(s) came; write dataset = NAME, or dataset = {{NODE = NAME}}"
        )
    if wrong := [name for name in named if len(name) > MOST_OF_NAME or not name.isprintable()]:
        raise StudyError(
            f"the name of a data set has at most {MOST_OF_NAME} printable characters, and "
            f"{wrong[0][:MOST_OF_NAME]!r} came; write the name as the site gave it to you"
        )


def check_choice(what: str, value: str, choices: tuple[str, ...]) -> None:
    """Raises: StudyError where a setting is not one of its possible values."""
    if value not in choices:
        raise StudyError(f"{what} must be one of {', '.join(choices)}, got {value!r}")


def check_between_0_and_1(delta: str, study: Study) -> None:
    """Raises: StudyError where a δ is not a probability."""
    if not 0 < study.exact_delta < 1:
        raise StudyError(f"delta must be between 0 and 1, got {delta!r}; a usual value is 1e-9")


def _check_statistic(study: Study) -> None:
    if not 1 <= study.degree <= MAX_DEGREE:
        raise StudyError(
            f"a statistic is over 1 to {MAX_DEGREE} records, got degree {study.degree}"
        )
    is_vector = study.estimator == VECTOR and (study.settings.is_joint or not study.several)
    most = MAX_VECTOR if is_vector else MAX_SUMS
    most = MAX_CELLS if study.estimator == PAIR_MEDIAN else most
    if not 1 <= len(study.kernels) <= most:
        raise StudyError(
            f"a study releases 1 to {most} sums, got {len(study.kernels)} kernels; with protocol = "
            f'"vector" several statistics have up to {MAX_VECTOR} sums together'
        )
    check_choice("estimator", study.estimator, tuple(sorted(ESTIMATORS)))
    if ESTIMATORS[study.estimator].sums not in (ANY, len(study.kernels)):
        raise StudyError(
            f"the estimator {study.estimator!r} takes {ESTIMATORS[study.estimator].sums} sum(s), "
            f"the study has {len(study.kernels)} kernel(s)"
        )
    check_choice("sampling", study.sampling, SAMPLINGS)
    if study.two_sample:
        _ = study.label
    if study.two_sample and study.degree != 2:
        raise StudyError(f"two_sample sampling is of pairs, got degree {study.degree}")


def check_cells(study: Study, *, is_possible: bool) -> None:
    """Refuse a pair median whose kernels are no disjoint cells, which share ε, or other noise.

    Args: is_possible: whether the protocol adds noise for each cell.
    Raises: StudyError, KernelError.
    """
    if study.estimator != PAIR_MEDIAN:
        return
    ends = study.pair_ends
    if not ends or study.split or any(one >= other for one, other in pairwise(ends)):
        raise StudyError(
            f"the estimator {PAIR_MEDIAN!r} takes the kernels of disjoint cells between ascending "
            f"thresholds inside the possible values, and no split; leave thresholds and split out "
            f"of a study of hodges_lehmann, hodges_lehmann_shift or theil_sen, which makes them"
        )
    if not is_possible or study.edge_grade != HONEST or study.settings.noise not in LAPLACE:
        raise StudyError(
            f"the cells of a pair median share epsilon under discrete Laplace noise, where "
            f"everybody follows the protocol or tables are proved; got {study.protocol!r} with "
            f"{study.settings.noise!r} and adversary {study.adversary!r}. Take protocol u-mpc with "
            f'noise {" or ".join(LAPLACE)} and adversary = "{HONEST}"; where nodes may lie, '
            f'backend = "grid" has hodges_lehmann and hodges_lehmann_shift, and nothing theil_sen'
        )


def check_people(study: Study, *, is_possible: bool) -> None:
    """Refuse people where a protocol's noise is for one record, or a column that is a field.

    Args: is_possible: whether the noise follows from `Sizes.sensitivities`.
    Raises: StudyError.
    """
    people = study.people
    if people is None:
        return
    if not is_possible:
        raise StudyError(
            f"person takes a protocol whose noise can be for several records together, and "
            f"{study.protocol!r} has noise for one; leave person out, or leave protocol out"
        )
    if not 1 <= people.records <= MOST_OF_PERSON:
        raise StudyError(
            f"records_per_person is a whole number from 1 to {MOST_OF_PERSON}, got {people.records}"
        )
    if people.column in [field.name for field in study.fields]:
        raise StudyError(
            f"person names {people.column!r}, which is a field of the study; no value of such a "
            f"column may be used, so leave it out of the fields"
        )


def check_several(study: Study, *, is_possible: bool) -> None:
    """Refuse parts that are not the study's kernels, and strata that are not what they say.

    Strata share ε because each kernel is 0 outside its stratum, so a node proves that from the
    kernels and does not take the coordinator's word.

    Args: is_possible: whether the protocol adds up any number of kernels.
    Raises: StudyError, KernelError.
    """
    if not study.several:
        if study.stratum_field or study.parts == ():
            raise StudyError("a study of several values has one part for each, and none came")
        return
    if not is_possible:
        raise StudyError(
            f"several statistics and strata take protocol u-mpc or grid, got "
            f"{study.protocol!r}; leave protocol out, or ask for one statistic"
        )
    if study.estimator != VECTOR:
        raise StudyError(
            f"the estimator of a study of several values is {VECTOR!r}, got {study.estimator!r}"
        )
    if sum(part.sums for part in study.several) != len(study.kernels):
        raise StudyError(
            f"the parts of the study have {sum(part.sums for part in study.several)} sum(s), and "
            f"{len(study.kernels)} kernel(s) came"
        )
    shapes: dict[str, tuple[str, str, int]] = {}
    for part in study.several:
        check_choice(
            "estimator",
            part.estimator,
            tuple(sorted(set(ESTIMATORS) - {VECTOR, WITH_VARIANCE, PAIR_MEDIAN})),
        )
        shape = (part.statistic, part.estimator, part.sums)
        if ESTIMATORS[part.estimator].sums != part.sums or shapes.get(part.name, shape) != shape:
            raise StudyError(f"the part {part.name!r} has {part.sums} sum(s) of {part.estimator!r}")
        shapes[part.name] = shape
    of_part = [(part.name, part.stratum) for part in study.several]
    if len(set(of_part)) != len(of_part):
        raise StudyError(f"a statistic came twice: {', '.join(name for name, _ in of_part)}")
    _check_strata(study)


def _check_strata(study: Study) -> None:
    """Raises: StudyError where a kernel counts sets that lie outside its stratum."""
    field = study.stratum_field
    categories = study.schema[field].categories if field else ()
    if field and not categories:
        raise StudyError(f"strata takes a field with categories, and {field!r} has numbers")
    for each, kernel in zip(sums_of(study.several), study.parsed_kernels, strict=True):
        stratum = each.part.stratum
        if stratum not in (categories or ("",)):
            raise StudyError(f"{stratum!r} is not a stratum of the study, whose field is {field!r}")
        if field and not is_inside(
            kernel.expression, field, categories.index(stratum), study.degree
        ):
            raise StudyError(
                f"the kernel {kernel.text[:200]!r} counts sets outside the stratum {stratum!r}; "
                f"write `strata` in the study file, which makes the kernels"
            )


def check_variance(study: Study, *, is_possible: bool) -> None:
    """Refuse a private variance of anything but a mean over pairs, or in another protocol.

    Raises: StudyError.
    """
    if study.estimator != WITH_VARIANCE:
        return
    if not is_possible or study.two_sample or study.people is not None:
        raise StudyError(
            'variance = "private" takes protocol = "u-mpc", one class of records and no person, '
            f"got protocol = {study.protocol!r} with sampling = {study.sampling!r}; leave variance "
            "out"
        )
    if study.degree != TRIPLE or not is_over_triples(
        *(kernel.expression for kernel in study.parsed_kernels)
    ):
        raise StudyError(
            f"the estimator {WITH_VARIANCE!r} takes both kernels over triples that follow from a "
            f'kernel of pairs; write variance = "private" in the study file, which makes them'
        )


def _check_fields_are_used(study: Study) -> None:
    """Refuse a field that no kernel uses.

    A site would disclose for it how many records have it, and its allow-lists would not see why.
    """
    used = {name for kernel in study.parsed_kernels for name in kernel.fields}
    if study.two_sample:
        used.add(study.label)
    if study.condition is not None:
        used.update(study.condition.fields)
    unused = [field.name for field in study.fields if field.name not in used]
    if unused:
        raise StudyError(
            f"every field of a study must occur in a kernel, in where, or be the label of "
            f"two_sample sampling, and {', '.join(map(repr, unused[:SHOWN]))} does not; leave it "
            f"out of the study's fields"
        )


def _check_participants(study: Study) -> None:
    names = [node.name for node in study.nodes] + [study.coordinator]
    names += [study.dealer.name] if study.dealer else []
    names += [shuffler.name for shuffler in study.shufflers]
    for name in names:
        if not NAME.fullmatch(name) or name == "any":  # to a dialling process it is any name
            raise StudyError(
                f"a participant's name has lower-case letters, digits and inner dashes, and is not "
                f"'any', got {name!r}"
            )
    counts = Counter(names)
    for name in names:
        if counts[name] > 1:
            raise DuplicateParticipant(
                f"two participants are named {name!r}; give each of its participants a name of "
                f"its own"
            )
    if not study.nodes:
        raise StudyError("a study needs at least one node, got none")
    if len(study.nodes) > MAX_MEMBERS:
        raise StudyError(
            f"a study has at most {MAX_MEMBERS:,} nodes, got {len(study.nodes):,}; take fewer, or "
            f"let several sites put their records together at one"
        )


# --- misspelt -------------------------------------------------------------------------------------

LIKENESS = 0.6
"""The least likeness of a suggestion, between 0 and 1, as `difflib` counts it."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most like this one, or "" if none is."""
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=LIKENESS)), "")


def line_of_key(text: str, key: str) -> int:
    """Return the number of the only line that begins with a key or its section, from 1; else 0."""
    name = rf"""["']?{re.escape(key)}["']?"""
    section = rf"""\[\[?\s*(?:[\w-]+\s*\.\s*)*{name}\s*\]"""
    start = re.compile(rf"\s*(?:{section}|{name}\s*=)")
    found = [number for number, line in enumerate(text.splitlines(), 1) if start.match(line)]
    return found[0] if len(found) == 1 else 0


def advice(text: str, name: str, known: Iterable[str]) -> str:
    """Return a sentence with the line of a key and the nearest known one; "" without either."""
    line, close = line_of_key(text, name), nearest(name, known)
    place = f"It is in line {line}" if line else ""
    meant = f"did you mean `{close}`?" if close else ""
    if place and meant:
        return f" {place}; {meant}"
    return f" {place}." if place else f" {meant.capitalize()}" if meant else ""


# --- field rules ----------------------------------------------------------------------------------


def check_fields(study: Study) -> None:
    """Whether the fields' bounds fit the library's statistics that the study computes.

    Raises: RangeError naming the field.
    """
    for statistic, columns in _computed(study):
        statistic.check_fields(columns, study.schema)


def classes_of(study: Study) -> dict[str, str]:
    """Each label of the study → what its classes mean, such as which one should score higher.

    Labels of which only the equality counts have no entry.
    """
    found: dict[str, str] = {}
    for statistic, columns in _computed(study):
        for name, rule in statistic.rules_of(columns):
            words = rule.in_words(study.schema[name])
            if words and words not in found.get(name, ""):
                found[name] = "; ".join(filter(None, (found.get(name), words)))
    if has_direction(study):
        high, low = map(repr, study.schema[study.label].categories)
        found[study.label] = SCORES_HIGHER.format(high=high, low=low)
    return found


def has_direction(study: Study) -> bool:
    """Whether the first class of the study's public label is the one that should score higher.

    All statistics of the library over two classes have this direction; a kernel of one's own means
    what its author says.
    """
    if not study.two_sample:
        return False
    names = [each.statistic.partition(WEIGHTED)[0] for each in study.single_statistics]
    named = [LIBRARY.get(name) for name in names]
    return any(each is not None and each.sampling == study.sampling for each in named)


def with_other_direction(study: Study) -> Study | None:
    """A study with the classes of its public label exchanged; None without a direction."""
    if not has_direction(study):
        return None
    fields = (
        FieldText.of_categories(each.name, reversed(each.categories), public=True)
        if each.public
        else each
        for each in study.fields
    )
    return study.replaced(fields=tuple(fields))


def columns_of(
    study: Study, statistic: Statistic, stratum: str = "", place: int = 0, weight: str = ""
) -> tuple[str, ...] | None:
    """The fields that are the statistic's arguments, if a study computes exactly this statistic.

    Parameters but thresholds have their defaults, and the fields differ.

    Args: study: of one value. stratum, place: the field of strata and the category that the kernels
        are inside of; empty without strata. weight: the field of weights; empty without weights.
    Returns: None for other kernels.
    """
    # However E is drawn, the noise covers as many sets of a record as E has.
    sampling = BALANCED if study.sampling in UNBALANCED else study.sampling
    if (study.degree, sampling) != (statistic.degree, statistic.sampling):
        return None
    texts = tuple(kernel.text for kernel in study.parsed_kernels)
    used = _order(kernel.expression for kernel in study.parsed_kernels)
    used = tuple(name for name in used if name not in (stratum, weight))
    cuts = cuts_of(tuple(kernel.expression for kernel in study.parsed_kernels))
    for columns in _assignments(used, statistic):
        found = _kernels(statistic, columns, stratum, place, weight, cuts)
        if found == (texts, study.estimator):
            return columns
    return None


def words_of(study: Study) -> str:
    """The statistics that a study computes, in the library's words.

    A name of the coordinator's own is in quotes, and so is that of each field.
    """
    told: dict[str, None] = {}  # strata repeat a statistic
    for alone, statistic, columns in _parts_of(study):
        if statistic is None or columns is None:
            told[f"{alone.statistic!r} (no statistic of the library)"] = None
        else:
            _, _, weight = alone.statistic.partition(WEIGHTED)
            by = f", weighted by {weight!r}" if weight else ""
            told[f"{statistic.words} of {' and '.join(map(repr, columns))}{by}"] = None
    strata = f" in each stratum of {study.stratum_field!r}" if study.stratum_field else ""
    return " and ".join(told) + strata


def _computed(study: Study) -> Iterator[tuple[Statistic, tuple[str, ...]]]:
    """The statistics with rules that the study computes by name, and their fields."""
    for _, statistic, columns in _parts_of(study):
        if statistic is not None and statistic.rules and columns is not None:
            yield statistic, columns


def _parts_of(
    study: Study,
) -> Iterator[tuple[Study, Statistic | None, tuple[str, ...] | None]]:
    """Each value of a study alone, the library's statistic of its name, and its fields.

    The fields are None where the study computes something else than this statistic.
    """
    parts: tuple[StudyPart | None, ...] = study.several or (None,)
    for part, alone in zip(parts, study.single_statistics, strict=True):
        name, _, weight = alone.statistic.partition(WEIGHTED)
        statistic = LIBRARY.get(name)
        stratum, place = "", 0
        if part is not None and part.stratum:
            stratum = study.stratum_field
            place = study.schema[stratum].categories.index(part.stratum)
        known = None if statistic is None else columns_of(alone, statistic, stratum, place, weight)
        yield alone, statistic, known


def _assignments(used: tuple[str, ...], statistic: Statistic) -> Iterable[tuple[str, ...]]:
    """The fields that the statistic's arguments may be, each used once.

    Feature columns are in the order of the kernel's sum. A kernel of more columns than MAX_DEPTH is
    not the library's, because the library's sums are chains.
    """
    arity = len(statistic.arguments)
    if statistic.is_variadic:
        return [used] if arity <= len(used) <= MAX_DEPTH else []
    return permutations(used) if len(used) == arity else []


@lru_cache(maxsize=64)
def _kernels(
    statistic: Statistic,
    columns: tuple[str, ...],
    stratum: str,
    place: int,
    weight: str,
    cuts: tuple[Fraction, ...],
) -> tuple[tuple[str, ...], str] | None:
    """The library's kernels and estimator; None if a parameter of it has no default."""
    given = {THRESHOLDS.name: cuts} if cuts and THRESHOLDS in statistic.parameters else None
    try:
        found, estimator = statistic.expressions(columns, given), statistic.estimator
        if weight:
            found, estimator = weighted(found, estimator, weight, statistic.degree)
        if stratum:
            found, estimator = restricted(found, estimator, stratum, place, statistic.degree)
    except KernelError:
        return None
    return tuple(map(to_text, found)), estimator


def _order(expressions: Iterable[Expression]) -> tuple[str, ...]:
    """The fields' names in the order of their first use, from left to right."""
    found: dict[str, None] = {}

    class Names(Rebuild):
        def field(self, record: int, name: str) -> Expression:
            found.setdefault(name)
            return super().field(record, name)

    for expression in expressions:
        interpret(expression, Names())
    return tuple(found)
