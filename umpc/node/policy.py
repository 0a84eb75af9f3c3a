"""The rules of a site's administrator, beyond the budget: section [policy] of node.toml.

The node checks them at every proposal.

| key | a study is refused unless |
|---|---|
| `coordinators` | its coordinator's certificate has one of these names |
| `statistics` | it is one of these statistics, of the library or of counts; or see `kernels` |
| `kernels` | its computation has one of these hashes, or `statistics` allows it |
| `fields` | it uses no other fields |
| `public_labels` | it takes no other field for a label that everybody may know |
| `public_filters` | its condition on records (`where`) reads no other field |
| `person` | it protects all records of one person together, told apart by this column |
| `max_epsilon` | it asks for at most this ε |
| `max_delta` | it costs at most this δ |
| `min_nodes` | it has at least this number of nodes |
| `min_colluding` | its noise withstands at least this number of colluding nodes |
| `protocol`, `noise`, `coins`, `backend`, `preprocessing`, `adversary` | each is one of these |
| `dealers`, `shufflers` | its dealer, or all its shufflers, have these names |
| `min_records` | the node has at least this number of complete records for it |
| `trusted_curator` | it shows its coordinator no raw records, or this key is true |
| `approval` | a person has accepted it (`approvals.py`) |

Only `min_records` needs the table. Five missing keys refuse. Without `trusted_curator` a study
that shows raw records is refused. Without `public_labels` no field is a public label. Without
`public_filters` no study may have a condition on records. Without `person` no study may tell people
apart by a column. Without `min_colluding` the noise must withstand all nodes but one.

*Reveals*: a refusal names the rule, what it allows and what the study has. A refusal for
`min_records` tells neither the number of records nor the number asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from umpc.errors import PolicyRefused
from umpc.node.budget.budget_account import shown
from umpc.protocols.registry import protocol_of
from umpc.study.computation import computation_hash
from umpc.study.document import Study
from umpc.study.rules import columns_of
from umpc.ustat.statistics import LIBRARY, Statistic

KINDS = ("protocol", "noise", "coins", "backend", "preprocessing", "adversary")
"""The facts of how a study runs. `possible_values` lists what each may be."""
LISTS = ("coordinators", "statistics", "kernels", "fields", "dealers", "shufflers", *KINDS)
"""The rules that list what is allowed, where they restrict anything."""
ADD_IT = "have its administrator add it"
SHOWN = 8
"""Largest number of names in one refusal, which is one line."""
MOST_KERNEL = 200
"""Characters of a kernel that a refusal shows. It leaves out a longer one, and cuts none."""
WORDS = {
    "coordinators": "only {} may ask",
    "statistics": "only the statistics {} are computed",
    "kernels": "computations of {} hash(es) are allowed as well",
    "fields": "only the fields {} are read",
    "public_labels": "the labels {} may be known to everybody",
    "public_filters": "conditions may read {}",
    "person": "all rows of one person are protected together, told apart by {}",
    "max_epsilon": "a study costs at most epsilon {}",
    "max_delta": "a study costs at most delta {}",
    "min_records": "this site has at least {} complete rows for a study",
    "min_nodes": "a study has at least {} sites",
    "min_colluding": "the noise withstands {} that collude",
    "dealers": "only {} may deal",
    "shufflers": "only {} may shuffle",
    "trusted_curator": "RAW RECORDS may go to a coordinator",
    "approval": "a person accepts each study",
}
"""Key → what the rule says. The kinds of KINDS say themselves."""


def rules_in_words(note: str) -> str:
    """Return the rules of a row of the audit trail as one sentence.

    Args: note: of an event start or policy. A text that a crash or the limit cut stays as it is.
    """
    try:
        rules: dict[str, object] = json.loads(note)
    except ValueError:
        return note
    told = []
    for key, value in sorted(rules.items()):
        listed = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if key == "kernels" and isinstance(value, list):
            listed = str(len(value))
        told.append(WORDS.get(key, f"{key} is one of {{}}").format(listed or "none"))
    return f"{'; '.join(told) or 'no rule restricts a study'}."


@dataclass(frozen=True)
class Policy:
    """The rules, by their keys.

    None, 0 and False restrict nothing, with five exceptions. A `trusted_curator` of False refuses
    studies that show raw records, an empty `public_labels` refuses public labels, an empty
    `public_filters` refuses conditions, an empty `person` refuses studies that tell people apart,
    and a `min_colluding` of None asks for all nodes but one.
    """

    coordinators: frozenset[str] | None = None
    statistics: frozenset[str] | None = None
    kernels: frozenset[str] | None = None
    fields: frozenset[str] | None = None
    public_labels: frozenset[str] = frozenset()
    public_filters: frozenset[str] = frozenset()
    person: str = ""
    max_epsilon: Fraction | None = None
    max_delta: Fraction | None = None
    min_records: int = 0
    min_nodes: int = 0
    min_colluding: int | None = None
    protocol: frozenset[str] | None = None
    noise: frozenset[str] | None = None
    coins: frozenset[str] | None = None
    backend: frozenset[str] | None = None
    preprocessing: frozenset[str] | None = None
    adversary: frozenset[str] | None = None
    dealers: frozenset[str] | None = None
    shufflers: frozenset[str] | None = None
    trusted_curator: bool = False
    approval: bool = False

    def check(self, study: Study, node: str) -> None:
        """Check all rules that need neither data nor a person.

        Raises: PolicyRefused, which names the first broken rule.
        """
        for line in self._broken(study, node):
            raise PolicyRefused(f"{node} allows {line}", culprit=node, step="propose")

    def told(self, study: Study) -> str:
        """Return which rules let a study through, in words, for its coordinator and its report.

        *Reveals*: that there are lists, and numbers that a refusal tells any coordinator whom the
        site answers. No list is told, because it may name others, and no `min_records`, because a
        later refusal would then bound the number of records.
        """
        lists = [key for key in LISTS if getattr(self, key) is not None]
        parts = [f"own lists say which {', '.join(lists)} are allowed"] if lists else []
        for key in ("max_epsilon", "max_delta", "min_nodes", "person"):
            if value := getattr(self, key):
                told = f"{float(value):g}" if isinstance(value, Fraction) else value
                parts.append(WORDS[key].format(told))
        least = self.min_colluding
        colluding = "all other sites" if least is None else f"{least} site{'s' * (least != 1)}"
        parts.append(WORDS["min_colluding"].format(colluding))
        if self.min_records:
            parts.append("enough complete rows")
        if protocol_of(study).discloses(study):
            parts.append(WORDS["trusted_curator"])
        parts.append(WORDS["approval"] if self.approval else "no person is asked")
        return "; ".join(parts)

    def check_records(self, count: int, node: str) -> None:
        """Check the number of complete records.

        Raises: PolicyRefused. Only the administrator can read the numbers.
        """
        if count < self.min_records:
            raise PolicyRefused(
                f"{node} has fewer complete records than its policy asks for (min_records under "
                "[policy]); leave out fields that are often missing, or run the study without this "
                "node",
                culprit=node,
                step="propose",
                detail=f"{count} complete records, min_records = {self.min_records}",
            )

    def check_delta(self, delta: Fraction, node: str) -> None:
        """Check the whole δ of a release, with that of finite draws. Raises: PolicyRefused."""
        for line in self._broken_delta(delta):
            raise PolicyRefused(f"{node} allows {line}", culprit=node, step="prepare")

    def _broken(self, study: Study, node: str) -> Iterator[str]:
        """A line for each broken rule: what is allowed, the rule, what came, what to do."""
        disclosed = protocol_of(study).discloses(study)
        if disclosed and not self.trusted_curator:
            yield (
                f"no trusted curator (trusted_curator under [policy]), and this study would show "
                f"all records of these fields to the coordinator {study.coordinator!r}: "
                f"{_named(disclosed)}; take another protocol, or have its administrator set "
                f"trusted_curator = true"
            )
        if self.coordinators is not None and study.coordinator not in self.coordinators:
            yield _only(
                f"studies of {_named(self.coordinators)}",
                "coordinators",
                f"one of {study.coordinator!r}",
                "have one of those run it, or have its administrator add the name",
            )
        yield from self._broken_computation(study)
        people = {study.people.column} if study.people else set()
        beyond = protocol_of(study).columns_read(study, node) - (self.fields or frozenset())
        if self.fields is not None and beyond:
            allowed = f"the fields {_named(self.fields)}"
            advice = f"leave that out of the study, or {ADD_IT}"
            yield _only(allowed, "fields", _named(beyond), advice)
        labels = {field.name for field in study.fields if field.public} - self.public_labels
        if labels:
            allowed = f"as public labels {_named(self.public_labels)}"
            advice = f"take another statistic, or {ADD_IT}"
            yield _only(allowed, "public_labels", _named(labels), advice)
        read = set(study.condition.fields) if study.condition else set()
        if hidden := read - self.public_filters:
            yield (
                f"conditions on {_named(self.public_filters)} only (public_filters under "
                f"[policy]), and where reads {_named(hidden)}: the number of records that it keeps "
                "would be told; leave that out of where, or have its administrator add it"
            )
        yield from self._broken_person(people)
        yield from self._broken_number(study)
        yield from self._broken_delta(protocol_of(study).known_delta(study))
        yield from self._broken_helpers(study)
        for key in KINDS:
            rule, came = getattr(self, key), getattr(study, key)
            if rule is not None and came not in rule:
                advice = f"set {key} in the study, or {ADD_IT}"
                yield _only(f"{key} {_named(rule)}", key, repr(came), advice)

    def _broken_person(self, people: set[str]) -> Iterator[str]:
        """Yield a line unless the study tells people apart by the site's own column, or not at all.

        The number of records that are left is told, and it counts values of that column. So a
        coordinator may not choose the column. Args: people: the study's column, if it has one.
        """
        if self.person and people != {self.person}:
            yield (
                f"studies that protect people only, told apart by {self.person!r} (person under "
                f"[policy]), and {_named(people)} came; write person = {self.person!r} and "
                "records_per_person in the study"
            )
        if people and not self.person:
            yield (
                f"studies without person (person under [policy] names no column), and "
                f"{_named(people)} came: the number of records that are left would tell of its "
                "values; leave person out of the study, or have its administrator name the column "
                "of people"
            )

    def _broken_number(self, study: Study) -> Iterator[str]:
        """Yield a line for each number beyond its bound."""
        if self.max_epsilon is not None and study.exact_epsilon > self.max_epsilon:
            yield (
                f"at most epsilon {self.max_epsilon} for a study (max_epsilon under [policy]), and "
                f"{study.exact_epsilon} came; ask for at most that, or have its administrator "
                "raise it"
            )
        if len(study.nodes) < self.min_nodes:
            allowed = f"studies of at least {self.min_nodes} nodes"
            yield _only(
                allowed, "min_nodes", f"one of {len(study.nodes)}", "run it with more nodes"
            )
        colluding = self.min_colluding
        if colluding is None and study.max_colluding < len(study.nodes) - 1:
            yield (
                "only noise that withstands all other nodes together (the default of min_colluding "
                f"under [policy]), and max_colluding = {study.max_colluding} of {len(study.nodes)} "
                "nodes came; raise it in the study, or have its administrator set min_colluding"
            )
        if colluding is not None and study.max_colluding < colluding:
            yield (
                f"only noise that withstands at least {colluding} colluding nodes "
                f"(min_colluding under [policy]), and max_colluding = {study.max_colluding} came; "
                "raise it in the study, with more nodes if it has too few"
            )

    def _broken_delta(self, delta: Fraction) -> Iterator[str]:
        """Yield a line if δ is beyond its bound."""
        if self.max_delta is not None and delta > self.max_delta:
            yield (
                f"at most delta {shown(self.max_delta)} for a study (max_delta under [policy]), "
                f"and {shown(delta)} came; ask for less, take noise that costs less delta, or "
                "have its administrator raise it"
            )

    def _broken_helpers(self, study: Study) -> Iterator[str]:
        """Yield a line for a dealer or shuffler that is not listed."""
        helpers = {
            "dealers": [study.dealer] if study.dealer else [],
            "shufflers": study.shufflers,
        }
        for key, came in helpers.items():
            allowed = getattr(self, key)
            beyond = {each.name for each in came} - (allowed or frozenset())
            if allowed is not None and beyond:
                advice = f"name others in the study, or {ADD_IT}"
                yield _only(f"the {key} {_named(allowed)}", key, _named(beyond), advice)

    def _broken_computation(self, study: Study) -> Iterator[str]:
        """Yield a line unless the statistic is allowed by name, or the computation by its hash."""
        rules = {"statistics": self.statistics, "kernels": self.kernels}
        given = {key: allowed for key, allowed in rules.items() if allowed is not None}
        came = computation_hash(study)
        if not given or came in (self.kernels or frozenset()):
            return
        if protocol_of(study).sure_statistic(study) in (self.statistics or ()):
            return
        if all(
            any(computes(each, LIBRARY[name]) for name in self.statistics or () if name in LIBRARY)
            for each in study.single_statistics
        ):
            return
        allows = {
            "statistics": f"the library's {_named(self.statistics or ())} with default parameters",
            "kernels": "kernels of certain hashes" if self.kernels else "no kernel by its hash",
        }
        kernel = study.parsed_kernels[0].text
        kernel = f" with the kernel {kernel}" if len(kernel) <= MOST_KERNEL else ""
        words = protocol_of(study).words(study)
        yield (
            f"{' and '.join(allows[key] for key in given)} only ({' and '.join(given)} under "
            f"[policy]), and {words}{kernel} came; its administrator may add {came} to "
            "kernels under [policy]"
        )


def _only(allowed: str, key: str, came: str, advice: str) -> str:
    """Return the line of a rule that allows some things only."""
    return f"{allowed} only ({key} under [policy]), and {came} came; {advice}"


ANYTHING = Policy()
"""The policy without rules."""


def computes(study: Study, statistic: Statistic) -> bool:
    """Return whether a study computes exactly this statistic, with default parameters.

    The fields must differ: the covariance of a field with itself is its variance, which is allowed
    by its own name.
    """
    return columns_of(study, statistic) is not None


def _named(names: Iterable[str]) -> str:
    """Return at most SHOWN names in one line, or "nothing" if there are none."""
    ordered = sorted(names)
    shown = [repr(name[:63]) for name in ordered[:SHOWN]]
    return ", ".join([*shown, *(["…"] if len(ordered) > SHOWN else [])]) or "nothing"
