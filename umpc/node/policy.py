"""What a site's administrator allows beyond the budget: the rules under [policy] of node.toml, for every proposal.

| key | a study is refused unless |
|---|---|
| `coordinators` | its coordinator's certificate has one of these names |
| `statistics`, `kernels` | it is one of these statistics of the library, or all its kernels have hashes of these |
| `fields` | it uses no other fields |
| `max_epsilon` | it asks for at most this |
| `min_nodes` | it has at least so many nodes |
| `min_colluding` | its noise withstands at least so many colluding nodes |
| `protocol`, `noise`, `backend`, `preprocessing` | each is one of these |
| `min_records` | the node has at least so many complete records for it: the only rule that needs the table |
| `trusted_curator` | it shows its coordinator no raw records, or this is true: refused also where the key is missing |
| `approval` | a person has accepted it (`approvals.py`) |

*Reveals*: a refusal names the rule, what it allows and what the study has. Of `min_records` it tells only that there
are fewer, neither how many nor how many are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

from umpc.errors import KernelError, PolicyRefused
from umpc.protocols.registry import protocol_of
from umpc.study.document import Study
from umpc.ustat.expression import Expression, Rebuild, interpret
from umpc.ustat.statistics import LIBRARY, Statistic
from umpc.ustat.text import MAX_DEPTH, to_text

KINDS = ("protocol", "noise", "backend", "preprocessing")
"""The facts of how a study runs. `possible_values` lists what each may be."""
SHOWN = 8
"""Names in one refusal; it is one line."""


@dataclass(frozen=True)
class Policy:
    """The rules, by their keys; None, 0 and False ask for nothing; only `trusted_curator` must be true to allow."""

    coordinators: frozenset[str] | None = None
    statistics: frozenset[str] | None = None
    kernels: frozenset[str] | None = None
    fields: frozenset[str] | None = None
    max_epsilon: Fraction | None = None
    min_records: int = 0
    min_nodes: int = 0
    min_colluding: int = 0
    protocol: frozenset[str] | None = None
    noise: frozenset[str] | None = None
    backend: frozenset[str] | None = None
    preprocessing: frozenset[str] | None = None
    trusted_curator: bool = False
    approval: bool = False

    def check(self, study: Study, node: str) -> None:
        """All rules that need neither data nor a person. Raises: PolicyRefused naming the first that is broken."""
        for line in self._broken(study):
            raise PolicyRefused(f"{node} allows {line}", culprit=node, step="propose")

    def check_records(self, count: int, node: str) -> None:
        """Raises: PolicyRefused, of which only the administrator reads the numbers."""
        if count < self.min_records:
            raise PolicyRefused(
                f"{node} has fewer complete records than its policy asks for (min_records under [policy]); leave out "
                f"fields that are often missing, or run the study without this node",
                culprit=node,
                step="propose",
                detail=f"{count} complete records, min_records = {self.min_records}",
            )

    def _broken(self, study: Study) -> Iterator[str]:
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
            yield (
                f"studies of {_named(self.coordinators)} only (coordinators under [policy]), and one of "
                f"{study.coordinator!r} came; have one of those run it, or have its administrator add the name"
            )
        yield from self._broken_computation(study)
        beyond = {field.name for field in study.fields} - (self.fields or frozenset())
        if self.fields is not None and beyond:
            yield (
                f"the fields {_named(self.fields)} only (fields under [policy]), and {_named(beyond)} came; leave that "
                f"out of the study, or have its administrator add it"
            )
        if self.max_epsilon is not None and study.exact_epsilon > self.max_epsilon:
            yield (
                f"at most epsilon {self.max_epsilon} for a study (max_epsilon under [policy]), and "
                f"{study.exact_epsilon} came; ask for at most that, or have its administrator raise it"
            )
        if len(study.nodes) < self.min_nodes:
            yield (
                f"studies of at least {self.min_nodes} nodes only (min_nodes under [policy]), and one of "
                f"{len(study.nodes)} came; run it with more nodes"
            )
        if study.max_colluding < self.min_colluding:
            yield (
                f"only noise that withstands at least {self.min_colluding} colluding nodes (min_colluding under "
                f"[policy]), and max_colluding = {study.max_colluding} came; raise it in the study, with more nodes "
                f"if it has too few"
            )
        for key in KINDS:
            allowed, came = getattr(self, key), getattr(study, key)
            if allowed is not None and came not in allowed:
                yield (
                    f"{key} {_named(allowed)} only ({key} under [policy]), and {came!r} came; set {key} in the study, "
                    f"or have its administrator add it"
                )

    def _broken_computation(self, study: Study) -> Iterator[str]:
        """A statistic that is allowed by name or by the hashes of all its kernels."""
        rules = {"statistics": self.statistics, "kernels": self.kernels}
        given = {key: allowed for key, allowed in rules.items() if allowed is not None}
        unknown = [
            kernel for kernel in study.parsed_kernels if kernel.hash not in (self.kernels or ())
        ]
        if (
            not given
            or not unknown
            or any(computes(study, LIBRARY[name]) for name in self.statistics or ())
        ):
            return
        allows = {
            "statistics": f"the library's {_named(self.statistics or ())} with default parameters",
            "kernels": "kernels of certain hashes" if self.kernels else "no kernel by its hash",
        }
        yield (
            f"{' and '.join(allows[key] for key in given)} only ({' and '.join(given)} under [policy]), and "
            f"{study.statistic[:63]!r} with the kernel {unknown[0].text[:200]} came; its administrator may add "
            f"{', '.join(kernel.hash for kernel in unknown)} to kernels under [policy]"
        )


ANYTHING = Policy()


def computes(study: Study, statistic: Statistic) -> bool:
    """Whether a study computes exactly this statistic, with default parameters, of different fields.

    Different ones, for the covariance of a field and itself is its variance, which is allowed by its own name.
    """
    facts = (statistic.degree, statistic.estimator, statistic.sampling)
    if (study.degree, study.estimator, study.sampling) != facts:
        return False
    texts = [kernel.text for kernel in study.parsed_kernels]
    used = _order([kernel.expression for kernel in study.parsed_kernels])
    return any(_texts(statistic, columns) == texts for columns in _assignments(used, statistic))


def _assignments(used: tuple[str, ...], statistic: Statistic) -> Iterable[tuple[str, ...]]:
    """Which fields the arguments may be, each once; feature columns in the order of the kernel's sum.

    A kernel of more columns than texts are deep is not the library's: its sums are chains.
    """
    arity = len(statistic.arguments)
    if statistic.is_variadic:
        return [used] if arity <= len(used) <= MAX_DEPTH else []
    return permutations(used) if len(used) == arity else []


def _texts(statistic: Statistic, columns: tuple[str, ...]) -> list[str] | None:
    """The library's kernels; None for a statistic of which a parameter has no default."""
    try:
        return [to_text(expression) for expression in statistic.expressions(columns)]
    except KernelError:
        return None


def _order(expressions: Iterable[Expression]) -> tuple[str, ...]:
    """The fields' names as they first occur, from left to right."""
    found: dict[str, None] = {}

    class Names(Rebuild):
        def field(self, record: int, name: str) -> Expression:
            found.setdefault(name)
            return super().field(record, name)

    for expression in expressions:
        interpret(expression, Names())
    return tuple(found)


def _named(names: Iterable[str]) -> str:
    """Names in one line, at most so many; "nothing" where there are none."""
    ordered = sorted(names)
    shown = [repr(name[:63]) for name in ordered[:SHOWN]]
    return ", ".join([*shown, *(["…"] if len(ordered) > SHOWN else [])]) or "nothing"
