"""umpc.node.field_sets: the count is on disk before an answer, and damage is the owner's to see."""

from __future__ import annotations

import stat

import pytest

from tests.support.studies import CLASSES, make_study
from umpc.errors import ConfigError, TooManySchemas
from umpc.node import field_sets
from umpc.node.field_sets import FieldSets
from umpc.study.parts import FieldText

X, Y = FieldText("x", "0", "3", whole=True), FieldText("y", "0", "3", whole=True)
BOTH = make_study("abs(a.x - b.x) + abs(a.y - b.y)", fields=(X, Y))
GINI = make_study("abs(a.x - b.x)")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "north-ledger.sqlite.fieldsets"


@pytest.fixture(autouse=True)
def one_only(monkeypatch):
    monkeypatch.setattr(field_sets, "MOST", 1)


def is_new(path, study, first=BOTH) -> bool:
    """Whether a study counts as another set of fields than a first one."""
    path.unlink(missing_ok=True)
    FieldSets(path).count(first, "north")
    try:
        FieldSets(path).count(study, "north")
    except TooManySchemas:
        return True
    return False


def test_names_count_in_any_order_and_bounds_do_not(path):
    kernel = BOTH.kernels[0]
    wide = FieldText("x", "-5", "99", "0.5")
    assert not is_new(path, BOTH.replaced(fields=(Y, X), epsilon="2", name="another"))
    assert not is_new(path, make_study(kernel, fields=(wide, Y)))
    assert is_new(path, GINI) and is_new(path, BOTH, first=GINI)


def test_the_classes_of_a_public_label_count_and_private_categories_do_not(path):
    auc = make_study("a.x < b.x", sampling="two_sample")
    others = FieldText.of_categories("label", ["case", "other"], public=True)
    assert is_new(path, auc.replaced(fields=(X, others)), first=auc)
    jobs = [FieldText.of_categories("job", labels) for labels in (["a"], ["b", "c"])]
    first, second = (make_study("a.job == b.job", fields=(job,)) for job in jobs)
    assert not is_new(path, second, first=first)
    assert CLASSES in auc.fields


def test_the_refusal_names_the_node_and_hides_the_path(path):
    FieldSets(path).count(BOTH, "north")
    with pytest.raises(TooManySchemas) as caught:
        FieldSets(path).count(GINI, "north")
    assert caught.value.message == (
        "north was asked about 1 different sets of fields, and each tells how many of its records "
        "have these fields; propose one of those sets, or have its administrator begin the count "
        "anew"
    )
    assert caught.value.detail == f"remove {path} to begin the count anew; no restart is needed"


def test_only_the_owner_can_read_the_file_and_nothing_else_is_left(path):
    FieldSets(path).count(BOTH, "north")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_crash_while_writing_leaves_the_former_count(path, monkeypatch):
    monkeypatch.setattr(field_sets, "MOST", 2)
    sets = FieldSets(path)
    sets.count(BOTH, "north")
    before = path.read_bytes()

    in_the_way = path.with_name(f"{path.name}.new")
    in_the_way.mkdir()
    with pytest.raises(ConfigError, match="a file of the field sets"):
        sets.count(GINI, "north")
    in_the_way.rmdir()
    assert path.read_bytes() == before
    sets.count(GINI, "north")
    assert len(path.read_text().split()) == 2


@pytest.mark.parametrize("damage", [b"\xff", b"0123\n", b"ab" * 32])
def test_a_damaged_file_refuses_until_it_is_removed(path, damage):
    path.write_bytes(damage)
    with pytest.raises(ConfigError, match="may be removed"):
        FieldSets(path).count(BOTH, "north")
    path.unlink()
    FieldSets(path).count(BOTH, "north")
