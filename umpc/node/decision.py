"""A study in one sentence, for the person who decides on it at a site.

It says what leaves, how many rows count here, who is protected, what is left of the budget, and
what the coordinator has asked for before. Everything else is in `umpc approve show`.
"""

from __future__ import annotations

import time
from fractions import Fraction

from umpc.errors import AuditError, LedgerError, UmpcError
from umpc.node.audit.reading import last_rows
from umpc.node.audit.trail import trail_beside
from umpc.node.budget.budget_account import BudgetCost, shown
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledgerfile import read_beside
from umpc.node.config import NodeConfig
from umpc.node.records import load_records
from umpc.protocols.people.split import split_of
from umpc.protocols.registry import protocol_of
from umpc.study.document import Study
from umpc.study.parts import Person

REMEMBERED_SECONDS = 600
"""How long a count of rows stays, where nothing tells whether the table was written since."""
MOST_COUNTED = 64
_counted: dict[tuple[str, bytes, float], tuple[int, int]] = {}
"""A page asks at each view, and a table's files seldom change."""


def sentence_for(config: NodeConfig, study: Study) -> str:
    """Return the sentence. It is for the site alone, because it has the number of its rows."""
    whom = repr(study.coordinator)
    if raw := protocol_of(study).discloses(study):
        what = f"the RAW RECORDS of {', '.join(map(repr, raw))} and all that follows from them"
    else:
        each = " for each class" * study.two_sample
        words, sites = protocol_of(study).words(study), len(study.nodes)
        what = f"{words}, with noise, over all {sites} sites together, and the exact"
        counted = "linked rows" if config.linked else "people who sent a value"
        if not study.settings.shares_tables:
            counted = "complete rows here"
        what += f" number of {counted}{each}"
    unit = "a single row, and no person with several rows as a whole"
    if study.people is not None:
        unit = f"a person, that is {study.protected}"
    elif study.settings.shares_tables:
        unit = "a single linked row" if config.linked else "a person, who has one value"
    parts = (
        f"If you accept, {whom} learns {what}",
        rows_here(config, study),
        f"epsilon {study.epsilon} protects {unit}",
        f"the budget is {budget_after(config, study)}",
        asked_before(config, study),
    )
    return f"{'; '.join(parts)}."


def rows_here(config: NodeConfig, study: Study) -> str:
    """Return how many rows of the site's table count now, in words."""
    linked = config.linked if study.settings.shares_tables else None
    if study.settings.shares_tables and not linked:
        return "it is about what people have left here, and no table is counted"
    source = config.source
    key = (repr(source), study.hash, source.written_at() or time.time() // REMEMBERED_SECONDS)
    try:
        if key not in _counted:
            made, person = study.settings.made_of_people, study.people
            fields = [each.schema() for each in study.fields if each.name != made]
            if linked:
                fields = list(split_of(study).fields[study.index_of(config.name)])
                made, person = linked.key, Person(linked.key, 1)
            found = load_records(
                source, fields, node=None, where=study.condition, person=person, persons=made
            )
            if len(_counted) >= MOST_COUNTED:
                _counted.clear()
            _counted[key] = (found.count, found.dropped)
        count, dropped = _counted[key]
    except UmpcError as error:
        return f"the rows that count here are not known ({error.message.rstrip('.')})"
    return f"{count:,} rows of your table count now and {dropped:,} do not"


def budget_after(config: NodeConfig, study: Study) -> str:
    """Return the budget that is left before a study and after it, in words.

    The δ that finite bits add is not in it, because it depends on numbers of records.
    """
    place = Place.of(config.ledger, config.anchor)
    if not place.ledger.exists():
        before = f"epsilon {shown(config.epsilon)} in all, and nothing is spent"
        if study.exact_epsilon > config.epsilon:
            return f"{before}; the node will refuse this study, which needs more epsilon"
        left = shown(config.epsilon - study.exact_epsilon)
        return f"{before}, epsilon {left} after this study"
    try:
        account = read_beside(place, composition=config.composition).account
    except LedgerError as error:
        return f"not known: {error.message}"
    protocol, charged_as = protocol_of(study), study.whole.hash
    course = protocol.course(study)
    now = account.epsilon()
    before = f"epsilon {shown(now.left)} of {shown(now.total)} left now"
    if charged_as in account.charged or (course and course.id in account.courses):
        return f"{before}; this study is paid and costs nothing more"
    known = (protocol.known_delta(study), protocol.known_events(study))
    cost = BudgetCost(study.exact_epsilon, *known)
    if lacking := account.lacks(cost, replaced=charged_as):
        return f"{before}; the node will refuse this study, which needs more {lacking}"
    account.open[charged_as] = cost
    after = f"epsilon {shown(account.epsilon().left)}"
    if cost.delta:
        after += f" and delta {shown(account.delta().left)}"
    return f"{before}, {after} after this study"


def asked_before(config: NodeConfig, study: Study) -> str:
    """Return what the coordinator has asked this data set for before, by the audit trail's end."""
    own = ("", study.whole.hash.hex())
    try:
        last = last_rows(trail_beside(config.ledger.resolve()))
    except AuditError as error:
        return f"what this coordinator has asked before is not known ({error.message})"
    rows = [
        row for row in last if row["coordinator"] == study.coordinator and row["study"] not in own
    ]
    asked = {row["study"]: f"{row['name']!r}" for row in rows}
    paid = {row["study"]: row["epsilon"] for row in rows if row["event"] == "charge"}
    if not asked:
        return "this coordinator has asked for nothing else here"
    names = ", ".join([*asked.values()][-3:])
    spent = shown(sum(map(Fraction, paid.values()), Fraction(0)))
    others = f"{len(asked)} other studies (the last ones are {names})"
    if len(asked) == 1:
        others = f"1 other study ({names})"
    return (
        f"this coordinator has asked here before for {others}, of which {len(paid)} "
        f"{'was' if len(paid) == 1 else 'were'} released for epsilon {spent} in all"
    )
