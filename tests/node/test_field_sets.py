"""umpc.node.datasets: which studies ask about one set of fields, and the refusal of too many."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.support.studies import CLASSES, make_study
from umpc.errors import TooManySchemas
from umpc.node.budget.ledger import Ledger
from umpc.node.datasets import MOST, count_fields, digest_of
from umpc.study.parts import FieldText

X, Y = FieldText("x", "0", "3", whole=True), FieldText("y", "0", "3", whole=True)
BOTH = make_study("abs(a.x - b.x) + abs(a.y - b.y)", fields=(X, Y))
GINI = make_study("abs(a.x - b.x)")


def is_new(study, first=BOTH) -> bool:
    """Whether a study counts as another set of fields than a first one."""
    return digest_of(study) != digest_of(first)


def test_names_count_in_any_order_and_bounds_do_not():
    kernel = BOTH.kernels[0]
    wide = FieldText("x", "-5", "99", "0.5")
    assert not is_new(BOTH.replaced(fields=(Y, X), epsilon="2", name="another"))
    assert not is_new(make_study(kernel, fields=(wide, Y)))
    assert is_new(GINI) and is_new(BOTH, first=GINI)


def test_the_classes_of_a_public_label_count_and_private_categories_do_not():
    auc = make_study("a.x < b.x", sampling="two_sample")
    others = FieldText.of_categories("label", ["case", "other"], public=True)
    assert is_new(auc.replaced(fields=(X, others)), first=auc)
    jobs = [FieldText.of_categories("job", labels) for labels in (["a"], ["b", "c"])]
    first, second = (make_study("a.job == b.job", fields=(job,)) for job in jobs)
    assert not is_new(second, first=first)
    assert CLASSES in auc.fields


def test_the_refusal_names_the_node_and_hides_the_command(tmp_path):
    names = [f"f{number}" for number in range(MOST + 1)]
    *studies, last = [
        make_study(f"abs(a.{name} - b.{name})", fields=(FieldText(name, "0", "3", whole=True),))
        for name in names
    ]
    with Ledger(tmp_path / "ledger.sqlite", "bank", Fraction(5)) as ledger:
        for study in (*studies, *studies):
            count_fields(ledger, study, "north")
        with pytest.raises(TooManySchemas) as caught:
            count_fields(ledger, last, "north")
    assert caught.value.message == (
        "north was asked about 32 different sets of fields, and each tells how many of its records "
        "have these fields; propose one of those sets, or have its administrator begin the count "
        "anew"
    )
    assert caught.value.detail == (
        "run `umpc budget fields --config node.toml --forget` to begin the count anew; no restart "
        "is needed"
    )
