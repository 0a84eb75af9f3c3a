"""A report as rows and blocks, from which the terminal and the page are written.

`sections` has all rows of a report, by the title of their section. `blocks_of` is a whole document
of them. A writer decides only how a block looks.

Sentences about a report, of which its rows consist.

*Printable.* Text from outside as one line that a terminal, a browser and an editor show as it is.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from math import floor, isfinite, log10
from typing import Any

from umpc.counts import COUNTED, answers_of
from umpc.counts.answers import CountsAnswer
from umpc.errors import UmpcError
from umpc.inference.matrix import CorrelationMatrix, matrix_of
from umpc.inference.null_laws import NullTest
from umpc.inference.report_inference import (
    HOEFFDING,
    KINDS,
    NOISE,
    POPULATION,
    RECORDS,
    ErrorSource,
    Inference,
    ReportInterval,
)
from umpc.protocols.base.promise import Promise, PromiseTerms
from umpc.protocols.registry import find_protocol
from umpc.study.making_report import SETS
from umpc.study.parts import FieldText, describe_complete
from umpc.study.report import Report
from umpc.study.settings import HONEST
from umpc.ustat.estimators import DIFFERENCES
from umpc.ustat.expression import fields_of
from umpc.ustat.statistics import LIBRARY
from umpc.ustat.strata import WEIGHTED
from umpc.ustat.text import from_text, to_text

MOST_NAMED = 8
"""The most columns of a matrix that a sentence names."""
MOST_ROWS = 16
"""The most sums or sites that are listed; there may be thousands. The JSON document has all."""
WIDEST_FIELD = 70
"""Characters of a field's description; a field may have thousands of categories."""
KIND_WORDS = {
    NOISE: "noise alone",
    RECORDS: "these records",
    POPULATION: "the population",
    HOEFFDING: "the population, for any n",
}
"""Kind of interval → its name in pictures and tables."""
QUESTIONS = {
    RECORDS: "Which value do these records have?",
    POPULATION: "Which value has the population that they are a sample of?",
    HOEFFDING: "The same, if they are few or nothing is known of their law?",
    NOISE: "Which value has this study without its noise?",
}
"""Kind of interval → the question that it answers, the usual one first."""


def rounded(value: float, noise_std: float | None) -> str:
    """A value with the digits that its noise leaves: to the second digit of the noise's deviation.

    Args: noise_std: its standard deviation; six digits without any, and never more.
    """
    most = f"{value:.6g}"
    if not noise_std or not isfinite(noise_std) or not isfinite(value):
        return most
    places = 1 - floor(log10(noise_std))
    if value:
        places = min(places, 5 - floor(log10(abs(value))))
    found = round(value, places) + 0.0  # no negative zero
    if found and not 1e-5 <= abs(found) < 1e15:
        return f"{found:.6g}"
    return f"{found:.{max(0, places)}f}"


def describe_ends(report: Report, low: float, high: float) -> str:
    """An interval's ends with the digits that the noise leaves."""
    return f"{rounded(low, report.noise_std)} … {rounded(high, report.noise_std)}"


def sentence_of(report: Report) -> str:
    """The result as one may quote it: the statistic's own words, its value, and its intervals for
    these records and for the population that they are a sample of.
    """
    if answers := answers_in(report):
        # of persons a test of groups has no number to quote
        quoted = [each for each in answers if COUNTED[each.kind].quoted(each)] or answers[:1]
        told = ". ".join(_counted_sentence(report, answer) for answer in quoted)
        return f"{told} (epsilon {report.epsilon:g})"
    if (matrix := matrix_of(report)) is not None:
        names = matrix.columns
        told = f"{len(names)} columns" if len(names) > MOST_NAMED else _listed(names)
        words = LIBRARY[matrix.statistic].words
        return f"{words} of each two of {told}, for {_whom(report)}"
    told = _subject(report)
    if report.estimate is None:
        return f"{told}: no value"
    if report.low is None or report.high is None:
        return f"{told}: {rounded(report.estimate, report.noise_std)}"
    error = max(report.noise_std or 0.0, (report.high - report.low) / 4)  # with the sampling
    told += f": {rounded(report.estimate, error)} (95 % "
    ends = [(report.low, report.high, _whom(report)), *_drawn_ends(report)]
    told += "; ".join(f"{rounded(a, error)} to {rounded(b, error)}, for {c}" for a, b, c in ends)
    return f"{told}; epsilon {report.epsilon:g})"


def _subject(report: Report) -> str:
    """The statistic in words, of which columns and inside which stratum.

    The columns are in the statistic's order, which tells what a difference is taken from.
    """
    name, _, stratum = report.statistic.partition(" ")
    known = LIBRARY.get(name)
    weight = report.statistic.partition(WEIGHTED)[2]
    columns = [column for column in _columns_of(report) if column != weight]
    told = f"{known.words if known else name} of {_listed(columns)}"
    if known and not known.is_variadic:
        kernels = [entry.kernel for entry in report.sums]
        for order in permutations(columns, len(known.arguments)):
            if [to_text(each) for each in known.expressions(order)] == kernels:
                told = f"{known.words} of {_listed(order)}"
                if report.estimator in DIFFERENCES:
                    first, second, *others = order
                    told = f"{known.words}, {first} minus {second}"
                    told += f", for {_listed(others)}" if others else ""
                break
    return f"{told} {stratum}" if stratum else told


def _drawn_ends(report: Report) -> Iterator[tuple[float, float, str]]:
    """The interval for the population, where the records may be a sample and it has ends."""
    if report.protected != "one record":
        return
    try:
        low, high = Inference(report).interval(kind=POPULATION)
    except UmpcError:
        return
    yield low, high, _drawn(report)


def _listed(names: Sequence[str]) -> str:
    """Names as a sentence has them: a, b and c."""
    return " and ".join([*filter(None, [", ".join(names[:-1])]), *names[-1:]])


def _counted_sentence(report: Report, answer: CountsAnswer) -> str:
    """The number to quote from a table of counts, of each group; else how large the table is."""
    told, counted = f"{answer.title[0].upper()}{answer.title[1:]}: ", report.counts
    found = COUNTED[answer.kind].quoted(answer)
    if not found:
        size = len(counted.values) if counted else 0
        return f"{told}{size} counts of {_whom(report)}"
    parts = []
    whom = {RECORDS: _whom(report)}
    if report.protected == "one record":
        whom[POPULATION] = _drawn(report)
    for each in found:
        known = [end for end in each.intervals.get(RECORDS, ()) if end is not None]
        known += [each.value] if each.value is not None and len(known) == 1 else []
        error = (max(known) - min(known)) / 4 if known else None
        part = f"{each.name} {'none' if each.value is None else rounded(each.value, error)}"
        told_ends = [
            f"{' to '.join('no end' if x is None else rounded(x, error) for x in ends)}, for {who}"
            for kind, who in whom.items()
            if (ends := each.intervals.get(kind))
        ]
        if told_ends:
            part += f" ({answer.level * 100:.3g} % {'; '.join(told_ends)})"
        parts.append(f"{part}, {each.note}" if each.note else part)
    return told + "; ".join(parts)


def _columns_of(report: Report) -> list[str]:
    """The fields that the value's kernels read, and the label of two classes."""
    kernels = [from_text(entry.kernel) for entry in report.sums[:MOST_ROWS]]
    used = {field.name for kernel in kernels for field in fields_of(kernel)}
    return [
        field["name"] for field in report.fields if field["name"] in used or field.get("public")
    ]


def _is_of_all_sets(report: Report) -> bool:
    """Whether the usual interval is for the statistic itself, and not for another value of bins."""
    return report.interval_covers.startswith("the value on all")


def _drawn(report: Report) -> str:
    """The population, or the same other value in it: an interval leaves out the bins' own error."""
    drawn = KIND_WORDS[POPULATION]
    return drawn if _is_of_all_sets(report) else f"the same in {drawn}"


def _whom(report: Report) -> str:
    """The records that the usual interval is for; another value where it is for that."""
    if not _is_of_all_sets(report):
        return report.interval_covers
    return f"these {report.records:,} {'people' if _is_shared(report) else 'records'}"


def _is_shared(report: Report) -> bool:
    """Whether the nodes held shares of one table."""
    return find_protocol(report.protocol).settings().shares_tables


def describe_times(report: Report) -> Iterator[tuple[str, str]]:
    """When the result was made or shown, and when its records were read; a label and a text."""
    if report.finished:
        yield "shown again" if report.replayed else "finished", _minute(report.finished)
    if report.prepared:
        when = _minute(report.prepared_at) if report.prepared_at else "before this run"
        yield "prepared", f"{when}; the records are those of the tables at that time"


def _minute(time: str) -> str:
    """An ISO time in UTC, to the minute, for people."""
    return f"{time[:16].replace('T', ' ')} UTC"


def describe_fields(report: Report) -> Iterator[tuple[str, str]]:
    """Each field's name, and its bounds and resolution or the first of its categories.

    A label's row also says what its classes mean.
    """
    for values in report.fields:
        field = FieldText.from_dict(values)
        shown = textwrap.shorten(field.values(), WIDEST_FIELD, placeholder=" …")
        meaning = report.classes.get(field.name)
        yield field.name, f"{shown}; {meaning}" if meaning else shown


def describe_substitutes(report: Report) -> str:
    """Which values of tables count as others (docs/policy.md). Their site alone knows how many."""
    if report.protocol == "people":  # there is no table: a device sends a value that fits, or none
        return ""
    has_words = [bool(field["categories"]) for field in report.fields]
    told = []
    if not all(has_words):
        told += [
            "a number beyond its bounds counts as the nearer bound, and a word as the lower one"
        ]
    if any(has_words):
        told += ["a word that is none of its field's categories counts as the last of them"]
    return "; ".join(told)


def describe_records(report: Report) -> str:
    """Which records counted, in words."""
    columns = len(report.fields) + bool(report.person)
    told = [describe_complete(columns, report.where, several=bool(report.parts))]
    if report.missing:
        told.append(f"of the nodes that were left, without {', '.join(report.missing)}")
    if report.protected != "one record" and report.counts is None:
        told.append("p-values and intervals for the population take records for independent")
    return "; ".join(told)


def names_of_parts(report: Report) -> list[str]:
    """The name of each of several values: its statistic, its stratum, or both."""
    one_statistic = len({part.statistic for part in report.parts}) == 1
    found = []
    for part in report.parts:
        stratum = part.stratum if one_statistic else f"{part.statistic}, {part.stratum}"
        found.append(stratum if part.stratum else part.statistic)
    return found


def describe_share(report: Report, place: int) -> str:
    """The part of ε that one of several values took."""
    part = report.parts[place]
    shared = f" for all strata of {report.strata!r}" if part.stratum else ""
    return f"epsilon {part.epsilon:.3g}{shared}"


def intervals_of(report: Report, level: float = 0.95) -> list[ReportInterval]:
    """The report's interval of each kind, without those that have no end."""
    inference = Inference(report)
    found = []
    for kind in KINDS:
        try:
            found.append(inference.interval(level, kind))
        except UmpcError:
            continue  # no value, or no end: the report's note says why
    return found


def answers_in(report: Report) -> list[CountsAnswer]:
    """The answers from a released table of counts; none in a report of another kind."""
    return [] if report.counts is None else answers_of(report.counts, report.records)


def errors_of(report: Report) -> list[ErrorSource]:
    """The four sources of error; none where the report has no value."""
    try:
        return Inference(report).errors()
    except UmpcError:
        return []


def describe_test(test: NullTest) -> str:
    """A p-value in one sentence."""
    return (
        f"If {test.hypothesis}, a value as far from {test.null:g} has {test.size} "
        f"({test.alternative}; {test.law}, with the noise)"
    )


def promise_of(report: Report) -> Promise:
    """The promise of a report's run, as its protocol writes it."""
    return find_protocol(report.protocol).promise(PromiseTerms.of_report(report))


def promises(report: Report) -> tuple[str, ...]:
    """The promise, and what the reader may rely on."""
    return (
        *promise_of(report).lines,
        "To the reader: the intervals count all noise that was added, and in 95 % of such studies "
        "each of them holds the value that it is for.",
    )


# --- rows and blocks ------------------------------------------------------------------------------


Line = tuple[str, str, str]
"""A row: what it is, its value, a note."""
Extra = Mapping[str, float | None]
"""Values that only the demo knows: exact, exact_over_edges, and quantised where there are bins."""
Block = tuple[str, Any]
"""A kind of block, and its content: a text, or what the kind says."""
TITLE, HEADING, VALUE, TEXT, QUIET = "title", "heading", "value", "text", "quiet"
PICTURE = "picture"
"""The content is a report and its intervals."""
CURVE = "curve"
"""The content is an answer from a table of counts, whose picture it is."""
HEAT = "heat"
"""The content is a matrix."""
TABLE = "table"
"""The content is a title and its rows."""
FOLDED = "folded"
"""The content is a title and its rows. Where a reader can unfold it, it is folded away."""
REPLAYED = "replayed: stored shares"


def title_of(report: Report) -> str:
    """The statistic and its study; of a matrix the number of its columns."""
    shown = report.statistic
    if (matrix := matrix_of(report)) is not None:
        shown = f"{matrix.statistic} of {len(matrix.columns)} columns"
    return f"{shown} of study {report.study}"


def table_rows(report: Report, extra: Extra) -> Iterator[Line]:
    """All rows in one table, the estimate first."""
    if not report.parts or matrix_of(report) is not None:
        yield "to quote", "", f"{sentence_of(report)}."
    yield from _estimate(report)
    yield from _exact(report, extra)
    yield from _errors(report)
    for label, text in describe_times(report):
        yield label, "", text
    promise = promise_of(report)
    yield "promise", "", promise.protected
    yield "disclosed", "", promise.disclosed
    for rows in sections(report).values():
        yield from rows
    sites = [*_participants(report)]
    yield from sites[:MOST_ROWS]
    if (more := len(sites) - MOST_ROWS) > 0:
        yield f"and {more} more sites", "", "--format json has all of them"


def sections(report: Report) -> dict[str, list[Line]]:
    """The title of each section that follows the estimate and its errors, and its rows."""
    found = {
        "Privacy and protocol": [*_privacy(report)],
        "What was computed": [*_computed(report)],
    }
    if report.rounds and not report.replayed:
        found["What it cost"] = [*_traffic(report), *_seconds(report)]
    return found


def blocks_of(report: Report) -> Iterator[Block]:
    """A document: the values with their intervals, the promises, then everything else."""
    replayed = f" · {REPLAYED}" if report.replayed else ""
    times = "".join(f"{label} {text} · " for label, text in describe_times(report))
    yield TITLE, title_of(report)
    yield QUIET, f"{times}{''.join(_who(report))}study {report.study_hash}{replayed}"
    yield from _values(report)
    yield HEADING, "What was promised to whom"
    for sentence in promises(report):
        yield TEXT, sentence
    if sources := [(each.name, each.size, each.about) for each in errors_of(report)]:
        law = find_protocol(report.protocol).describe_noise(report.noise)
        rows = [*sources, ("law of the noise", "", law)]
        yield FOLDED, ("Where the error comes from, as standard deviations", rows)
    kernels = [("kernel", "", entry.kernel) for entry in report.sums[:MOST_ROWS]]
    seed = report.joint_seed or "a replay does not know it"
    parts = sections(report)
    parts["What was computed"] += [*kernels, ("joint seed", "", seed)]
    for title, rows in (*parts.items(), ("Who took part", [*_participants(report)])):
        yield FOLDED, (title, rows)


def _values(report: Report) -> Iterator[Block]:
    """The value, its picture, its intervals in numbers, and the test; or each of several."""
    if report.parts:
        if (matrix := matrix_of(report)) is not None:
            yield VALUE, f"{sentence_of(report)}."
            yield HEAT, matrix
            yield TEXT, f"{matrix.about}. Each interval is for {report.interval_covers}."
            rows = [(f"{x}, {y}", size, about) for x, y, size, about in pairs_of(matrix)]
            yield FOLDED, (f"All {len(rows)} pairs: {matrix.statistic}", rows)
            return
        yield TEXT, report.note
        for place, name in enumerate(names_of_parts(report)):
            yield HEADING, name
            yield from _values(report.of_part(place))
            yield QUIET, describe_share(report, place)
        return
    if answers := answers_in(report):
        yield VALUE, f"{sentence_of(report)}."
        yield from _answers(answers)
        yield TEXT, report.note
        return
    if report.estimate is None:
        yield VALUE, "no value"
        yield TEXT, report.note
        return
    intervals = intervals_of(report)
    yield VALUE, f"{sentence_of(report)}."
    yield PICTURE, (report, intervals)
    rows = [
        (QUESTIONS[each.kind], describe_ends(report, each.low, each.high), f"for {each.covers}")
        for kind in QUESTIONS
        for each in intervals
        if each.kind == kind
    ]
    yield TABLE, ("Which interval of 95 % answers which question", rows)
    if report.noise_std is not None:
        yield QUIET, f"The noise in the value has a standard deviation of {report.noise_std:.2g}."
    if test := Inference(report).usual_test():
        yield TEXT, f"{describe_test(test)}."
    if report.note:
        yield TEXT, report.note


def _answers(answers: Sequence[CountsAnswer]) -> Iterator[Block]:
    """Each curve, table or test: its picture, its numbers, and its points to unfold."""
    for answer in answers:
        yield HEADING, answer.title
        if answer.series:
            yield CURVE, answer
        for name, value, ends in answer.rows():
            yield TEXT, f"{name}: {value}{'; ' if ends else ''}{ends}"
        for note in answer.notes:
            yield QUIET, note
        if answer.series:
            title = f"{answer.title} in numbers, {answer.level * 100:.3g} %"
            yield FOLDED, (title, answer.series_rows())


def _estimate(report: Report) -> Iterator[Line]:
    """The value with its interval; or each of several values, with its test and part of ε."""
    replayed = REPLAYED if report.replayed else ""
    if not report.parts:
        yield from _value(report, "private estimate", replayed)
        for answer in answers_in(report):
            yield answer.title, "", "; ".join(answer.notes)
            for name, value, ends in (*answer.rows(), *answer.series_rows()):
                yield f"  {name}", value, ends
        return
    yield "private estimates", f"{len(report.parts)}", replayed
    if (matrix := matrix_of(report)) is not None:
        yield "matrix", f"{len(matrix.columns)} columns", matrix.about
        for place, (_, _, size, about) in enumerate(pairs_of(matrix)):
            yield names_of_parts(report)[place], size, about
        yield "  95 % intervals", "", f"each for {report.interval_covers}"
        return
    for place, name in enumerate(names_of_parts(report)):
        own = report.of_part(place)
        yield from _value(own, name, describe_share(report, place))
        if own.estimate is not None:
            yield "  noise, standard deviation", f"{own.noise_std:.3g}", ""
        if test := Inference(own).usual_test():
            yield "  test", "", describe_test(test)
    yield "", "", report.note


def pairs_of(matrix: CorrelationMatrix) -> Iterator[tuple[str, str, str, str]]:
    """Each pair of columns, its value, and its interval with the p-value."""
    for (row, x), (column, y) in combinations(enumerate(matrix.columns), 2):
        value, low, high, p = (
            each[row][column] for each in (matrix.values, matrix.low, matrix.high, matrix.holm)
        )
        about = "" if low is None or high is None else f"95 %: {low:.3f} … {high:.3f}"
        about += "" if p is None else f"; p = {p:.3g} (Holm)"
        yield x, y, "none" if value is None else f"{value:.3f}", about


def _value(report: Report, label: str, about: str) -> Iterator[Line]:
    value = "none" if report.estimate is None else rounded(report.estimate, report.noise_std)
    yield label, value, about
    if report.low is not None and report.high is not None:
        ends = describe_ends(report, report.low, report.high)
        yield "  95 % interval", ends, f"for {report.interval_covers}"
    if report.note:
        yield "", "", report.note


def _exact(report: Report, extra: Extra) -> Iterator[Line]:
    """The exact values, which only the demo knows, and the error of the estimate."""
    if "exact" not in extra:
        return
    exact = extra["exact"]
    shown = "not computed" if exact is None else f"{exact:.6g}"
    yield f"exact, all {_sets(report)}", shown, "only the demo can know it"
    without_noise = extra["quantised"] if "quantised" in extra else extra["exact_over_edges"]
    if without_noise is None or report.estimate is None:
        return
    where = "records' bins" if "quantised" in extra else "same E"
    yield f"exact, {where}", f"{without_noise:.6g}", "pooled records, no noise"
    error = report.estimate - without_noise
    std = report.noise_std
    deviations = f"{abs(error) / std:.1f} standard deviations" if std else ""
    yield "error from noise", f"{error:+.3g}", deviations


def _errors(report: Report) -> Iterator[Line]:
    """The estimate's errors from noise and from sampling, each by itself."""
    if report.estimate is None or report.noise_std is None:
        return
    protocol, is_all = find_protocol(report.protocol), report.edges == report.sets
    law = protocol.describe_noise(report.noise)
    yield "noise, standard deviation", f"{report.noise_std:.3g}", law
    if report.noise_low is not None and report.noise_high is not None:
        ends = describe_ends(report, report.noise_low, report.noise_high)
        without_noise = protocol.value_without_noise(is_all, _sets(report))
        yield "  noise alone, 95 %", ends, f"for {without_noise}"
    sampling = f"standard deviation, because E {'is' if is_all else 'is not'} all {_sets(report)}"
    yield "sampling, at most", f"{report.sampling_std:.3g}", sampling


def _privacy(report: Report) -> Iterator[Line]:
    """Epsilon and delta, whom they hold against, and by which protocol."""
    protocol = find_protocol(report.protocol)
    size = f"{report.epsilon:g}, {report.delta:.2g}"
    yield "epsilon, delta", size, f"against replacing {report.protected}"
    yield "adversary", report.adversary, promise_of(report).sites
    if report.adversary != HONEST and report.noise_std_if_honest is not None:
        note = "standard deviation of the same noise; the difference is the grade's cost"
        yield "noise if honest", f"{report.noise_std_if_honest:.3g}", note
    if report.missing:
        lost = "lost before the release, and no record of theirs is in"
        yield "missing nodes", f"{len(report.missing)}", f"{', '.join(report.missing)}: {lost}"
    yield "nodes", f"{report.nodes}", protocol.describe_collusion(report.max_colluding)
    if told := protocol.describe_gain(report.noise, report.nodes, report.max_colluding):
        yield "less noise", "", told
    if told := protocol.describe_coins(report.coins):
        yield "coins of the noise", report.coins, told
    yield from protocol.describe_helpers()
    evaluated = protocol.describe_evaluation(report.backend)
    how = f"{report.protocol}, {evaluated}, preprocessing: {report.preprocessing}"
    yield "protocol", "", how
    yield "study hash", report.study_hash[:16], ""


def _computed(report: Report) -> Iterator[Line]:
    """The mean of each sum, and the edges, the records and the fields that it is over."""
    yield "estimator", report.estimator, ""
    for number, entry in enumerate(report.sums[:MOST_ROWS], 1):
        noise = f"± {entry.noise_std:.2g} noise, epsilon {entry.epsilon:.3g}"
        label = f"sum {number}, its mean" if len(report.sums) > 1 else "released mean"
        yield label, rounded(entry.mean, entry.noise_std), noise
    if (more := len(report.sums) - MOST_ROWS) > 0:
        yield f"and {more} more sums", "", "--format json has all of them"
    yield "edges |E|", f"{report.edges:,}", f"of {report.sets:,} {_sets(report)}"
    yield "most edges of a record", f"{report.max_degree:,}", ""
    yield "records", f"{report.records:,}", describe_records(report)
    for name, values in describe_fields(report):
        yield f"field {name}", "", values
    if told := describe_substitutes(report):
        yield "values that do not fit", "", told


def _who(report: Report) -> Iterator[str]:
    """The coordinator, the sites and the program, as far as the report has them."""
    if report.coordinator:
        yield f"asked by {report.coordinator} of {', '.join(report.sites)} · "
    if report.version:
        yield f"umpc {report.version} · "


def _participants(report: Report) -> Iterator[Line]:
    """Each site's name, number of records, and the rules by which it took part.

    A replay knows no numbers, and a report of before no names.
    """
    names = [moment.node for moment in report.timeline if moment.step == "propose"]
    names = names or [name for name in report.sites if name not in report.missing]
    names = names or [f"node {number}" for number in range(1, len(report.records_by_node) + 1)]
    unit = "people, in shares" if _is_shared(report) else "records"
    counts = [(f"{count:,}", unit) for count in report.records_by_node]
    for name, (count, told) in zip(names, counts or [("", "")] * len(names), strict=False):
        rules = ""
        if name in report.policies:
            rules = f"its rules: {report.policies[name]}"
        elif report.version:  # an estimate in memory has none, and no site
            rules = "this site's version does not tell its policy"
        yield name, count, "; ".join(filter(None, (told, rules)))


def _traffic(report: Report) -> Iterator[Line]:
    """Rounds and bytes, measured beside predicted."""
    yield "rounds", f"{report.rounds}", f"predicted {report.rounds_predicted}"
    predicted = f"predicted {report.bytes_online_predicted:,}"
    yield "bytes online", f"{report.bytes_online:,}", predicted
    yield from _senders(report)
    predicted = f"predicted {report.bytes_offline_predicted:,}"
    yield "bytes offline", f"{report.bytes_offline:,}", predicted


def _senders(report: Report) -> Iterator[Line]:
    """The bytes online by sender and by step."""
    nodes = report.bytes_online_by_node
    steps = report.bytes_online_by_step
    is_predicted = (
        nodes == report.bytes_online_by_node_predicted
        and steps == report.bytes_online_by_step_predicted
    )
    note = "by node and by step as predicted"
    if not is_predicted:
        note = "by node or by step not as predicted: see --format json"
    fewest = f"{min(nodes, default=0):,}"
    most = f"{max(nodes, default=0):,}"
    yield "  of each node", most if fewest == most else f"{fewest} to {most}", note
    heaps = report.bytes_online_by_shuffler
    if heaps:
        yield "  of each shuffler", f"{max(heaps):,}", "to the coordinator"
    by_step = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in steps.items())
    yield "  of each step", "", by_step


def _seconds(report: Report) -> Iterator[Line]:
    online = "first message on data to last share, with the charge"
    offline = "for the joint seed, E, and material or transfers"
    if report.prepared:
        offline = "of this run; the rest was prepared before"
    yield "seconds online", f"{report.seconds_online:.3f}", online
    yield "seconds offline", f"{report.seconds_offline:.3f}", offline
    in_all = "of the study, without the start of its processes"
    yield "seconds in all", f"{report.seconds_total:.3f}", in_all


def _sets(report: Report) -> str:
    """The plural name of the sets that the kernel takes, such as pairs."""
    return SETS.get(report.degree, "sets")
