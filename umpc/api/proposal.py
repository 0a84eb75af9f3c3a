"""`umpc.plan`: a study from a question in words, with the intervals that it will have.

It proposes a statistic of the library, ε and the grade of promise. Nobody is asked, and nothing is
paid. `umpc study new` is made of it.

*Interval.* The half width that a report of made-up records has, in the mean
(`StudyProtocol.half_width`). ε is the least with two digits at which the interval for the records'
own value is as short as was asked for.

*Grade.* adversary = "lying_nodes" is taken where it costs little: at most LITTLE_EPSILON times the
ε, LITTLE_WIDTH times the interval for the population, and LITTLE_SECONDS more.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from umpc.api.fields import Bounds, field_of
from umpc.api.result import Result
from umpc.api.study import Participants, ProposedStudy
from umpc.counts import COUNTED, answers_of
from umpc.crypto.prg import Stream
from umpc.errors import ConfigError, StudyError, UmpcError
from umpc.inference.report_inference import POPULATION, RECORDS, Inference
from umpc.planning.prediction import attempt_over
from umpc.planning.reference_table import Floats, ReferenceTable
from umpc.planning.study_plan import StudyPlan
from umpc.protocols.registry import protocol_of
from umpc.reporting.rows import sentence_of
from umpc.simulation import Table, simulate
from umpc.study.attempt import Attempt
from umpc.study.computation import unusual
from umpc.study.parts import FieldText
from umpc.study.report import Report
from umpc.study.settings import ADVERSARIES, HONEST, LYING_NODES
from umpc.text_file import check_new, printable, write_text
from umpc.ustat.sampling import TWO_SAMPLE
from umpc.ustat.schema import FieldSchema
from umpc.ustat.statistics import find_statistic

NUMBER, ANY = 0, -1
"""The kinds of columns beside numbers of categories: a number, and any categories."""
AUC = "the probability that a record of the second group has the larger number; ties count half"
QUESTIONS: Mapping[str, Mapping[tuple[int, ...], tuple[str, str]]] = {
    "association": {
        (NUMBER, NUMBER): (
            "kendall_tau",
            "how much more often two records are in the same order in both columns than in "
            "opposite orders, from -1 to 1",
        ),
        (NUMBER, 2): (
            "kendall_tau_label",
            "how far the larger numbers are in the second group, from -1 to 1",
        ),
        (2, 2): ("phi_coefficient", "the correlation of two groupings, from -1 to 1"),
    },
    "difference": {
        (NUMBER, 2): ("auc_private", AUC),
        (NUMBER, 3): (
            "vus",
            "the probability that records of the three groups are in the groups' order",
        ),
    },
    "spread": {
        (NUMBER,): ("gini_mean_difference", "the mean absolute difference of two records"),
        (ANY,): ("renyi_entropy", "in bits, how evenly records are spread over categories"),
    },
    "inequality": {
        (NUMBER,): ("gini_coefficient", "how unequally an amount is shared, from 0 to 1")
    },
    "level": {(NUMBER,): ("mean", "the mean of all records")},
    "distribution": {(NUMBER,): ("quantiles", "the median; the table has all other quantiles")},
    "survival": {
        (NUMBER, 2): ("kaplan_meier", "the median survival; the table has the whole curve"),
        (NUMBER, ANY, ANY): (
            "kaplan_meier",
            "the median survival of each group, and the log-rank test; the event comes before the "
            "group, and the table has the whole curves",
        ),
        (NUMBER, NUMBER, 2): (
            "concordance_index",
            "how often, of two records, the one with the higher score has its event earlier",
        ),
    },
    "agreement": {
        (NUMBER, NUMBER, 2): ("auc_difference", "the AUC of the first score minus the second's"),
        (NUMBER, NUMBER, NUMBER): (
            "tau_difference",
            "by how much the first column goes together with the third more than the second does",
        ),
        (NUMBER, NUMBER, NUMBER, 2): (
            "concordance_difference",
            "the concordance index of the first score minus the second's",
        ),
    },
}
"""Question → kinds of columns → a statistic, and the value that it estimates."""
BINS, BINS_OF_TIME = 20, 10
"""Bins of a number with more values, in a table of counts. Running totals of a curve add up noise:
at ε = 1 the planned interval of a median is shorter with fewer bins.
"""
RECORD = "record"
"""The unit of protection, if it is not a person."""
LITTLE_EPSILON, LITTLE_WIDTH, LITTLE_SECONDS = 1.5, 1.1, 10.0
EPSILONS = [f"{n / part:g}" for part in (1000, 100, 10) for n in range(10, 100)] + ["10"]
"""The values of ε that are tried."""
CORRELATION = 0.5
"""That of any two made-up columns, and the distance of two public groups in deviations."""
MADE_UP = (
    f"the records are made up: normal columns with correlation {CORRELATION}, and public groups "
    f"{CORRELATION} deviations apart; no site was asked, nothing is paid"
)


@dataclass(frozen=True)
class Grade:
    """A study in one grade of promise, as it is predicted.

    records, population: half widths of the 95 % intervals for the value of these records, and for
    the population that they are a sample of.
    """

    study: ProposedStudy
    plan: StudyPlan
    records: float
    population: float

    @property
    def epsilon(self) -> float:
        return float(self.plan.study.epsilon)

    @property
    def seconds(self) -> float:
        return self.plan["seconds_total"] or 0.0

    @property
    def bytes(self) -> int:
        """All bytes of a run, as `umpc plan` has them."""
        return int((self.plan["bytes_online"] or 0) + (self.plan["bytes_offline"] or 0))

    def __str__(self) -> str:
        return (
            f"epsilon {self.epsilon:g}, records {_half_width(self.records)}, population "
            f"{_half_width(self.population)}, {self.seconds:.2f} s, {self.bytes:,} bytes"
        )


def _half_width(half: float) -> str:
    """The half width of an interval; one of a median may have no end."""
    return f"± {half:.2g}" if isfinite(half) else "without an end"


@dataclass(frozen=True)
class Proposal:
    """A study that `umpc.plan` proposes.

    Args:
        statistic, estimates: of the library, and its value in words.
        grade: the one that is proposed. grades: all that are possible.
        costs: a sentence about the other grade.
        made_up: the result of one simulated study over made-up records.
    """

    statistic: str
    estimates: str
    grade: Grade
    grades: Mapping[str, Grade]
    costs: str
    made_up: Result

    @property
    def study(self) -> ProposedStudy:
        return self.grade.study

    @property
    def epsilon(self) -> float:
        return self.grade.epsilon

    def save(self, path: str | Path) -> Path:
        """Write study.toml with comments. Raises: ConfigError where there is such a file."""
        file, grade = Path(path), self.grade
        about = {
            "name": "A new name is a new study, with new noise and a new charge.",
            "statistic": f"It estimates {self.estimates}.",
            "epsilon": f"Predicted 95 % interval: {_half_width(grade.records)} for the value of "
            f"these records, {_half_width(grade.population)} for the population. Half of this "
            "epsilon doubles the noise.",
            "bins": "Bins of equal width; or cut points, such as [6, 12, 24]. Fewer bins have less "
            "noise.",
            "backend": f"As of now {self.study.chosen}.",
            "records": "About how many there are; the choice of the backend follows from it.",
            "adversary": f"As predicted: {self.costs}.",
            "fields": "Bounds come from what a column means, never from the data. The second of "
            "two categories is the event, or the class that should score higher.",
            "nodes": "The name in its certificate and the address, as each administrator says.",
        }
        check_new(file, failure=ConfigError)
        return write_text(file, self.study.text(about), "the study", ConfigError)

    def __str__(self) -> str:
        people = self.grade.plan.study.people
        unit = "one record" if people is None else f"all records of one {people.column}"
        wide = unusual(self.grade.plan.study).get("bins", ())
        bins = "".join(f"; {each.field} in {each.count} bins" for each in wide)
        lines = (
            ("statistic", f"{self.statistic}: {self.estimates}"),
            ("protects", f"{unit}, with epsilon {self.epsilon:g}"),
            *((name, str(each)) for name, each in self.grades.items()),
            ("grade", self.costs),
            ("chosen", self.study.chosen or f"one table of counts, without a dealer{bins}"),
            ("made up", f"{sentence_of(self.made_up.report)}."),
            ("", MADE_UP),
        )
        return "\n".join(f"{label:<12} {printable(text)}" for label, text in lines)


def plan(
    question: str,
    bounds: Mapping[str, Bounds],
    records: Sequence[int | str] | str,
    *,
    exact: float | None = None,
    epsilon: Any = None,
    protect: str = RECORD,
    statistic: str | None = None,
    adversary: str | None = None,
    nodes: Participants | None = None,
    dealer: Participants | None = None,
    identity: str | Path = "coordinator",
    name: str | None = None,
) -> Proposal:
    """Propose a study. No site is asked, and nothing is paid.

        proposal = umpc.plan("association", {"age": (0, 120, 1), "score": (0, 100, 1)}, [600, 400],
                             exact=0.02)
        print(proposal)
        proposal.save("study.toml")

    Args:
        question: one of QUESTIONS, such as "association" or "difference".
        bounds: column → (lower, upper, resolution) or a list of categories, from what the column
            means and never from data. The columns are those of the question.
        records: each site's number of records. "180+120" is of two groups, whose numbers everybody
            may then know; `auc` takes them.
        exact: the half width of the interval for the records' value that is needed, by which ε is
            chosen. epsilon: in its place; 1 without both.
        protect: "record", or "COLUMN:MOST" for all records of a person, at most so many at a site.
        statistic: of the library, in place of the proposed one, over the same columns.
        adversary: a grade; by default "lying_nodes" where that costs little.
        nodes, dealer: name → address; examples without them. identity: as of `umpc.Study`.
        name: of the study. Seconds are those of `umpc.Study.plan` with its usual line.
    Raises: StudyError where a question does not fit its columns, and as `umpc.Study`.
    """
    given = {each: field_of(each, bounds[each], None) for each in bounds}
    counts = records if isinstance(records, str) else ",".join(map(str, records))
    found, estimates, columns = proposed(question, list(given.values()), "+" in counts)
    found = statistic or found
    if statistic is not None:
        estimates = (COUNTED.get(found) or find_statistic(found)).title
    classes = given[columns[-1]].categories
    is_table = found in COUNTED
    is_public = not is_table and find_statistic(found).sampling == TWO_SAMPLE and bool(classes)
    sites = counts.split(",")
    entries: dict[str, Any] = {
        "name": name or f"{question}-of-{'-and-'.join(given)}",
        "statistic": found,
        "columns": columns[:1] if is_public else columns,
        "bounds": given,
        "label": (columns[-1], classes[-1]) if is_public else None,
        "nodes": nodes
        or {f"node-{n}": f"node-{n}.example.org:7100" for n, _ in enumerate(sites, 1)},
        "identity": identity,
        **_unit(protect),
    }
    if dealer or not is_table:
        entries["dealer"] = dealer or {"dealer": "dealer.example.org:7100"}
    if is_table:
        schemas = (field.schema() for field in given.values() if not field.categories)
        bins = BINS_OF_TIME if found in ("kaplan_meier", "nelson_aalen") else BINS
        wide = (each.name for each in schemas if each.upper_units - each.lower_units >= bins)
        entries["bins"] = dict.fromkeys(wide, bins)
    else:
        entries["backend"] = "auto"
        entries["records"] = sum(map(int, re.findall("[0-9]+", counts)))
    if exact is not None and (epsilon is not None or not exact > 0):
        raise StudyError(f"exact is above 0, and in place of epsilon; got {exact} and {epsilon}")
    grades: dict[str, Grade] = {}
    reason = ""
    for each in ADVERSARIES if adversary is None else (adversary,):
        make = partial(ProposedStudy, **entries, adversary=each)
        try:
            grades[each] = _grade(make, counts, exact, epsilon)
        except UmpcError as error:
            if each == (adversary or HONEST):
                raise
            reason = error.message
    taken, costs = _compared(grades, reason) if adversary is None else (adversary, "as asked for")
    grade = grades[taken]
    attempt = grade.plan.attempt
    made_up = Result(simulate(attempt.study, _tables(attempt), os.urandom).report)
    return Proposal(found, estimates, grade, grades, costs, made_up)


def proposed(
    question: str, fields: Sequence[FieldText], is_public: bool = False
) -> tuple[str, str, list[str]]:
    """A statistic, what it estimates, and the columns in its order. Raises: StudyError."""
    if question not in QUESTIONS:
        raise StudyError(f"a question is one of {', '.join(QUESTIONS)}, got {question!r}")
    known = QUESTIONS[question]
    # numbers come first, and stay in the order in which they were given
    ordered = sorted(fields, key=lambda field: len(field.categories))
    kinds = tuple(len(field.categories) for field in ordered)
    found = known.get(kinds) or known.get(tuple(ANY if kind else NUMBER for kind in kinds))
    if found is None:
        forms = "; or ".join(map(_in_words, known))
        raise StudyError(
            f"the question {question!r} takes {forms}; {_in_words(kinds) or 'no column'} came. Ask "
            f"another one of {', '.join(QUESTIONS)}, or give other columns"
        )
    name, estimates = found
    name = "auc" if is_public and name == "auc_private" else name
    return name, estimates, [field.name for field in ordered]


def _in_words(kinds: Sequence[int]) -> str:
    words = {NUMBER: "a number", ANY: "a column of categories"}
    return ", ".join(words.get(kind, f"a column of {kind} categories") for kind in kinds)


def _unit(protect: str) -> dict[str, Any]:
    """The keys of the unit of protection. Raises: StudyError."""
    if protect == RECORD:
        return {}
    column, _, most = protect.rpartition(":")
    if not column or not most.isdecimal():
        raise StudyError(
            f"protect is {RECORD!r}, or COLUMN:MOST for all records of one person, such as "
            f"patient:3; got {protect!r}"
        )
    return {"person": column, "records_per_person": int(most)}


# --- grades ---------------------------------------------------------------------------------------


def _grade(
    make: Callable[..., ProposedStudy],
    records: str,
    exact: float | None,
    epsilon: Any,
) -> Grade:
    """A grade at the ε that was asked for, or at the least that is exact enough.

    Raises: StudyError where no ε of EPSILONS is.
    """
    epsilon = str(epsilon or 1)
    document = make(epsilon=epsilon).file.new_study("coordinator")
    first = attempt_over(document, records)
    parts = _tables(first)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    table = ReferenceTable.of(document, columns, first.counts, is_made_up=True)
    _ = table.means  # it is kept for each ε

    def half(text: str, kind: str = RECORDS) -> float:
        study = document.replaced(epsilon=text)
        over = attempt_over(study, records), table.turned_to(study)
        found = protocol_of(study).half_width(*over, partial(_ends, kind=kind))
        return inf if found is None else found

    if exact is not None:
        # the interval is the shorter the larger ε is
        least = bisect_left(EPSILONS, True, key=lambda text: half(text) <= exact)
        if least == len(EPSILONS):
            raise StudyError(
                f"the interval is {_half_width(half(EPSILONS[-1]))} at epsilon = "
                f"{EPSILONS[-1]}, and ± {exact:g} was asked for: take more records, or ask for less"
            )
        epsilon = EPSILONS[least]
    study = make(epsilon=epsilon)
    return Grade(study, study.plan(records), half(epsilon), half(epsilon, POPULATION))


def _ends(report: Report, kind: str) -> tuple[float, float]:
    """The interval of a report's value, infinite where there is none."""
    if report.counts is None:
        try:
            found = Inference(report).interval(kind=kind)
        except StudyError:
            return -inf, inf  # the noise hides a denominator
        return found.low, found.high
    answer = answers_of(report.counts, report.records)[0]
    quoted = COUNTED[report.statistic].quoted(answer)
    ends = [each.intervals.get(kind, (None, None)) for each in quoted] or [(None, None)]
    known = [(-inf if a is None else a, inf if b is None else b) for a, b in ends]
    return max(known, key=lambda both: both[1] - both[0])  # of groups the widest


def _compared(grades: Mapping[str, Grade], reason: str) -> tuple[str, str]:
    """The grade to take, and what lying_nodes costs. Args: reason: why it is not possible."""
    honest, lying = grades[HONEST], grades.get(LYING_NODES)
    asked = f'adversary = "{LYING_NODES}"'
    if lying is None:
        return HONEST, f"{asked} is not possible here: {reason}"
    more = lying.seconds - honest.seconds
    parts = [f"{max(more, 0):.1f} s more"]
    if lying.epsilon != honest.epsilon:
        parts.append(f"epsilon {lying.epsilon:g} in place of {honest.epsilon:g}")
    for what in ("records", "population"):
        mine, other = (f"{getattr(each, what):.2g}" for each in (lying, honest))
        parts.append(
            f"the same interval for the {what}"
            if mine == other
            else f"± {mine} in place of ± {other} for the {what}"
        )
    is_little = (
        lying.epsilon <= LITTLE_EPSILON * honest.epsilon
        and lying.population <= LITTLE_WIDTH * honest.population
        and more <= LITTLE_SECONDS
    )
    taken = "little, so it is taken" if is_little else f'so "{HONEST}" is left'
    return LYING_NODES if is_little else HONEST, f"{asked} costs {', '.join(parts)}: {taken}"


# --- made-up records ------------------------------------------------------------------------------


def _tables(attempt: Attempt) -> list[Table]:
    """Each node's made-up records: normal columns that correlate, the same at every call."""
    stream, study = Stream(bytes(32)), attempt.study
    label = study.label if study.two_sample else ""
    found: list[Table] = []
    for first, second in attempt.counts:
        group = np.repeat([0, 1], (first, second))
        common, *own = _normal(stream, 1 + len(study.schema), first + second)
        table = {}
        for field, values in zip(study.schema, own, strict=True):
            values = CORRELATION**0.5 * common + (1 - CORRELATION) ** 0.5 * values
            # the first class of a document should score higher
            values += CORRELATION * (1 - group) if label else 0
            table[field.name] = group if field.name == label else _in_units(values, field)
        found.append(table)
    return found


def _normal(stream: Stream, columns: int, size: int) -> Floats:
    """Standard normal numbers (Box & Muller 1958): (columns, size)."""
    radii, angles = (stream.words(2 * columns * size).reshape(2, columns, size) + 0.5) / 2**64
    found: Floats = np.sqrt(-2 * np.log(radii)) * np.cos(2 * np.pi * angles)
    return found


def _in_units(values: Floats, field: FieldSchema) -> NDArray[np.int64]:
    """Standard normal values as a field has them: within its bounds, or in equal categories."""
    if field.categories:
        ranks = values.argsort().argsort()
        return ranks * len(field.categories) // len(values)
    low, high = field.lower_units, field.upper_units
    scaled = (low + high) / 2 + values * (high - low) / 6
    return np.clip(np.rint(scaled), low, high).astype(np.int64)
