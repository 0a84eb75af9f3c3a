"""The error if every record drew its partners alone, without pairings of all records.

Paper: Bell et al. 2020, appendix C.1: "sampling schemes that can be run independently by each user
without global coordination (such as sampling P/2 other users uniformly at random) lead to a slight
increase in variance as users are not guaranteed to appear evenly across the sampled pairs."

Each of n records picks m others, all different. It is picked itself by about as many: a binomial
number of mean m and variance v = m (1 − m/(n − 1)). The mean over the n·m pairs has

- from the kernel's part g(x) + g(y) of single records: v·n/(n − 1)·Σ g²/(n m)², where pairings have
  nothing, as every record is in as many pairs;
- from the rest h: Var(h)·(1 + m/(n − 1))/(n m), as two records may pick each other.

*Privacy.* The guarantee needs a bound of a record's pairs, and nobody can bound who picks it. So a
record refuses to be picked more than c times, and its ε is divided by m + c. That costs more than
the sampling: c is the least number at which at most one pick in a hundred is refused. A study here
draws E from the joint seed, so it has no need of this; `umpc plan --tune` prints its error.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, lgamma, log, log1p, sqrt

from umpc.ustat.design import Moments

REFUSED = 0.01
"""The largest share of picks that are refused."""


@dataclass(frozen=True)
class DrawnAlone:
    """Every one of `records` records picks `partners` others. Args: at least 3 records."""

    records: int
    partners: int

    @property
    def pairs(self) -> int:
        """The number of pairs: n·m."""
        return self.records * self.partners

    @property
    def most_asked(self) -> int:
        """c: a record refuses to be picked more often."""
        # E max(0, X − c) of a binomial X, by Σ_{i ≥ c} P(X > i).
        above = 0.0
        refused = 0.0
        for c in range(self._most_likely_asked, -1, -1):
            if refused + above > REFUSED * self.partners:
                return c + 1
            refused += above
            above += self._odds_of_asked(c)
        return 0

    @property
    def _most_likely_asked(self) -> int:
        """A number of picks that a record exceeds with negligible odds."""
        return min(self.records - 1, int(self.partners + 20 * sqrt(self.partners) + 40))

    def _odds_of_asked(self, times: int) -> float:
        """The binomial probability that so many records pick one record."""
        others = self.records - 1
        odds = self.partners / others
        if odds >= 1:
            return float(times == others)
        ways = lgamma(others + 1) - lgamma(times + 1) - lgamma(others - times + 1)
        return exp(ways + times * log(odds) + (others - times) * log1p(-odds))

    @property
    def degree(self) -> int:
        """The most pairs of a record."""
        return self.partners + self.most_asked

    def sampling_std(self, moments: Moments) -> float:
        """The error from these pairs in place of all. Args: moments: of the kernel over a table."""
        n, m = self.records, self.partners
        squares = moments.linear[0] * n * (n - 1) / (2 * (n - 2))
        spread = m * (1 - m / (n - 1))
        linear = spread * n / (n - 1) * squares / self.pairs**2
        rest = moments.rest * (1 + m / (n - 1)) / self.pairs
        return sqrt(linear + rest)

    def noise_std(self, width: float, epsilon: float) -> float:
        """The noise of the mean, about. Args: width: of the kernel's range. epsilon: a record's."""
        return sqrt(2 / self.pairs) * width * self.degree / epsilon
