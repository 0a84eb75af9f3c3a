"""The policy of a node in one line, for `umpc node doctor`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields

from umpc.cli.doctor_finding import Finding, neutral
from umpc.errors import PolicyRefused
from umpc.node.policy import ANYTHING, KINDS, Policy

NEVER_EMPTY = ("coordinators", "fields", *KINDS)
"""The keys whose empty list refuses every study. Dealers and shufflers need not take part."""

IDENTIFYING = re.compile(
    "ids?|pid|patid|patno|uuid|guid|mrn|nhs|ssn|bsn|nir|iban|passport|surname|lastname|firstname|"
    "forename|email|phone|telephone|street"
)
"""Words that tell people apart, wherever they stand in a column's name."""
PEOPLE = re.compile("patient|person|subject|participant|customer|insurance|account|name")
NUMBERED = re.compile("number|no|nr|num|code|key|first|last|full")
"""Words that tell people apart together with one of PEOPLE, and with no other word."""


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
    finding = neutral if is_open(policy) else Finding
    yield finding("policy", describe_policy(policy))


def is_open(policy: Policy) -> bool:
    """Whether any statistic over any column runs, and no person is asked."""
    computations = (policy.statistics, policy.kernels, policy.fields)
    return not policy.approval and computations == (None, None, None)


def check_people(policy: Policy, columns: Iterable[str]) -> Iterator[Finding]:
    """Name the columns that seem to identify people, and ask for the key `person`."""
    known = {policy.person, *policy.public_filters}
    found = sorted({name for name in columns if looks_like_identifier(name)} - known)
    usable = [name for name in found if policy.fields is None or name in policy.fields]
    if usable:
        named = ", ".join(map(repr, usable))
        yield neutral(
            "identifiers",
            f"{named}: columns of such names identify people, and a study may use them. Name the "
            "other columns as fields under [policy]",
        )
    if not policy.person:
        column = found[0] if found else "patient_id"
        yield neutral(
            "person",
            "none under [policy], so a study protects one record, and not all records of a person. "
            f'If a person may have several rows, write person = "{column}"',
        )


def looks_like_identifier(name: str) -> bool:
    """Whether a column's name says that its values tell people apart."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    words = set(re.split(r"[^a-z]+", spaced.lower())) - {""}
    if any(map(IDENTIFYING.fullmatch, words)):
        return True
    people = {word for word in words if PEOPLE.fullmatch(word)}
    return bool(people) and all(map(NUMBERED.fullmatch, words - people))


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
    if is_open(policy):
        person += (
            ". OPEN: every member may ask for every statistic of every column. Write "
            "approval = true under [policy], or name statistics and fields"
        )
    return f"{allowed}; refuses {', '.join(refused) or 'nothing else'}; {person}"


def _text(value: object) -> str:
    if isinstance(value, frozenset):
        return f"[{', '.join(sorted(map(str, value)))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
