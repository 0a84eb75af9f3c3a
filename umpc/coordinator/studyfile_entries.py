"""The keys of study.toml that every study has, with their help texts, and how they go together.

*Several.* Several statistics of a study file, and their strata: the study's kernels and parts.

    [[statistics]]
    statistic = "kendall_tau"
    columns = ["age", "balance"]
    [[statistics]]
    statistic = "gini_mean_difference"
    columns = ["balance"]

With `strata = "sex"` each statistic is inside each category of the field.

*Variance.* variance = "private" of a study file: the kernels over triples, and both sums' parts of
ε.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction
from itertools import combinations
from typing import Annotated, Any, get_args

import msgspec

from umpc.errors import StudyError
from umpc.study.parts import FieldText, Participant, StudyPart, exact
from umpc.study.settings import HONEST
from umpc.ustat.estimators import VECTOR, WITH_VARIANCE
from umpc.ustat.expression import Expression
from umpc.ustat.sampling import BALANCED, TWO_SAMPLE, UNBALANCED
from umpc.ustat.statistics import find_statistic
from umpc.ustat.statistics.dependence import SYMMETRIC
from umpc.ustat.strata import PAIR, TRIPLE, WEIGHTED, over_triples, restricted, weighted
from umpc.ustat.text import to_text

MOST_COLUMNS = 20


class StatisticEntry(msgspec.Struct, forbid_unknown_fields=True):
    """One of several statistics, as study.toml has it."""

    statistic: str
    columns: list[str]
    parameters: dict[str, int | str | list[int | str]] = {}


@dataclass(frozen=True)
class NamedStatistic:
    """A statistic with its kernels. columns: the fields that it takes, for its name."""

    statistic: str
    columns: tuple[str, ...]
    expressions: tuple[Expression, ...]
    degree: int
    estimator: str
    sampling: str

    def weighted(self, weight: str, fields: Sequence[FieldText]) -> NamedStatistic:
        """The statistic with a field's values as weights of its records.

        Raises: StudyError where they can be below 0, or sets are larger than pairs; KernelError.
        """
        found = next((each for each in fields if each.name == weight), None)
        if found is None or found.categories or found.schema().lower < 0:
            came = "no such field" if found is None else found.values()
            raise StudyError(
                f"weight takes a field of numbers with a lower bound of 0 or above, and {weight!r} "
                f"has {came}; correct its bounds, or name another field"
            )
        if self.degree > PAIR:
            raise StudyError(
                f"weight is for statistics over one or two records, and {self.statistic!r} is over "
                f"{self.degree}; leave weight out, or take a statistic of pairs"
            )
        expressions, estimator = weighted(self.expressions, self.estimator, weight, self.degree)
        name = f"{self.statistic}{WEIGHTED}{weight}"
        return replace(self, statistic=name, expressions=expressions, estimator=estimator)

    @property
    def name(self) -> str:
        """Its name among several statistics."""
        return f"{self.statistic}({', '.join(self.columns)})" if self.columns else self.statistic


def of_library(
    name: str, columns: Sequence[str], parameters: Mapping[str, Any], sampling: str | None
) -> NamedStatistic:
    """A statistic of the library over its columns. Raises: KernelError.

    Args: sampling: None for the statistic's own.
    """
    found = find_statistic(name)
    return NamedStatistic(
        found.name,
        tuple(columns),
        found.expressions(columns, parameters),
        found.degree,
        found.estimator,
        sampling or found.sampling,
    )


def matrix_of(name: str, columns: Sequence[str]) -> list[NamedStatistic]:
    """A statistic of every pair of columns. Raises: StudyError, KernelError."""
    count, different = len(columns), len(set(columns))
    if name not in SYMMETRIC or count != different or not 2 <= count <= MOST_COLUMNS:
        raise StudyError(
            f"matrix = true takes one of {', '.join(SYMMETRIC)} and 2 to {MOST_COLUMNS} different "
            f"columns; got {name or 'no statistic'!r} and {count} columns, {different} of them "
            f"different"
        )
    return [of_library(name, pair, {}, None) for pair in combinations(columns, 2)]


def parts_of(
    statistics: Sequence[NamedStatistic], strata: str, categories: Sequence[str]
) -> dict[str, Any]:
    """The keys of a study that reports several values: statistic after statistic, all strata each.

    Args: strata: the field; empty for none. categories: its own.
    Raises: StudyError where the statistics are over different sets, or one came twice; KernelError.
    """
    shapes = {(each.degree, each.sampling) for each in statistics}
    if len(shapes) > 1:
        told = ", ".join(
            f"{each.name} ({each.degree} records, {each.sampling})" for each in statistics
        )
        raise StudyError(
            f"all statistics of a study are over the same sets, and these are not: {told}; ask for "
            f"them in several studies"
        )
    ((degree, sampling),) = shapes
    kernels: list[str] = []
    parts: list[StudyPart] = []
    for each in statistics:
        for number, stratum in enumerate(categories if strata else ("",)):
            found, estimator = each.expressions, each.estimator
            if strata:
                found, estimator = restricted(found, estimator, strata, number, degree)
            kernels += map(to_text, found)
            parts.append(StudyPart(each.name, each.statistic, estimator, len(found), stratum))
    names = ", ".join(dict.fromkeys(each.name for each in statistics))
    return {
        "statistic": f"{names} by {strata}" if strata else names,
        "kernels": tuple(kernels),
        "degree": degree,
        "estimator": VECTOR,
        "sampling": sampling,
        "parts": tuple(parts),
        **({"strata": strata} if strata else {}),
    }


def check_keys(values: Mapping[str, Any]) -> None:
    """Raises: StudyError where keys of one statistic stand beside several."""
    for key in ("statistic", "kernel", "columns", "parameters", "estimator"):
        if values.get(key):
            raise StudyError(
                f"`statistics` lists statistics of the library, each with its own columns and "
                f"parameters, and `{key}` came beside it. Remove `{key}`"
            )
    if not values["statistics"]:
        raise StudyError("`statistics` lists at least one statistic, got none. Add one")


Number = int | str


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


class StudyEntries(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
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
        str | None,
        _about(
            "A statistic of the library, which `umpc kernels` lists; or one of counts, such as "
            "kaplan_meier, which choose the protocol counts."
        ),
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
    weight: Annotated[
        str | None,
        _about(
            "A field of numbers, with a lower bound of 0 or above: a pair counts as much as the "
            "product of its records' weights, such as inverse probabilities of being sampled."
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
            "is less noise wherever each node adds its own, and in a grid whose nodes may lie the "
            "first max_colluding + 1 nodes check for all."
        ),
    ] = None
    may_miss: Annotated[
        int | None,
        _about(
            "How many nodes may be lost before the release: the study then ends with the others, "
            "over their records. At least two must be left. The default is none."
        ),
    ] = None
    required: Annotated[
        list[str],
        _about("With may_miss: the names of nodes without which there is no result."),
    ] = []
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
    dataset: Annotated[
        str | dict[str, str] | None,
        _about(
            "The name of the data set, for sites that have several; or a table with a name for "
            'each node that needs one, such as {north = "heart", south = "cardiology"}.'
        ),
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
    for field in msgspec.structs.fields(StudyEntries):
        described = [part for part in get_args(field.type) if isinstance(part, msgspec.Meta)]
        found[field.name] = described[0].description or ""
    return found


def check_entries(entries: StudyEntries) -> None:
    """Raises: StudyError naming a key that contradicts another; KernelError."""
    for number, field in enumerate(entries.fields):
        try:
            field.text()
        except StudyError as error:
            raise StudyError(f"{error.message} at `fields[{number}]`") from error
    _check_what(entries)
    _check_variance(entries)
    if entries.required and entries.may_miss is None:
        raise StudyError("`required` goes with `may_miss`. Write both, or neither")
    if (entries.person is None) != (entries.records_per_person is None):
        raise StudyError("`person` and `records_per_person` go together. Write both, or neither")


def datasets_of(
    participants: Sequence[Participant], named: str | Mapping[str, str] | None
) -> tuple[str, ...]:
    """The name of each node's data set, in the nodes' order; empty where no name is given.

    Args: named: one name for all nodes, or a node's name → that of its data set.
    Raises: StudyError for a name that is empty, or of a node that the study does not have.
    """
    nodes = [node.name for node in participants]
    if named is None:
        return ()
    given = dict.fromkeys(nodes, named) if isinstance(named, str) else named
    for node, name in given.items():
        if node not in nodes:
            close = get_close_matches(node, nodes, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]!r}?" if close else f"its nodes are {', '.join(nodes)}."
            raise StudyError(
                f"dataset names the node {node!r}, which the study does not have; {hint}"
            )
        if not name:
            raise StudyError("dataset has an empty name. Leave the node out, or name its data set")
    return tuple(given.get(node, "") for node in nodes) if given else ()


def _check_what(entries: StudyEntries) -> None:
    """Raises: StudyError where the keys do not say one statistic, one kernel or several."""
    if entries.statistics is not None:
        check_keys(msgspec.structs.asdict(entries))
        for each in entries.statistics:
            _check_statistic(entries, each.statistic)
        return
    if (entries.statistic is None) == (entries.kernel is None):
        raise StudyError("one of `statistic` and `kernel` was expected. Name the one you mean")
    if (entries.statistic is None) != (entries.columns is None):
        raise StudyError(
            "`columns` goes with `statistic`, and a kernel names its fields itself. Correct that"
        )
    if entries.statistic is not None:
        _check_statistic(entries, entries.statistic)
    if entries.kernel is not None and entries.parameters:
        raise StudyError(
            "`parameters` go with `statistic`; write numbers into the kernel. Correct that"
        )


def _check_statistic(entries: StudyEntries, name: str) -> None:
    """Raises: StudyError naming a key that a statistic of the library does not go with."""
    if entries.estimator:
        raise StudyError("a `statistic` has its own estimator. Remove `estimator`")
    own = find_statistic(name).sampling
    if entries.sampling and entries.sampling not in (own, *(UNBALANCED if own == BALANCED else ())):
        raise StudyError(f"the statistic {name!r} takes pairs of {own} sampling. Remove `sampling`")


# --- variance -------------------------------------------------------------------------------------

LARGEST, PRIVATE = "largest", "private"
VARIANCES = (LARGEST, PRIVATE)
USUAL_SHARE = "1/5"
"""The part of ε of the second sum. A fifth costs the estimate a quarter more noise."""


def _check_variance(entries: StudyEntries) -> None:
    """Raises: StudyError naming a key of a study file that contradicts another."""
    variance, share = entries.variance, entries.variance_share
    if variance not in (None, *VARIANCES):
        raise StudyError(
            f"`variance` is one of {', '.join(VARIANCES)}, got {variance!r}. Correct it"
        )
    if share is not None and variance != PRIVATE:
        raise StudyError(
            f'`variance_share` goes with variance = "{PRIVATE}". Write both, or neither'
        )
    if entries.split and variance == PRIVATE:
        raise StudyError(
            f'variance = "{PRIVATE}" splits epsilon by `variance_share`. Remove `split`'
        )
    if share is not None and not 0 < exact(str(share), "variance_share") < 1:
        raise StudyError(
            f"`variance_share` is a part of epsilon between 0 and 1, got {share}; the default is "
            f"{USUAL_SHARE}. Correct it"
        )


def with_variance(
    statistic: Any, pair: Expression, share: int | str | None
) -> tuple[Any, tuple[str, ...]]:
    """A statistic's entries over triples, and both sums' parts of ε.

    Args:
        statistic: the entries of `StudyFile`, of a mean over pairs. pair: its kernel.
        share: the second sum's part; None for the usual one.
    Raises: StudyError where the statistic is not the mean of one kernel over pairs of one class.
    """
    facts = (statistic["degree"], statistic["estimator"], len(statistic["kernels"]))
    if facts != (PAIR, "mean", 1) or statistic["sampling"] == TWO_SAMPLE:
        raise StudyError(
            f'variance = "{PRIVATE}" takes the mean of one kernel over pairs of one class, such as '
            f"kendall_tau, got {statistic['statistic']!r}, the {statistic['estimator']} of "
            f"{len(statistic['kernels'])} sum(s) over {statistic['degree']} record(s), sampling = "
            f"{statistic['sampling']!r}; leave variance out"
        )
    part = exact(USUAL_SHARE if share is None else str(share), "variance_share")
    kernels = tuple(map(to_text, over_triples(pair)))
    entries = {**statistic, "kernels": kernels, "degree": TRIPLE, "estimator": WITH_VARIANCE}
    return entries, (str(Fraction(1) - part), str(part))
