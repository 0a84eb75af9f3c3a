"""umpc/node/table/fingerprint.py, and fingerprints in the Store."""

from __future__ import annotations

import sqlite3
from fractions import Fraction

import numpy as np
import pytest

from tests.support.ledgers import A, B, D, opened
from umpc.cli.budget import same_data
from umpc.errors import EncodingError
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledgerfile import read_beside
from umpc.node.records import load_records
from umpc.node.table.batch import Values
from umpc.node.table.fingerprint import WORDS, Cohort, CohortHash, Fingerprint, count_range
from umpc.node.table.source import TableSource
from umpc.study.parts import Person
from umpc.ustat.condition import parse_condition
from umpc.ustat.schema import FieldSchema, Schema


def cohort(**columns: list[float]) -> Cohort:
    found = CohortHash([number(name) for name in columns])
    marks = np.zeros(len(next(iter(columns.values()))), np.uint8)
    values = {name: Values(np.array(column, np.float64), marks) for name, column in columns.items()}
    found.add(values, len(marks))
    return found.cohort()


def number(name: str) -> FieldSchema:
    return FieldSchema(name, Fraction(0), Fraction(120), Fraction(1))


def words(name: str, *categories: str) -> FieldSchema:
    return FieldSchema(name, Fraction(0), Fraction(len(categories) - 1), Fraction(1), categories)


def read(tmp_path, text: str, *fields: FieldSchema) -> Cohort:
    (tmp_path / "table.csv").write_text(text)
    return load_records(TableSource(tmp_path / "table.csv"), fields, node="a").cohort


def keyed(data: bytes) -> bytes:
    return b"key " + data


def test_the_order_of_rows_and_fields_does_not_matter_and_the_pairing_does():
    one = cohort(age=[40, 50, 60], sex=[0, 1, 0])
    assert cohort(sex=[0, 0, 1], age=[40, 60, 50]) == one
    paired = cohort(age=[40, 50, 60], sex=[1, 0, 0])
    assert paired.whole != one.whole
    assert paired.fields == one.fields


def test_every_change_of_a_value_shows():
    one = cohort(age=[40, 50, np.nan]).fingerprint(keyed)
    assert cohort(age=[40, -0.0, np.nan]).whole == cohort(age=[40, 0.0, np.nan]).whole
    for other in ([40, 51, np.nan], [40, 50], [40, 50, 0], [40, 50, np.nan, np.nan]):
        changed = cohort(age=other).fingerprint(keyed)
        assert not one.is_same(changed)
        assert one.differing(changed) == ("age",)
    assert cohort(aged=[40, 50, np.nan]).fingerprint(keyed).fields.keys() == {"aged"}


def test_two_studies_agree_in_the_fields_that_both_have():
    one = cohort(age=[40, 50], sex=[0, 1]).fingerprint(keyed)
    other = cohort(age=[50, 40], height=[170, 180]).fingerprint(keyed)
    third = cohort(age=[50, 41], sex=[0, 1]).fingerprint(keyed)
    assert (one.agreeing(other), one.differing(other)) == (("age",), ())
    assert (one.agreeing(third), one.differing(third)) == (("sex",), ("age",))
    shown = same_data({b"1": one, b"2": other, b"3": third})
    assert [text[:6] for text in shown.values()] == ["data 1", "data 1", "data 2"]


def test_bounds_and_resolution_of_a_study_do_not_change_it(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("age\n40\n17\n90\n")
    fields = [FieldSchema("age", Fraction(0), Fraction(high), Fraction(1)) for high in (50, 120)]
    found = [load_records(TableSource(path), [each], node="a") for each in fields]
    assert found[0].columns["age"].tolist() != found[1].columns["age"].tolist()
    assert found[0].cohort == found[1].cohort


LISTS = (("dead", "alive"), ("alive", "dead"), ("alive", "gone"), ("none",))


@pytest.mark.parametrize("categories", LISTS)
def test_the_list_of_categories_does_not_change_it(tmp_path, categories):
    text = "age,state\n40,alive\n50, dead\n60,gone\n70,alive\n80,\n"
    one = read(tmp_path, text, number("age"), words("state", "alive", "dead", "gone"))
    other = read(tmp_path, text, words("state", *categories), number("age"))
    assert one == other, "the words are the same, whatever a study lists"
    assert not other.fingerprint(keyed).has_changed(one.fingerprint(keyed))


def test_every_other_word_changes_it_also_one_that_no_category_is(tmp_path):
    field = words("state", "alive", "dead")
    texts = ("alive\ndead", "dead\ndead", "gone\ndead", "lost\ndead", "Gone\ndead", "é\ndead")
    found = [read(tmp_path, f"state\n{text}\n", field).fingerprint(keyed) for text in texts]
    assert len({each.whole for each in found}) == len(texts)
    assert all(each.has_changed(found[0]) for each in found[1:])


def test_words_are_compared_neither_with_numbers_nor_with_hashes_of_earlier_versions(tmp_path):
    text = "age,sex\n40,0\n50,1\n"
    of_words = read(tmp_path, text, number("age"), words("sex", "0", "1")).fingerprint(keyed)
    of_numbers = read(tmp_path, text, number("age"), number("sex")).fingerprint(keyed)
    assert of_words.fields["sex"].startswith(WORDS)
    assert not of_words.has_changed(of_numbers) and not of_numbers.has_changed(of_words)
    assert of_words.differing(of_numbers) == of_numbers.differing(of_words) == ()
    assert set(same_data({b"1": of_words, b"2": of_numbers}).values()) == {"data 1: 2 to 3 records"}


def test_hashes_of_numbers_are_those_of_earlier_versions(tmp_path):
    found = read(tmp_path, "age\n40\n50\n", number("age"))
    assert found.whole.hex()[:16] == "a8ee45d86b8f2e84"
    assert found.fields["age"].hex()[:16] == "755dfb0bd2facbcb"
    assert found.selection.hex()[:16] == "602d826452a4b245"


def test_other_people_change_it_where_the_study_is_made_of_people(tmp_path):
    def of_people(text: str, persons: str = "there") -> Cohort:
        path = tmp_path / "people.csv"
        path.write_text(f"who,age\n{text}")
        person, fields = Person("who", 1), [number("age")]
        found = load_records(TableSource(path), fields, node="a", person=person, persons=persons)
        return found.cohort

    one = of_people("ann,40\nbob,40\n").fingerprint(keyed)
    assert of_people("bob,40\nann,40\n").fingerprint(keyed) == one
    assert of_people("ann,40\neve,40\n").fingerprint(keyed).has_changed(one)
    without = of_people("ann,40\nbob,40\n", "").fingerprint(keyed)
    assert without == of_people("ann,40\neve,40\n", "").fingerprint(keyed)
    assert not without.has_changed(one), "a study of ages asks for something else"


def test_the_number_of_records_is_told_as_a_range():
    ranges = [count_range(count) for count in (0, 1, 2, 3, 4, 1000, 1024)]
    assert ranges == [(0, 0), (1, 1), (2, 3), (2, 3), (4, 7), (512, 1023), (1024, 2047)]


def test_its_text_is_read_back_and_another_is_refused():
    one = cohort(age=[40, 50]).fingerprint(keyed)
    assert Fingerprint.decode(one.encode()) == one
    with pytest.raises(EncodingError, match="fingerprint was expected"):
        Fingerprint.decode('{"at_least": 1}')


def hold(ledger, study: bytes, records: Cohort) -> bytes:
    ledger.reserve(study, Fraction(1), D)
    ledger.note_cohort(study, records)
    return ledger.hold(study, study[:4].ljust(32, b"."), b"share").attempt


def test_a_ledger_keeps_it_with_its_release_and_drops_it_with_an_attempt(tmp_path):
    path, records = tmp_path / "ledger.sqlite", cohort(age=[40, 50])
    with opened(path) as ledger:
        ledger.charge(A, hold(ledger, A, records))
        hold(ledger, B, records)
        assert ledger.cohort(A) == ledger.cohort(B) == records.fingerprint(ledger.fingerprint)
        ledger.drop(B)
        assert ledger.cohort(B) is None
    with opened(path) as ledger:
        assert ledger.cohort(A) == records.fingerprint(ledger.fingerprint)
    assert read_beside(Place.of(path, None)).cohorts.keys() == {A}


def test_the_hash_is_that_of_the_ledgers_own_key(tmp_path):
    records, found = cohort(age=[40, 50]), []
    for name in ("one.sqlite", "two.sqlite"):
        with opened(tmp_path / name) as ledger:
            found.append(records.fingerprint(ledger.fingerprint))
    assert not found[0].is_same(found[1])
    assert records.whole.hex() not in {each.whole for each in found}


def test_an_edited_entry_is_ignored(tmp_path, caplog):
    path = tmp_path / "ledger.sqlite"
    with opened(path) as ledger:
        ledger.charge(A, hold(ledger, A, cohort(age=[40, 50])))
    with sqlite3.connect(path) as db:
        db.execute(
            "UPDATE store SET value = CAST(replace(value, '\"at_least\": 2', '\"at_least\": 4')"
            " AS BLOB) WHERE kind = 'cohort'"
        )
    with opened(path) as ledger:
        assert ledger.cohort(A) is None
    assert "was changed on disk" in caplog.text


def test_a_changed_table_is_noticed_by_studies_with_the_same_selection(tmp_path):
    def records(ages: str, where: str = "", upper: int = 120) -> Cohort:
        table = tmp_path / "bank.csv"
        table.write_text(f"age\n{ages}\n")
        fields = [FieldSchema("age", Fraction(0), Fraction(upper), Fraction(1))]
        condition = parse_condition(where, Schema(fields)) if where else None
        return load_records(TableSource(table), fields, node="a", where=condition).cohort

    studies = (bytes([i]) * 32 for i in range(1, 9))
    with opened(tmp_path / "ledger.sqlite", total=Fraction(99)) as ledger:

        def changed(cohort: Cohort, study: bytes) -> bool:
            ledger.reserve(study, Fraction(1), D)
            found = ledger.note_cohort(study, cohort)
            ledger.charge(study, ledger.hold(study, study, b"share").attempt)
            return found

        first = next(studies)
        assert not changed(records("30\n40"), first), "there is no earlier one"
        assert not changed(records("40\n30", upper=50), next(studies)), "other order and bounds"
        assert not changed(records("30\n40", "age > 35"), next(studies)), "another selection"
        assert not ledger.has_changed_since(first)
        assert changed(records("30\n41"), next(studies))
        assert not changed(records("30\n41"), next(studies)), "it was noticed before"
        assert changed(records("30\n42", "age > 35"), next(studies))
        assert ledger.has_changed_since(first) and not ledger.has_changed_since(b"?" * 32)
    shown = read_beside(Place.of(tmp_path / "ledger.sqlite")).cohorts
    words = [text.rpartition("records")[2] for text in same_data(shown).values()]
    assert words == ["", "", "", ", changed since data 1", "", ", changed since data 2"]


def test_a_fingerprint_of_an_earlier_version_is_read_and_compares_with_nothing():
    text = '{"at_least": 1, "at_most": 1, "whole": "ab", "fields": {"age": "cd"}}'
    old, other = Fingerprint.decode(text), Fingerprint.decode(text.replace("ab", "ef"))
    assert not old.has_changed(other) and not old.is_same(other)
