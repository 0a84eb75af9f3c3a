"""All that each party of linked rows sees says nothing of a value at a site that it is not.

A study runs from the dealt keys to its release, at real stores and with a real dealer. Everything
that comes to a party is recorded by name. Each byte of it has one law whatever the other site's
value is, and what a party can make of its view with its own secrets is uniform.

Site and coordinator pool what they see. The dealer pools with nobody.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.protocols.grid.test_views import no_mask
from tests.support.linked import LinkedPair, LinkedRun
from tests.support.mpc_studies import ALPHA, homogeneity, uniformity
from tests.support.protocols import opened_by
from tests.support.studies import Entropy
from tests.support.verified import DEALER
from umpc.crypto.prg import FixedKeyHash
from umpc.mpc.fss.point import PointKeys, expand
from umpc.people.linked import RowList, coordinates, keys_digest, linked_statement
from umpc.people.messages import dealt_hash, roots
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.people.terms import SHARE
from umpc.protocols.registry import protocol_of
from umpc.study.messages import Accepted, Prepared
from umpc.study.settings import HONEST, LYING_NODES
from umpc.testing import lying

X, Y = [1, 2, 0], [0, 3, 1]
DATA = ([X, Y], [[3, 2, 0], Y], [X, [2, 3, 1]])
"""Three rows: x at the first site, y at the second. The first row has another x, or another y."""
OF_SITE = ((0, 2), (0, 1))
"""The data that a site may not tell apart: its own value is the same in both."""
WIDTH = 4
"""Cells of either site."""
FULL = X[0] * WIDTH + Y[0]
"""The cell of the first row in the first table."""
RUNS, FEW = 30, 20
"""Studies over each table, and those that find a mutant."""
SITES, COORDINATOR = ("node-0", "node-1"), "coordinator"
EVERYBODY = (*SITES, COORDINATOR, "dealer")
Random = Callable[[int], bytes]
Values = Sequence[Sequence[int]]


class Watched:
    """One study.

    seen: party → name → all bytes of this name that came to it.
    made: party → what it makes of its view with its own secrets, small categories by name.
    """

    def __init__(self, values: Values, grade: str, label: str, entropy: Random):
        self.seen: dict[str, dict[str, bytes]] = defaultdict(lambda: defaultdict(bytes))
        given = [np.array(each) for each in values]
        with tempfile.TemporaryDirectory() as folder:
            self.pair = LinkedPair(Path(folder), given, grade, entropy)
            try:
                self._link()
                self._run(label)
            finally:
                self.pair.stop()
        self.made = {name: self._made_by_site(side) for side, name in enumerate(SITES)}
        self.made["dealer"] = {"fitting value": self._guess()}

    def _say(self, parties: Sequence[str], name: str, message: Any) -> None:
        for path, data in leaves(message, name):
            for party in parties:
                self.seen[party][path] += data

    def _link(self) -> None:
        """The rows of both sites, up to both shares."""
        pair, survey = self.pair, self.pair.survey
        self.seeds = [seed for seed, *_ in pair.dealt]
        for name, (seed, *keys) in zip(SITES, pair.dealt, strict=True):
            self._say([name], "seed", seed)
            self._say([name], "keys", keys)
        lists = [pair.listed(side) for side in (0, 1)]
        self.lists = [own_list(pair, side) for side in (0, 1)]
        for side, other in ((0, SITES[1]), (1, SITES[0])):
            self._say([COORDINATOR, other], "opened", pair.stores[side].opened(survey.hash))
            self._say([COORDINATOR, other], "sealed list", lists[side])
            self._say([other], "list", self.lists[side])
        self.signed = [pair.count(side, lists[1 - side]) for side in (0, 1)]
        self._say(EVERYBODY, "signed", self.signed)
        for side in (0, 1):
            pair.add_up(self.signed, side)

    def _run(self, label: str) -> None:
        """The grid, step by step as `umpc.simulation` runs it."""
        run = LinkedRun(self.pair, self.signed, label)
        nodes, coordinator = run.nodes, run.coordinator
        accepted = [Accepted(run.study.hash, node.accept()) for node in nodes]
        agree = coordinator.agree(accepted)
        self._say(EVERYBODY, "agree", agree)
        begin = coordinator.begin(opened_by(nodes, agree.members))
        self._say(EVERYBODY, "begin", begin)
        prepared = []
        for node in nodes:
            node.check_agreed(begin.signatures)
            attempt = node.begin(begin.openings)
            prepared.append(Prepared(attempt.id, 0, signature=node.sign_attempt()))
        coordinator.check_prepared(prepared)
        evaluate = coordinator.evaluate()
        self._say(EVERYBODY, "evaluate", evaluate)
        for node in nodes:
            node.check_prepared(evaluate.signatures)
        self._deal(run)
        adding = run.adding
        for number in range(adding.exchanges):
            run.up(lambda place, frame: self._passed([COORDINATOR], frame))
            if adding.asks == number + 1:
                self._say(["dealer"], "question", adding.questions)
                for frame in run.answer():
                    self._passed([COORDINATOR, *SITES], frame)
                    for hearing in (*run.tables, adding):
                        hearing.hear(frame, DEALER.certificate)
                adding.end_exchange()
            run.down(lambda place, frame: self._passed([SITES[place]], frame))
        last = run.signatures
        self._say([COORDINATOR, *SITES], "last", last)
        adding.check_signed(last)
        for node in nodes:
            node.aggregation.confirm(last)
            self._say([COORDINATOR], "released", node.release().share)
        self.shares = [node.columns[SHARE].view(np.uint64) for node in nodes]

    def _deal(self, run: LinkedRun) -> None:
        """The dealer's part of the attempt, and the sites' own steps."""
        run.attempt = run.coordinator.attempt
        run.dealing = protocol_of(run.study).dealing(run.attempt, run.entropy)
        if run.alpha is not None:
            run.dealing.alpha = run.alpha
        for place, node in enumerate(run.nodes):
            seed = run.dealing.seed_frame(place)
            self._passed([SITES[place]], seed)
            node.receive_seed(seed.payload)
        for chunk in run.attempt.chunks():
            for place, frame in run.dealing.deal_one(chunk):
                self._passed([SITES[place]], frame)
                run.give(place, frame.payload, chunk)
        run.count()

    def _passed(self, parties: Sequence[str], frame: Any) -> Any:
        self._say(parties, frame.step, frame.payload)
        return frame

    # --- what a party makes of it ---

    def _made_by_site(self, side: int) -> dict[str, int]:
        """With the other site's list, its own coordinate and its share."""
        survey, other = self.pair.survey, 1 - side
        own = int(coordinates(survey, self.seeds[side], WIDTH, 0, 1)[0])
        number = int(RowList(WIDTH, self.lists[other]).numbers()[0])
        # the cell of the first row's key, if the other site has the value of the first data
        guess = (DATA[0][other][0] - number) % WIDTH
        cell = own * WIDTH + guess if side == 0 else guess * WIDTH + own
        (keys,) = self.pair.dealt[side][1:]
        checks = self.pair.study.adversary != HONEST
        decoded = PointKeys.decode(memoryview(keys), survey.cells, len(X), checks)
        of_roots = roots(survey, self.seeds[side], 0, len(X))
        opened = expand(side, decoded, of_roots, FixedKeyHash(survey.hash_key))
        share = self.shares[side]
        sent = self.seen[COORDINATOR]["histogram"]
        masked = np.frombuffer(sent, dtype=f"<u{len(sent) // (2 * survey.cells)}")
        return {
            "number and own coordinate": number * WIDTH + own,
            "number plus own coordinate": (number + own) % WIDTH,
            "key at a guess": int(opened[0, cell]) & 3,
            "own share": int(share[FULL]) & 3,
            "masked table and own share": (
                int(masked[other * survey.cells + FULL]) + int(share[FULL])
            )
            & 3,
        }

    def _guess(self) -> int:
        """The dealer knows all but the first row. It tries its values on what both signed.

        Returns: the place of those that fit; the number of all of them if none does.
        """
        survey, digest = self.pair.survey, dealt_hash()
        digest.update(b"".join(self.pair.dealt[0][1:]))
        keys, statement = keys_digest(map(str, range(len(X)))), self.signed[0][0]
        nonces = [bytes(32)] * 2
        tried = product(range(WIDTH), repeat=2)
        for place, first in enumerate(tried):
            values = [[value, *each[1:]] for value, each in zip(first, (X, Y), strict=True)]
            lists = [
                RowList.of(survey, seed, WIDTH, keys, np.array(one, np.uint64), nonce)
                for seed, one, nonce in zip(self.seeds, values, nonces, strict=True)
            ]
            if linked_statement(survey, digest.digest(), lists) == statement:
                return place
        return WIDTH**2


def own_list(pair: LinkedPair, side: int) -> bytes:
    """The list on a site's disk, which its sealed message has."""
    (path,) = (pair.folder / SITES[side]).glob("*.own")
    return path.read_bytes()


def leaves(message: Any, name: str) -> Iterator[tuple[str, bytes]]:
    """All bytes in a message, each with its path."""
    if isinstance(message, bytes):
        yield name, message
    elif is_dataclass(message):
        for field in fields(message):
            yield from leaves(getattr(message, field.name), f"{name}.{field.name}")
    elif isinstance(message, list | tuple):
        for each in message:
            yield from leaves(each, name)
    else:
        yield name, str(message).encode()


# --- which messages there are -----------------------------------------------------------------


AGREED = {
    **{"agree.members.name": 12, "agree.members.records": 2, "agree.members.first_class": 2},
    **{"agree.members.commitment": 64, "agree.members.public_key": 64},
    **{"agree.members.certificate": 46, "agree.members.signature": 128},
    **{"begin.openings": 64, "begin.signatures": 128, "evaluate.signatures": 128},
    "signed": 2 * (8 + 32 + 64),
}
"""Bytes that everybody gets before the data. None of them is made of a value."""
LIST = 32 + 32 + 4 * len(X)
AT_SITE = AGREED | {"seed": 32, "opened": 32 + 64, "list": LIST, "sealed list": 32 + LIST + 48}
AT_COORDINATOR = AGREED | {"opened": 2 * 96, "sealed list": 2 * (32 + LIST + 48)}
CHECKED = {"answer": 120, "last": 128}
MESSAGES = {
    HONEST: {
        **dict.fromkeys(
            SITES, AT_SITE | {"keys": 240, "node_seed": 32, "material": 4, "total": 64, "last": 128}
        ),
        COORDINATOR: AT_COORDINATOR | {"histogram": 2 * 64, "last": 128, "released": 8},
        "dealer": AGREED,
    },
    LYING_NODES: {
        **dict.fromkeys(
            SITES,
            AT_SITE
            | {"keys": 432, "node_seed": 32, "material": 8, "total": 128}
            | {"statement": 64, "commitment": 96, **CHECKED},
        ),
        COORDINATOR: AT_COORDINATOR
        | {"histogram": 2 * 128, "statement": 2 * 64, "commitment": 2 * 96, "released": 16}
        | CHECKED,
        "dealer": AGREED | {"question": 2 * (32 + 64)},
    },
}
"""Grade → party → name → bytes of all that comes to it."""
ON_THE_WIRE = {
    "PeopleStudy": {"hash", "already", "opened"},
    "PeoplePart": {"hash", "data"},
    "PeopleOpening": {"progress", "opened", "counted"},
    "PeopleOpened": {"box_key", "certificate", "signature"},
    "PeopleCounted": {"statement", "signature", "certificate"},
    "PeopleSigned": {"hash", "statement", "signatures", "certificates"},
}
"""Messages between processes, and their fields. A new one needs a place in `MESSAGES`."""


@pytest.mark.parametrize("grade", MESSAGES)
def test_each_party_gets_these_messages_and_not_one_byte_more(grade):
    for table in DATA:
        run = Watched(table, grade, "sizes", Entropy("sizes"))
        seen = {
            party: {name: len(data) for name, data in came.items()}
            for party, came in run.seen.items()
        }
        assert seen == MESSAGES[grade]


@pytest.mark.parametrize("message", ON_THE_WIRE)
def test_messages_between_processes_have_no_other_field(message):
    assert set(getattr(pb, message).DESCRIPTOR.fields_by_name) == ON_THE_WIRE[message]


# --- what they say ----------------------------------------------------------------------------


def watched(grade: str, label: str, count: int, source: type = Entropy) -> list[list[Watched]]:
    """Studies over each table. Args: source: of randomness of dealer and sites."""
    found = []
    for number, table in enumerate(DATA):
        entropy = source(f"{label} {number}")
        labels = (f"{label} {number} {run}" for run in range(count))
        found.append([Watched(table, grade, one, entropy) for one in labels])
    return found


def views_of(party: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The tables that a party may not tell apart, and the parties that pool what they see."""
    if party == "dealer":
        return (0, 1, 2), (party,)
    return OF_SITE[SITES.index(party)], (party, COORDINATOR)


def bytes_apart(runs: Sequence[Sequence[Watched]], party: str, name: str = "") -> float:
    """The p-value of "each byte that comes has one law over all tables", over all bytes.

    Args: name: of the only message that is looked at.
    """
    tables, pooled = views_of(party)
    samples = [
        np.array([[*b"".join(came(run, pooled, name))] for run in runs[table]]) for table in tables
    ]
    least, count = 1.0, samples[0].shape[1]
    for place, shift in product(range(count), (0, 6)):
        ends = (sample[:, place] >> shift & 3 for sample in samples)
        least = min(least, homogeneity(*ends))
    return least * 2 * count


def came(run: Watched, parties: Sequence[str], name: str) -> Iterator[bytes]:
    for party in parties:
        for each, data in run.seen[party].items():
            if name in ("", each):
                yield data


def made_apart(runs: Sequence[Sequence[Watched]], party: str, name: str) -> float:
    """The p-value of "what a party makes has one law over all tables"."""
    tables, _ = views_of(party)
    return homogeneity(*(np.array([run.made[party][name] for run in runs[t]]) for t in tables))


@pytest.fixture(scope="module", params=MESSAGES)
def runs(request) -> list[list[Watched]]:
    return watched(request.param, f"linked views {request.param}", RUNS)


PARTIES = (*SITES, "dealer")
CATEGORIES = {
    "number and own coordinate": WIDTH**2,
    "number plus own coordinate": WIDTH,
    "key at a guess": 4,
    "own share": 4,
    "masked table and own share": 4,
}


@pytest.mark.parametrize("party", PARTIES)
def test_no_byte_that_comes_depends_on_a_value_of_another_site(runs, party):
    assert bytes_apart(runs, party) > ALPHA, f"N = {RUNS} each"


@pytest.mark.parametrize("site", SITES)
def test_what_a_site_makes_of_its_view_is_uniform(runs, site):
    tables, _ = views_of(site)
    for name, categories in CATEGORIES.items():
        assert made_apart(runs, site, name) > ALPHA, name
        sample = np.array([run.made[site][name] for table in tables for run in runs[table]])
        assert uniformity(sample, categories) > ALPHA, name


def test_no_value_fits_what_the_dealer_sees(runs):
    assert {run.made["dealer"]["fitting value"] for some in runs for run in some} == {WIDTH**2}


# --- a study without a protection is found ----------------------------------------------------


class SameSeeds(Entropy):
    """The dealer gives both sites one seed, so each knows the other's coordinate."""

    def __call__(self, count: int) -> bytes:
        return 2 * super().__call__(32) if count == 64 else super().__call__(count)


class NoNonces(Entropy):
    """Nonces of zeros."""

    def __call__(self, count: int) -> bytes:
        return bytes(count) if count == 32 else super().__call__(count)


def values_in_the_clear(honest, survey, seed, cells, keys, values, nonce):
    """A list of x in place of x − r."""
    return RowList(cells, nonce + keys + values.astype("<u4").tobytes())


def one_value_more(honest, survey, seed, cells, keys, values, nonce):
    """The first row's value is in a byte of the nonce."""
    return honest(survey, seed, cells, keys, values, nonce[:-1] + bytes([int(values[0])]))


@pytest.mark.parametrize("mutant", [values_in_the_clear, one_value_more])
def test_power_a_list_with_a_value_is_found_in_its_bytes(mutant):
    with lying("node", of=mutant):
        found = watched(HONEST, "power", FEW)
    assert all(bytes_apart(found, site, "list") < ALPHA for site in SITES)


@pytest.mark.parametrize(
    ("mutate", "source", "parties", "finder"),
    [
        (nullcontext, SameSeeds, SITES, "number plus own coordinate"),
        (nullcontext, NoNonces, ["dealer"], "fitting value"),
        (no_mask, Entropy, SITES, "masked table and own share"),
    ],
    ids=["one seed for both sites", "nonces of zeros", "no mask"],
)
def test_power_a_study_without_a_protection_is_found(mutate, source, parties, finder):
    with mutate():
        found = watched(HONEST, "power", FEW, source)
    assert all(made_apart(found, party, finder) < ALPHA for party in parties)
