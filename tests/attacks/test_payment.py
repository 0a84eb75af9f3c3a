"""Nothing about data is told before it is paid for, and a coordinator alone opens no label."""

from __future__ import annotations

import pytest
from msgspec import structs

from tests.support.protocols import flat_study
from tests.support.studies import KENDALL, make_study
from umpc.errors import InsufficientBudget, PolicyRefused, UmpcError
from umpc.node.policy import Policy
from umpc.protocols.registry import checked, decode_study
from umpc.study.parts import FieldText
from umpc.study.report import Report

BOUNDS = ["10", "30", "48", "49", "127"]
LINE = "an exact maximum in 17 proposals, with an exhausted budget"


@pytest.mark.attack(LINE, "both", "refused: one answer, whatever the bounds are")
def test_an_exhausted_node_answers_the_same_whatever_its_values_are(lab):
    here = lab(2).start(epsilon="1")
    assert here.run(name="spent", epsilon="1").code == 0
    answers = set()
    for number, upper in enumerate(BOUNDS):
        fields = (
            FieldText("age", "0", upper, whole=True),
            FieldText("balance", "-100", "1000", "0.5"),
        )
        ended = here.run(name=f"bounds-{number}", fields=fields)
        assert ended.code == InsufficientBudget.exit_code, ended.error
        answers.add(ended.last_line.replace(f"bounds-{number}", "bounds"))
    assert len(answers) == 1, answers
    (answer,) = answers
    for amount in ("spent", "reserved", "left of"):
        assert amount not in answer, "only the site's administrator reads amounts"


@pytest.mark.attack(LINE, "both", "bounded: values outside bounds are clipped, and not told")
def test_a_node_never_tells_whether_its_values_fit(liars):
    fields = (FieldText("age", "0", "30", whole=True), FieldText("balance", "-100", "1000", "0.5"))
    for name in liars.names:
        _, *rows = liars.table(name).read_text().splitlines()
        assert any(int(row.partition(",")[0]) > 30 for row in rows), "no value is out of bounds"
    assert isinstance(liars.attempt(name="narrow", fields=fields, epsilon="1"), Report)


USED = {
    "fields": (
        FieldText("x", "0", "3", whole=True),
        FieldText.of_categories("label", ["case", "control"], public=True),
    ),
    "max_colluding": 1,
}


@pytest.mark.attack("a coordinator alone marks a field public", "both", "refused by the policy")
def test_a_label_is_public_only_by_the_sites_word():
    study = checked(make_study("(sign(a.x - b.x) + 1) * (1/2)", sampling="two_sample", **USED))
    with pytest.raises(PolicyRefused, match="public"):
        Policy().check(study, "node-0")
    Policy(public_labels=frozenset({"label"})).check(study, "node-0")


@pytest.mark.attack("a field that no kernel uses passes allow-lists", "both", "refused")
def test_an_unused_field_is_refused_everywhere():
    study = make_study(KENDALL)
    facts = {key: getattr(study, key) for key in study.__struct_fields__ if key != "settings"}
    more = (*study.fields, FieldText("income", "0", "100", whole=True))
    loose = flat_study(**{**facts, "fields": more, "dealer": study.dealer, "edges": "all"})
    for door in (checked, lambda given: decode_study(given.encode())):
        with pytest.raises(UmpcError, match="income"):
            door(loose)


@pytest.mark.attack(
    "a field that no kernel uses passes allow-lists", "both", "refused: hash covers it"
)
def test_an_allow_list_covers_labels_bounds_and_sampling():
    """A hash that stays the same would let another computation pass a list of kernels."""
    from umpc.study.computation import computation_hash

    study = make_study(KENDALL)
    wider = study.replaced(fields=(structs.replace(study.fields[0], upper="7"), study.fields[1]))
    assert computation_hash(study) != computation_hash(wider)
