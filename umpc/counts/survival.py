"""Kaplan–Meier curves with intervals that the noise cannot break, and tests between groups.

The curve is S(t) = ∏ (r_j − d_j)/r_j over the bins up to t (Kaplan & Meier 1958). In a bin, events
come before censored times. With running totals D of events and C of censored records,

    S(t) = (n − D_t − C_{t−1})/n · ∏_{j<t} (n − D_j − C_{j−1})/(n − D_j − C_j).

A factor (a − D)/(b − D) with a ≥ b grows with D, and (x − D_j)/(x − D_{j−1}) grows with x = n − C.
So S(t) grows with n and with D_j for j < t, and falls with D_t and with every C_j. It follows that
intervals for n and for all running totals at once give one for S(t): no approximation is made, and
no denominator of noise appears. The Nelson–Aalen sum Σ (D_j − D_{j−1})/r_j is linear in D for given
numbers at risk r, and falls with each r_j, which gives its interval in the same way.

A bin of several values may hold events and censored times in any order. Its factor is then at most
(r − d)/r, with all censored records after the events, and at least (r − c − d)/(r − c), with all of
them before. The latter curve is the former one of a table whose censored records are moved to the
end of the bin before. So the lower end is that of the moved table, and the upper end that of the
table itself, with intervals for the totals of both at once. The value between them has half of the
censored records moved (the actuarial method, Cutler & Ederer 1958).

For the population, the interval's ends are widened by Wilson's interval for S at r − d records over
S, which is the variance of Peto et al. 1977, S²(1 − S)/(r − d), and not below Greenwood's. A sum of
hazards is at most −log S, which gives the upper end of a cumulative hazard, also without any event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from umpc.counts.answers import (
    BAND,
    POPULATION,
    RECORDS,
    Bounds,
    CountsAnswer,
    Ends,
    Number,
    Series,
)
from umpc.counts.curves import noise_level, notes_of, sampling_tail
from umpc.counts.simulated import simulated_test
from umpc.counts.table import (
    CountTable,
    Floats,
    NoisyNumbers,
    as_paths,
    cells_of,
    ends_of_bins,
    is_coarse,
    names_of_cells,
    normal_quantile,
    order_of,
    wilson,
)

TINY = 1e-9
LOGRANK, GEHAN = "logrank", "gehan"
ANY_ORDER = (
    "intervals allow for every order of events and censored times in a bin, and the curve takes "
    "half of the censored before the events"
)
LEAST_GROUP = 6.0
"""A tested group has as many records as this many deviations of the noise in its expected events.
With fewer, the estimated numbers at risk are too high, and true hypotheses are rejected."""


@dataclass(frozen=True)
class Group:
    """One group's counts by time and event.

    name: its category, or "all". wide: whether each bin holds several values; none of them if it is
    empty.
    """

    name: str
    counts: NoisyNumbers
    wide: Sequence[bool] = ()

    def moved(self, share: float) -> NoisyNumbers:
        """A share of the censored records of each wide bin is moved to the bin before: (T + 1, 2).

        The first bin is a new one, for those of the bin after it.
        """
        part = share * np.array(self.wide)

        def linear(values: Floats) -> Floats:
            found = np.zeros((*values.shape[:-2], values.shape[-2] + 1, 2))
            found[..., 1:, 1] = values[..., 1]
            found[..., 1:, 0] = values[..., 0] * (1 - part)
            found[..., :-1, 0] += values[..., 0] * part
            return found

        return self.counts.map(linear)

    @cached_property
    def early(self) -> Group:
        """This group with the censored records of wide bins before the events, from the start."""
        return Group(self.name, self.moved(1.0))

    @cached_property
    def middle(self) -> Group:
        """This group with half of the censored records of wide bins before the events."""
        return Group(self.name, self.moved(0.5)) if any(self.wide) else self

    def rates(self) -> tuple[Floats, Floats]:
        """(shares, rates): of those at risk who have the event in each bin, and its hazard.

        In a wide bin those who leave it are at risk for half of it.
        """
        shares = self.middle.hazards[-self.counts.value.shape[0] :]
        return shares, shares / (1 - shares / 2 * np.array(self.wide or False))

    @cached_property
    def totals(self) -> NoisyNumbers:
        """D_t, C_{t−1}, D_t + C_{t−1} − n and n at each bin: (T, 4). None of them ever falls."""

        def linear(values: Floats) -> Floats:
            sums = np.cumsum(values, axis=-2)
            events, lost = sums[..., 1], sums[..., 0] - values[..., 0]
            whole = np.broadcast_to(sums[..., -1:, :].sum(axis=-1), lost.shape)
            return np.stack([events, lost, events + lost - whole, whole], axis=-1)

        return self.counts.map(linear)

    @cached_property
    def repaired(self) -> Floats:
        """Counts by time and event, none of them negative: (T, 2)."""
        total = float(self.totals.value[-1, 3])
        return as_paths(self.counts.value, max(total, 1.0), 2)

    @cached_property
    def hazards(self) -> Floats:
        """The share of those at risk that has the event in each bin."""
        at_risk = np.cumsum(self.repaired.sum(axis=1)[::-1])[::-1]
        events = self.repaired[:, 1]
        return np.asarray(np.where(at_risk > TINY, events / np.maximum(at_risk, TINY), 0.0))

    @cached_property
    def deviations(self) -> Floats:
        """The standard deviations of the totals: (T, 4)."""
        return np.asarray(np.sqrt(np.mean(self.totals.errors**2, axis=0)))

    @cached_property
    def worst(self) -> Floats:
        """The largest error of all totals up to each bin, in deviations: (RUNS, T)."""
        deviation = np.where(self.deviations > TINY, self.deviations, np.inf)
        worst = np.max(np.abs(self.totals.errors) / deviation, axis=-1)
        return np.asarray(np.maximum.accumulate(worst, axis=-1))

    def widths(self, level: float, together: bool) -> Floats:
        """Half widths, in deviations, of all totals up to each bin at once: (T,).

        With wide bins they hold for the totals of both orders. Args: together: the totals up to
        the last bin, for every bin.
        """
        worst, place = self.worst, order_of(level)
        if any(self.wide):
            worst = np.maximum(worst, self.early.worst[:, 1:])
        found = np.partition(worst, place, axis=0)[place]
        return np.full_like(found, found[-1]) if together else np.asarray(found)

    def ends(self, at: int, width: float) -> tuple[Floats, Floats]:
        """(low, high) of the totals up to a bin, at once: (at + 1, 4) each. None of them falls."""
        value = self.totals.value[: at + 1]
        half = width * self.deviations[: at + 1]
        low = np.maximum.accumulate(np.maximum(value - half, LEAST_TOTALS), axis=0)
        high = np.minimum.accumulate((value + half)[::-1], axis=0)[::-1]
        return low, np.maximum(high, low)

    def survival(self, level: float, together: bool) -> tuple[Floats, Floats, Floats]:
        """(low, high, known): ends for S at each bin, and the least number there after events."""
        widths = self.widths(level, together)
        low, high, known = self.curve_ends(widths)
        if any(self.wide):
            low, _, known = (ends[1:] for ends in self.early.curve_ends(np.append(0, widths)))
        return low, high, known

    def curve_ends(self, widths: Floats) -> tuple[Floats, Floats, Floats]:
        """The ends of `survival` with these half widths and one order of events and censored times.

        Each end is the better one of two: with all totals apart, and with the number left as one.
        """
        low, high, known = (np.empty(len(widths)) for _ in range(3))
        for at, own in enumerate(widths):
            down, up = self.ends(at, own)
            fewest, most = max(down[0, 3], 1.0), up[-1, 3]
            least_left, most_left = max(-up[at, 2], 0.0), max(-down[at, 2], 0.0)
            apart = max(fewest - up[at, 0] - up[at, 1], 0.0)
            low[at] = max(
                _curve_end(fewest, down[:at, 0], up[:, 1], apart, 0.0),
                _curve_end(most, down[:at, 0], np.minimum(up[:, 1], down[at, 1]), least_left, 0.0),
            )
            capped = np.minimum(up[:at, 0], down[at, 0])
            lost = np.append(down[:at, 1], up[at, 1])
            high[at] = min(
                _curve_end(most, capped, down[:, 1], most - down[at, 0] - down[at, 1], 1.0),
                _curve_end(fewest, up[:at, 0], lost, most_left, 1.0),
            )
            known[at] = max(apart, least_left)
        return np.minimum.accumulate(low), np.minimum.accumulate(high), known

    def cumulative_hazard(self, level: float, together: bool) -> tuple[Floats, Floats]:
        """(low, high) for the Nelson–Aalen sum at each bin; inf where nobody may be at risk.

        By Abel's summation, Σ (D_j − D_{j−1})/r_j grows with D_t and falls with D_j for j < t.
        Events in a wide bin may come one by one, and then the sum is at most −log S.
        """
        widths = self.widths(level, together)
        low, high = np.zeros(len(widths)), np.full(len(widths), np.inf)
        for at, own in enumerate(widths):
            down, up = self.ends(at, own)
            # at risk are those who are left after the events, and at most those left before
            least = np.maximum(-up[:, 2], down[0, 3] - _before(up[:, 0]) - up[:, 1])
            most = np.append(up[-1, 3], -down[:-1, 2])
            most = np.minimum(most, up[-1, 3] - _before(down[:, 0]) - down[:, 1])
            if most[-1] > TINY:
                path = np.append(np.minimum(up[:at, 0], down[at, 0]), down[at, 0])
                low[at] = np.sum((path - _before(path)) / most)
            if least[-1] > TINY:
                path = np.append(down[:at, 0], up[at, 0])
                high[at] = np.sum((path - _before(path)) / least)
        if any(self.wide):
            high = most_hazard(self.survival(level, together)[0])
        return np.maximum.accumulate(np.maximum(low, 0)), high

    def sampled(self, level: float) -> tuple[Floats, Floats]:
        """(low, high) for S of the population at each bin."""
        tail = sampling_tail(level)
        low, high, known = self.survival(noise_level(level), together=False)
        # where nobody may be left, the curve is at most what it was before
        last = np.maximum.accumulate(np.where(known > 0, np.arange(len(known)), 0))
        return (
            wilson(low, known / np.maximum(low, TINY), tail)[0],
            wilson(high, known / np.maximum(high, TINY), tail)[1][last],
        )


def most_hazard(least: Floats) -> Floats:
    """The largest cumulative hazard of a curve that is at least so high; inf for 0."""
    return np.asarray(np.where(least > 0, -np.log(np.maximum(least, TINY)), np.inf))


LEAST_TOTALS = np.array([0.0, 0.0, -np.inf, 0.0])
"""The least possible values of the totals."""


def _before(totals: Floats) -> Floats:
    """Running totals before each bin."""
    return np.append(0.0, totals[:-1])


def _curve_end(whole: float, events: Floats, lost: Floats, left: float, unknown: float) -> float:
    """S at bin t from totals.

    Args: whole: n. events: D_j for j < t. lost: C_{j−1} for j ≤ t. left: n − D_t − C_{t−1}.
        unknown: where these numbers leave nobody at t.
    """
    after = whole - events - lost[1:]
    if left <= 0 or np.any(after <= TINY):
        return unknown
    return min(left / whole * float(np.prod((whole - events - lost[:-1]) / after)), 1.0)


def groups_of(table: CountTable, time: int, event: int, group: int | None) -> list[Group]:
    """One group for each category, or a single one."""
    first, last = ends_of_bins(table.report.axes[time])
    wide = [bool(each) for each in first < last]
    if group is None:
        return [Group("all", table.onto(time, event), wide)]
    counts = table.onto(time, event, group)
    field = table.report.axes[group]
    return [
        Group(f"{field.field} {name}", counts.at(place), wide)
        for place, name in enumerate(names_of_cells(field))
    ]


def kaplan_meier(
    table: CountTable, level: float, time: int, event: int, group: int | None = None
) -> CountsAnswer:
    """The survival curve of each group, its median, and its mean up to the largest time.

    The band holds the curve of these records at all times. A group's band is for that group alone.
    """
    axis = table.report.axes[time]
    first, places = ends_of_bins(axis)
    series, numbers = [], []
    for each in groups_of(table, time, event, group):
        value = np.cumprod(1 - each.rates()[0])
        low, high, _ = each.survival(level, together=False)
        band_low, band_high, _ = each.survival(level, together=True)
        intervals = {
            RECORDS: Bounds.within(low, high, 0, 1),
            BAND: Bounds.within(band_low, band_high, 0, 1),
            POPULATION: Bounds.within(*each.sampled(level), 0, 1),
        }
        curve = Series(each.name, places.tolist(), value.tolist(), intervals)
        series.append(curve)
        about = "" if group is None else f", {each.name}"
        numbers.append(_median(curve, first, f"median{about}"))
        numbers.append(_restricted_mean(curve, first, f"restricted mean{about}"))
    return CountsAnswer(
        "kaplan_meier",
        f"Kaplan–Meier curve of {axis.field}",
        level,
        axis.field,
        "share without the event",
        series,
        numbers,
        [*notes_of(axis, ANY_ORDER), f"the restricted mean is up to {places[-1]:.6g}"],
    )


def _median(curve: Series, firsts: Floats, name: str) -> Number:
    """The first time at which S is at most 1/2; its interval inverts that of S.

    The curve may be there from the first value of a bin on, and is there at its last value.

    Args: firsts: the first value of each bin.
    """

    def reached(values: list[float]) -> int | None:
        return next((at for at, s in enumerate(values) if s <= 0.5 + TINY), None)

    intervals: dict[str, Ends] = {}
    for kind in (RECORDS, POPULATION):
        bounds = curve.intervals[kind]
        low, high = reached(bounds.low), reached(bounds.high)
        intervals[kind] = (
            None if low is None else float(firsts[low]),
            None if high is None else curve.x[high],
        )
    at = reached(curve.value)
    if at is None:
        return Number(name, None, intervals, "the curve stays above 1/2")
    before = curve.value[at - 1] if at else 1.0
    part = min((before - 0.5) / (before - curve.value[at]), 1.0)
    return Number(name, float(firsts[at] + part * (curve.x[at] - firsts[at])), intervals)


def _restricted_mean(curve: Series, firsts: Floats, name: str) -> Number:
    """The area below S up to the last bin. Its interval is the area below the ends of S.

    Inside a wide bin, S is between its values at both ends. The deviation of an integral is at most
    the integral of the deviations, so the ends of intervals for each time give an interval for the
    population, too; for these records the band does.

    Args: firsts: the first value of each bin.
    """
    inside = np.array(curve.x) - firsts
    between = firsts - np.append(0.0, curve.x[:-1])

    def under(values: list[float], share: float) -> float:
        """share: the part of a bin in which S already has the value of the bin's end."""
        before = np.append(1.0, values[:-1])
        fallen = before + share * (np.array(values) - before)
        return float(np.sum(before * between + fallen * inside))

    intervals: dict[str, Ends] = {}
    for kind, ends in ((RECORDS, BAND), (POPULATION, POPULATION)):
        bounds = curve.intervals[ends]
        intervals[kind] = under(bounds.low, 1.0), under(bounds.high, 0.0)
    return Number(name, under(curve.value, 0.5), intervals)


def nelson_aalen(
    table: CountTable, level: float, time: int, event: int, group: int | None = None
) -> CountsAnswer:
    """The cumulative hazard of each group (Nelson 1972, Aalen 1978).

    The band holds the curve of these records at all times. A group's band is for that group alone.
    For the population, the lower end falls as Byar's lower end for a Poisson count of D events does
    (Breslow & Day 1987, section 2.3), and the upper end is −log of the lower end of S.
    """
    axis = table.report.axes[time]
    series = []
    for each in groups_of(table, time, event, group):
        inner_low, _ = each.cumulative_hazard(noise_level(level), together=False)
        most = most_hazard(each.sampled(level)[0])
        events = each.totals.map(lambda values: values[..., 0]).ends(noise_level(level), 1)[0]
        z = normal_quantile(1 - sampling_tail(level))
        events = np.maximum(events, 0.05)
        part = np.maximum(1 - 1 / (9 * events) - z / (3 * np.sqrt(events)), 0) ** 3
        intervals = {
            RECORDS: Bounds.within(*each.cumulative_hazard(level, together=False), 0, np.inf),
            BAND: Bounds.within(*each.cumulative_hazard(level, together=True), 0, np.inf),
            POPULATION: Bounds.within(inner_low * part, most, 0, np.inf),
        }
        value, places = np.cumsum(each.rates()[1]), ends_of_bins(axis)[1]
        series.append(Series(each.name, places.tolist(), value.tolist(), intervals))
    title = f"Nelson–Aalen curve of {axis.field}"
    notes = notes_of(axis, ANY_ORDER)
    name = "cumulative hazard"
    return CountsAnswer("nelson_aalen", title, level, axis.field, name, series, [], notes)


# --- tests between groups -------------------------------------------------------------------------


def compare_groups(table: CountTable, kind: str, time: int, event: int, group: int) -> CountsAnswer:
    """The log-rank test (Mantel 1966), or Gehan's test (Gehan 1965, Breslow 1970).

    The simulated studies have one hazard for all groups, and each group's own censoring; both are
    those of the released table. There is no p-value where the noise of a group's number, which
    changes the events that are expected of it, is not far below that number.
    """
    axes, n = table.report.axes, table.records
    counts = table.onto(time, event, group)
    seen = as_paths(counts.value, n, 3)
    groups = counts.map(lambda values: values.sum(axis=(-3, -2)))
    noise = np.std(groups.errors, axis=0) * seen[:, 1].sum() / n
    value, size = simulated_test(
        table,
        kind,
        (time, event, group),
        _one_hazard(seen),
        lambda tables, variance: _statistic(tables, n, kind, variance),
        is_hidden=bool(np.any(groups.value < LEAST_GROUP * noise)),
    )
    freedom = Number("degrees of freedom", float(cells_of(axes[group]) - 1))
    name = "log-rank test" if kind == LOGRANK else "Gehan's test"
    title = f"{name} of {axes[time].field} between groups of {axes[group].field}"
    notes = ["the noise's variance is added to that of chi-squared"]
    if is_coarse(axes[time]):
        notes.append(f"events of one bin of {axes[time].field} count as at one time")
    return CountsAnswer(kind, title, 0.95, "", "", [], [value, freedom, size], notes)


def _one_hazard(seen: Floats) -> Floats:
    """Expected counts (T, 2, G) if all groups had the hazard of all records together."""
    whole = seen.sum(axis=(0, 1))
    expected, left, at_risk = np.zeros_like(seen), whole.copy(), whole.copy()
    for at, (lost, events) in enumerate(seen):
        hazard = events.sum() / max(at_risk.sum(), TINY)
        stayed = np.maximum(at_risk - events, TINY)
        expected[at, 1] = left * min(hazard, 1.0)
        left = left - expected[at, 1]
        expected[at, 0] = left * np.minimum(lost / stayed, 1.0)
        left, at_risk = left - expected[at, 0], at_risk - lost - events
    return expected


def _statistic(counts: Floats, n: float, kind: str, variance: float) -> Floats:
    """Σ (O − E) with its covariance, as a chi-squared statistic, after the repair of the counts.

    The covariance is that of the records and that of the noise, to first order. A count z of group
    g and bin t changes w·(O − E) by (w·is_event − Λ_t)·(z_g − s_g·Σ z), where s is the share of
    those at risk, and Λ = Σ w·(events/at risk) comes from what z changes in s until t. Λ is taken
    as at most w: late sums are mostly noise. Without the noise's part, a small group that noise
    makes nearly empty would seem to have no variance, and true hypotheses would be rejected.

    Args: counts: (runs, T, 2, G). variance: of a count's noise. Returns: (runs,) float64.
    """
    repaired = as_paths(counts, n, 3)
    at_risk = np.cumsum(repaired.sum(axis=2)[:, ::-1], axis=1)[:, ::-1]
    events = repaired[:, :, 1].sum(axis=2, keepdims=True)
    whole = at_risk.sum(axis=2, keepdims=True)
    share = at_risk / np.maximum(whole, TINY)
    weight = whole if kind == GEHAN else np.ones_like(whole)
    gap = (weight * (repaired[:, :, 1] - events * share)).sum(axis=1)[:, :-1]
    spread = weight**2 * events * np.maximum(whole - events, 0) / np.maximum(whole - 1, TINY)
    spread = np.where(whole > 1, spread, 0)
    hazard = np.minimum(np.cumsum(weight * events / np.maximum(whole, 1), axis=1), weight)
    noise = variance * ((weight - hazard) ** 2 + hazard**2)
    groups = share.shape[2]
    mixed = np.einsum("rtz,rtg,rth->rgh", groups * noise - spread, share, share)
    crossed = (noise * share).sum(axis=1)
    covariance = mixed - crossed[:, :, None] - crossed[:, None]
    covariance += np.eye(groups) * ((spread * share + noise).sum(axis=1) + TINY)[:, None]
    solved = np.linalg.solve(covariance[:, :-1, :-1], gap[..., None])[..., 0]
    return np.asarray((gap * solved).sum(axis=1))
