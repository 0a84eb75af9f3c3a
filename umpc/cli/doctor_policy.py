"""The policy of a node in one line, for `umpc node doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from umpc.cli.doctor_finding import Finding
from umpc.errors import PolicyRefused
from umpc.node.policy import ANYTHING, KINDS, Policy

NEVER_EMPTY = ("coordinators", "fields", *KINDS)
"""The keys whose empty list refuses every study. Dealers and shufflers need not take part."""


def check_policy(policy: Policy) -> Iterator[Finding]:
    """Show what the policy allows. A list that refuses every study is an error."""
    empty = [key for key in NEVER_EMPTY if getattr(policy, key) == frozenset()]
    computations = [each for each in (policy.statistics, policy.kernels) if each is not None]
    if computations and not any(computations):
        empty.append("statistics or kernels")
    if empty:
        raise PolicyRefused(
            f"{', '.join(empty)} under [policy] is an empty list, so every study is refused. "
            "Name what you allow, or remove the key"
        )
    yield Finding("policy", describe_policy(policy))


def describe_policy(policy: Policy) -> str:
    """Return the rules that restrict studies, and those that hold by default, in one line."""
    rules = [
        f"{field.name} = {_text(getattr(policy, field.name))}"
        for field in fields(policy)
        if getattr(policy, field.name) != getattr(ANYTHING, field.name)
    ]
    allowed = f"allows studies within {'; '.join(rules)}" if rules else "allows every study"
    refused = [
        words
        for words, is_refused in (
            ("raw records for the coordinator", not policy.trusted_curator),
            ("public labels", not policy.public_labels),
            ("conditions on records", not policy.public_filters),
            ("noise that not all other nodes withstand", policy.min_colluding is None),
        )
        if is_refused
    ]
    person = "a person accepts each study" if policy.approval else "no person is asked"
    return f"{allowed}; refuses {', '.join(refused) or 'nothing else'}; {person}"


def _text(value: object) -> str:
    if isinstance(value, frozenset):
        return f"[{', '.join(sorted(map(str, value)))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
