"""umpc.node.record_cache: an unchanged file is parsed once, and no answer is of former data."""

from __future__ import annotations

import gc
import mmap
import os
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.node.test_admission import AtNode
from tests.support.site_tables import parquet, table
from tests.support.studies import make_study
from umpc.errors import DataError, UmpcError
from umpc.node.cache_watch import CacheWatch
from umpc.node.datasets import open_dataset, open_ledger
from umpc.node.record_cache import ENTRY_BYTES, IDLE_SECONDS, REST, RecordCache, RecordRequest
from umpc.node.records import Records, TableSource, load_records
from umpc.node.table.file_state import FileIdentity
from umpc.study.parts import Person
from umpc.ustat.condition import parse_condition
from umpc.ustat.schema import FieldSchema, Schema

X = FieldSchema("x", Fraction(0), Fraction(99), Fraction(1))
Y = FieldSchema("y", Fraction(-(10**6)), Fraction(10**6), Fraction(1, 10**9))
BOTH = RecordRequest((X, Y))
TEXT = "x,y,who\n1,2,a\n3,-0.5,b\n,7,b\n500,0,b\n"


class Site:
    """The kept records of one file, with a clock and a ledger that the test moves."""

    def __init__(self, path: Path, most: int = 10**6):
        self.path, self.now, self.charges = path, 0.0, 0
        self.seconds = 0.0
        self.meanwhile: Callable[[], object] = lambda: None
        self.cache = RecordCache(
            TableSource(path), self.parse, most, lambda: self.charges, clock=lambda: self.now
        )

    def parse(self, request: RecordRequest) -> Records:
        found = load_records(
            TableSource(self.path),
            request.fields,
            node="a",
            where=request.where,
            person=request.person,
        )
        self.now += self.seconds
        self.meanwhile()
        return found

    def study(self, request: RecordRequest = BOTH, *, charged: bool = True) -> Records:
        """One study, which must have what the file has now."""
        found = self.cache.load(request)
        self.charges += charged
        self.meanwhile, now = (lambda: None), self.meanwhile
        assert_equal(found, self.parse(request))
        self.meanwhile = now
        return found

    def looks(self, count: int) -> None:
        for _ in range(count):
            self.now += 1
            self.cache.look()

    def done(self) -> str:
        """How often file, memory and background were read."""
        counts = self.cache.counts()
        return " ".join(str(int(counts[each])) for each in ("file", "memory", "background"))


def assert_equal(found: Records, expected: Records) -> None:
    assert found.columns.keys() == expected.columns.keys()
    for name, column in expected.columns.items():
        assert found.columns[name].dtype == np.int64
        assert found.columns[name].tolist() == column.tolist()
    assert (found.count, found.dropped) == (expected.count, expected.dropped)
    assert list(map(str, found.misfits)) == list(map(str, expected.misfits))
    assert found.cohort == expected.cohort is not None


@pytest.fixture
def site(tmp_path) -> Site:
    return Site(table(tmp_path, TEXT))


def test_an_unchanged_file_is_parsed_once_for_each_request(site, tmp_path):
    where = parse_condition("x >= 2", Schema((X, Y)))
    wider = replace(X, upper=Fraction(1000))
    requests = [
        BOTH,
        RecordRequest((X,)),
        RecordRequest((wider, Y)),
        RecordRequest((X, Y), where),
        RecordRequest((X, Y), None, Person("who", 1)),
        RecordRequest((X, Y), None, Person("who", 2)),
    ]
    for _ in range(3):
        for request in requests:
            site.study(request)
    assert site.done() == f"{len(requests)} {2 * len(requests)} 0"
    other = Site(parquet(tmp_path, "SELECT 1 AS x, 2.5 AS y"))
    other.study(), other.study()
    assert other.done() == "1 1 0"


def keep_times(path: Path, change: Callable[[], object]) -> None:
    """Change a file's bytes so that no time tells it."""
    before = path.stat()
    change()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def store_in_memory(path: Path) -> None:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[8:9] = b"6"


@pytest.mark.parametrize("change", ["other size", "same size", "mapped", "renamed", "back again"])
def test_no_study_is_answered_from_former_bytes(site, change):
    """Size and times may be as before: a clock's tick hides a change from its times."""
    first = site.study().columns["x"].tolist()
    path, other = site.path, TEXT.replace("1,2,a", "9,8,a")
    if change == "other size":
        path.write_text(other + "4,4,d\n")
    elif change == "same size":
        keep_times(path, lambda: path.write_text(other))
    elif change == "mapped":
        keep_times(path, lambda: store_in_memory(path))
    elif change == "renamed":
        table(path.parent, other, "new.csv").rename(path)
    else:
        keep_times(path, lambda: path.write_text(other))
        site.study()
        path.write_text(TEXT)
    second = site.study().columns["x"].tolist()
    assert (first == second) is (change == "back again")


def test_the_content_decides_where_every_identity_is_the_same(site, monkeypatch):
    """The mutant that compares identities alone answers from former data here."""
    same = FileIdentity.of(site.path)
    monkeypatch.setattr(FileIdentity, "_from", classmethod(lambda cls, _: same))
    site.study()
    site.path.write_text(TEXT.replace("1,2,a", "9,8,a"))
    assert site.study().columns["x"].tolist() == [9, 3, 99]
    assert site.done() == "2 0 0"


def test_records_of_a_file_that_changes_while_it_is_parsed_are_not_kept(site):
    """DuckDB may have read bytes of both contents."""
    changed = TEXT.replace("1,2,a", "9,8,a")
    site.meanwhile = lambda: site.path.write_text(changed)
    site.cache.load(BOTH)
    site.meanwhile = lambda: None
    assert site.cache.size == 0
    site.path.write_text(TEXT)
    site.charges += 1
    site.study()


def test_a_coordinator_that_ends_its_studies_meets_the_file_each_time(site):
    """Whether kept records were used is an exact answer: it takes a charge to see it once more."""
    site.study(charged=False)
    for _ in range(3):
        site.study(charged=False)
    assert site.done() == "4 0 0"
    site.charges += 1
    site.study(charged=False), site.study(charged=False)
    assert site.done() == "5 1 0"
    # a look that finds nothing counts too
    site.charges += 1
    site.study(RecordRequest((X,)), charged=False), site.study(charged=False)
    assert site.done() == "7 1 0"


def test_the_watch_reads_a_changed_file_before_the_next_study(site):
    site.study()
    site.looks(5)
    assert site.done() == "1 0 0"
    site.path.write_text(TEXT + "5,5,e\n")
    site.looks(1)
    assert site.done() == "1 0 0"  # it may be written in pieces
    site.looks(5)
    assert site.done() == "1 0 1"
    site.study()
    assert site.done() == "1 1 1"
    # the same bytes in another file need no reading
    table(site.path.parent, TEXT + "5,5,e\n", "new.csv").rename(site.path)
    site.looks(5)
    site.study()
    assert site.done() == "1 2 1"


def test_the_watch_rests_between_long_readings_and_drops_what_it_cannot_read(site):
    site.study()
    site.seconds = 2.0
    for number in range(2 * (REST + 1) * 2):
        site.path.write_text(TEXT + f"{number},5,e\n")
        site.looks(2)
    assert int(site.done().split()[2]) <= 2 * 2 + 1
    site.now += 100
    site.path.write_text('x,y\n1,2,3\n"')
    site.looks(3)
    assert site.cache.size == 0
    with pytest.raises(DataError):
        site.cache.load(BOTH)
    site.path.unlink()
    with pytest.raises(UmpcError):
        site.cache.load(BOTH)


def test_a_file_that_is_gone_leaves_nothing_in_memory(site):
    site.study()
    assert site.cache.size > 0
    site.path.unlink()
    site.looks(1)
    assert site.cache.size == 0


def test_memory_is_bounded_and_idle_requests_leave(tmp_path):
    rows = 2000
    path = table(tmp_path, "x,y\n" + "1,2\n" * rows)
    one = ENTRY_BYTES + rows * (1 + 8)  # x fits a byte, and y takes eight
    site = Site(path, most=2 * one)
    requests = [replace(BOTH, fields=(replace(X, upper=Fraction(n)), Y)) for n in (97, 98, 99)]
    for request in requests:
        site.study(request)
        assert site.cache.size <= 2 * one
    assert site.cache.counts()["dropped"] == 1
    site.study(requests[2]), site.study(requests[1])
    assert site.done() == "3 2 0"
    site.study(requests[0])
    assert site.done() == "4 2 0"
    site.now += IDLE_SECONDS - 1
    site.study(requests[1])
    site.looks(2)
    assert site.cache.size == one
    too_large = Site(path, most=one - 1)
    too_large.study(), too_large.study()
    assert too_large.done() == "2 0 0" and too_large.cache.size == 0
    nothing = Site(path, most=0)
    nothing.study(), nothing.study()
    assert nothing.done() == "2 0 0" and nothing.cache.size == 0


def test_a_request_computes_its_hash_once(monkeypatch):
    request = RecordRequest((X, Y))
    assert hash(request) == hash(RecordRequest((X, Y))) and request == BOTH
    monkeypatch.setattr(Fraction, "__hash__", lambda number: pytest.fail("a bound was hashed"))
    assert {request: 1}[request] == 1


def test_nobody_writes_to_kept_records(site):
    site.study()
    for column in site.cache.load(BOTH).columns.values():
        column += 1
    site.charges += 1
    site.study()
    assert "array" not in repr(site.cache.__dict__) and "records" not in repr(site.cache._kept)


def test_a_node_keeps_records_between_charged_studies_and_renumbers_them(tmp_path):
    node = AtNode(tmp_path)
    node.table.write_text("x,y\n" + "".join(f"{n % 4},{n % 3}\n" for n in range(300)))
    config = node.admission.config
    study = make_study(max_colluding=1)
    with open_ledger(config) as ledger:
        dataset = open_dataset(config, ledger)
        orders = []
        for number in range(3):
            found = dataset.admission.load(study)
            orders.append(found.columns["x"].tolist())
            identity = bytes([number]) * 32
            ledger.reserve(identity, Fraction(1, 10), name=str(number))
            ledger.reserve_delta(identity, Fraction(0))
            ledger.note_cohort(identity, found.cohort)
            ledger.charge(identity, ledger.hold(identity, bytes(32), b"share").attempt)
        counts = dataset.admission.cache.counts()
    assert (counts["file"], counts["memory"]) == (1, 2)
    assert len(set(map(tuple, orders))) == 3  # in a new order each time
    assert sorted(orders[0]) == sorted(orders[2])


def test_thousands_of_files_are_looked_at_more_rarely():
    class File:
        size = 1

    watch = CacheWatch()
    watch.end()  # no thread of its own
    files = [File() for _ in range(2000)]
    watch.over(files[0])
    assert watch._pause() == 1.0
    for each in files:
        watch.over(each)
    assert watch._pause() == 4.0


def test_one_thread_looks_at_everything_while_something_is_kept(site):
    watch = CacheWatch()
    watch.end()  # no thread of its own: the test takes its steps
    watch.over(site.cache)
    assert not watch.look()
    site.study()
    assert watch.look()
    site.path.unlink()
    assert not watch.look() and site.cache.size == 0
    gone = Site(table(site.path.parent, TEXT, "gone.csv"))
    watch.over(gone.cache)
    gone.study()
    assert watch.look()
    del gone
    gc.collect()
    assert not watch.look()
