"""A study of people over real processes: a dealer, two aggregators, and people at their doors."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.ports import reserved_address
from tests.system.forked import Forked
from umpc.api.study import run_now
from umpc.coordinator.client import run_study
from umpc.coordinator.people import BoxKey, count_people, open_people
from umpc.coordinator.studyfile import load_study_file
from umpc.crypto.signing import is_signature
from umpc.deployment.processes import UMPC, Deployment, Served, stop
from umpc.errors import UmpcError
from umpc.people import messages
from umpc.people.places import new_tokens, read_keys, write_keys
from umpc.protocols.grid.binding import grid_of
from umpc.protocols.people.settings import seconds_of
from umpc.protocols.people.terms import messages_of, terms_of
from umpc.study.document import Study
from umpc.study.report import Report
from umpc.transport.identity import Identity, certificate_in, load_identity, verifier_at_any_date
from umpc.transport.people_door import MOST_AT_ONCE, Door, door

NAMES = ("west", "east")
LOUD = 10**9
"""At this ε the noise is 0."""


@dataclass
class Person:
    """A person's device. Its boxes are made once."""

    place: int
    signing_seed: bytes
    values: tuple[int, int]
    device_secret: bytes = field(default_factory=lambda: os.urandom(32))
    boxes: tuple[bytes, ...] = ()
    receipts: dict[str, bytes] = field(default_factory=dict)

    def ask(self, survey: messages.Survey) -> tuple[int, bytes, bytes]:
        asked = messages.secret_request(survey, self.place, self.signing_seed, self.device_secret)
        return self.place, *asked

    def make_boxes(self, study: Study, sealed: bytes, keys: Sequence[bytes]) -> None:
        survey = messages_of(study)
        secret = messages.open_secret(survey, self.place, self.device_secret, sealed)
        columns = {
            each.name: np.array([value])
            for each, value in zip(study.fields, self.values, strict=True)
        }
        cell = int(grid_of(study).tabulate(columns).argmax())
        number = (cell - messages.offset(survey, self.place, secret)) % survey.cells
        nonce, *secrets = (os.urandom(32) for _ in range(3))
        _, boxes = messages.make_boxes(
            survey, keys, self.place, number, nonce, self.signing_seed, secrets
        )
        self.boxes = tuple(boxes)


class Survey:
    """A dealer, two aggregators, a study, and its people.

    Args: places: each has a person. values: of each of a person's two answers. terms: of the study.
    """

    def __init__(self, folder: Path, places: int, values: int = 8, **terms: object):
        self.values = values
        self.folder = folder
        self.environment: dict[str, Mapping[str, str]] = {"coordinator": {}}
        self.deployment = Deployment(folder, self.environment, Forked, reserved_address)
        self.doors = {name: reserved_address() for name in (*NAMES, "dealer")}
        self.served: dict[str, Served] = {}
        self.places = places
        self.terms = terms
        self.people: list[Person] = []
        self.keys: list[bytes] = []
        rng = np.random.default_rng(places)
        tokens = list(new_tokens(places, os.urandom))
        write_keys(folder / "people.keys", (key for _, key in tokens))
        for place, (seed, _) in enumerate(tokens):
            x = int(rng.integers(values))
            y = int(rng.integers(values)) if place % 2 else x
            self.people.append(Person(place, seed, (x, y)))

    # --- processes ----------------------------------------------------------------------------

    def start(self, *, hub: bool = False, more: str = "") -> Survey:
        if hub:
            self.deployment.start_hub()
        self.deployment.authority.issue("dealer", "dealer", self.folder / "dealer")
        self.start_dealer()
        for name in NAMES:
            self.deployment.authority.issue(name, "node", self.folder / name)
            (self.folder / f"{name}.toml").write_text(
                f'name = "{name}"\nidentity = "{name}"\n{self._place()}'
                f'[data]\npeople = "{name}-people"\n[people]\nlisten = "{self.doors[name]}"\n'
                f"[budget]\nepsilon = {10 * LOUD}\n{more}"
            )
            self.start_aggregator(name)
        self.served.update(self.deployment.wait_until_ready())
        return self

    def _place(self) -> str:
        if self.deployment.hub is None:
            return f'listen = "{reserved_address()}"\n'
        name, _, address = self.deployment.hub.removeprefix("hub:").partition("@")
        return f'hub = {{name = "{name}", address = "{address}"}}\n'

    def start_dealer(self) -> None:
        hub = self.deployment.hub
        place = ["--hub", hub.removeprefix("hub:")] if hub else ["--listen", self._dealer_at()]
        people = ["--people", str(self.folder / "dealt"), "--people-listen", self.doors["dealer"]]
        identity = ["--identity", str(self.folder / "dealer")]
        self.deployment.start("dealer", ["dealer", "start", *identity, *place, *people])

    def _dealer_at(self) -> str:
        served = self.served.get("dealer")
        return served.address if served else reserved_address()

    def start_aggregator(self, name: str) -> None:
        config = self.folder / f"{name}.toml"
        self.deployment.start(name, ["node", "start", "--config", str(config)])

    def restart(self, name: str, failpoint: str = "") -> None:
        """Start a process again, after it has ended or by ending it."""
        self.kill(name)
        self.environment[name] = {"UMPC_FAILPOINT": failpoint} if failpoint else {}
        self.start_dealer() if name == "dealer" else self.start_aggregator(name)
        self.served.update(self.deployment.wait_until_ready())

    def kill(self, name: str) -> None:
        """End a process by SIGKILL, if it runs."""
        process = self.served[name].process
        if process.poll() is None:
            process.kill()
        process.wait()

    def has_died(self, name: str) -> bool:
        """Whether a process has ended, within some seconds."""
        try:
            self.served[name].process.wait(20)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        stop(self.deployment.processes)

    # --- the study ----------------------------------------------------------------------------

    def file(
        self,
        name: str = "survey",
        *,
        seconds: float = 3600,
        adversary: str = "honest",
        **terms: object,
    ) -> Path:
        """Write the study's file. Args: seconds: until it closes."""
        now = datetime.now(UTC)
        moments = {
            "opens": f"{now - timedelta(days=1):%FT%TZ}",
            "closes": f"{now + timedelta(seconds=seconds):%FT%TZ}",
        }
        people = {"keys": "people.keys", **moments, **self.terms, **terms}
        lines = [
            f'name = "{name}"\nstatistic = "kendall_tau"\ncolumns = ["one", "other"]',
            f'epsilon = {LOUD}\nidentity = "coordinator"\nprotocol = "people"',
            f'adversary = "{adversary}"',
            *(
                f'[[fields]]\nname = "{each}"\nlower = 0\nupper = {self.values - 1}\nwhole = true'
                for each in ("one", "other")
            ),
            f'[dealer]\nname = "dealer"\naddress = "{self.served["dealer"].address}"',
            *(
                f'[[aggregators]]\nname = "{each}"\naddress = "{self.served[each].address}"'
                for each in NAMES
            ),
            "[people]",
            *(f"{key} = {json.dumps(value)}" for key, value in people.items()),
        ]
        path = self.folder / f"{name}.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    def study(self, **terms: Any) -> Study:
        return load_study_file(self.file(**terms)).study("coordinator")

    def identity(self, name: str = "coordinator") -> Identity:
        return load_identity(self.folder / name, "coordinator")

    def open(self, study: Study, coordinator: str = "coordinator") -> tuple[BoxKey, ...]:
        def keys() -> Iterable[bytes]:
            return read_keys(self.folder / "people.keys")

        found = run_now(open_people(study, keys, self.identity(coordinator)))
        self.keys = [each.key for each in found]
        return found

    def count(self, study: Study, coordinator: str = "coordinator") -> tuple[Study, list[bytes]]:
        return run_now(count_people(study, self.identity(coordinator)))

    def run(self, counted: Study, returning: float = 30) -> Report:
        return run_now(run_study(counted, self.identity(), returning=returning))

    def wait_until_closed(self, study: Study) -> None:
        """Wait for the closing time, which this machine's clock says to all."""
        time.sleep(max(0.0, seconds_of(terms_of(study).closes) - time.time()) + 0.1)

    def grid_study(self) -> Study:
        """A study of tables over the same nodes."""
        text = self.file("tables").read_text().replace("aggregators", "nodes")
        path = self.folder / "tables.toml"
        path.write_text(text.partition("[people]")[0].replace('"people"', '"grid"'))
        return load_study_file(path).study("coordinator")

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `umpc` with these words to its end."""
        pipe = subprocess.PIPE
        with Forked([*UMPC, *words], stdout=pipe, stderr=pipe, text=True) as process:
            try:
                output, error = process.communicate(timeout=120)
            finally:
                stop([process])
        return subprocess.CompletedProcess(process.args, process.returncode, output, error)

    # --- people -------------------------------------------------------------------------------

    async def door(self, name: str) -> Door:
        role = "dealer" if name == "dealer" else "node"
        ca_pem = (self.folder / "west" / "ca.pem").read_bytes()
        return await door(self.doors[name], ca_pem, name, role, 5)

    def fetch(self, study: Study, people: Sequence[Person]) -> None:
        """People get their secrets, and make their boxes."""

        async def fetched() -> None:
            async with await self.door("dealer") as dealer:
                for some in _in_batches(people):
                    survey = messages_of(study)
                    asked = [each.ask(survey) for each in some]
                    for person, sealed in zip(
                        some, await dealer.secrets(survey.hash, asked), strict=True
                    ):
                        person.make_boxes(study, checked(sealed), self.keys)

        asyncio.run(fetched())

    def send(
        self, study: Study, people: Sequence[Person], names: Sequence[str] = NAMES
    ) -> list[UmpcError]:
        """People send their boxes, and keep receipts. Returns: why some were not taken."""
        failures: list[UmpcError] = []

        async def sent(name: str) -> None:
            async with await self.door(name) as aggregator:
                for some in _in_batches(people):
                    boxes = [(each.place, each.boxes[NAMES.index(name)]) for each in some]
                    answers = await aggregator.submit(messages_of(study).hash, boxes)
                    for person, answer in zip(some, answers, strict=True):
                        if isinstance(answer, UmpcError):
                            failures.append(answer)
                        else:
                            person.receipts[name] = answer

        async def all_sent() -> None:
            for name in names:
                await sent(name)

        asyncio.run(all_sent())
        return failures

    def check_receipts(self, study: Study, people: Sequence[Person], rows: Sequence[bytes]) -> None:
        """Every person's receipt is signed by both, the same, and in the list of counted rows."""
        survey, verify = messages_of(study), verifier_at_any_date(self.identity().ca_pem)
        counted = {row[8:]: int.from_bytes(row[:8], "little") for row in rows}
        for side, name in enumerate(NAMES):
            key = verify(self.certificate(name)).key
            for person in people:
                receipt, signature = person.receipts[name][:32], person.receipts[name][32:]
                text = messages.receipt_statement(survey, side, person.place, receipt)
                assert is_signature(key, text, signature)
                assert counted[receipt] == person.place

    def certificate(self, name: str) -> bytes:
        return certificate_in(self.folder / name / "cert.pem")

    def spent(self, name: str) -> int:
        """The studies that a running aggregator has charged for, by its audit trail."""
        trail = self.folder / f"{name}-ledger.sqlite.audit"
        return sum('"event":"charge"' in line for line in trail.read_text().splitlines())

    def shares(self, name: str) -> list[bytes | None]:
        """The shares of tables on an aggregator's disk, one a study."""
        file = self.folder / f"{name}-people" / "people.sqlite"
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
            return [share for (share,) in db.execute("SELECT share FROM studies")]

    def events(self, name: str) -> list[str]:
        trail = self.folder / f"{name}-ledger.sqlite.audit"
        return [json.loads(line)["event"] for line in trail.read_text().splitlines()]


def checked(found: bytes | UmpcError) -> bytes:
    if isinstance(found, UmpcError):
        raise found
    return found


def tau(people: Sequence[Person]) -> float:
    """Kendall's tau a of all pairs, in the clear."""
    one, other = np.array([person.values for person in people]).T
    signs = np.sign(one[:, None] - one) * np.sign(other[:, None] - other)
    return float(signs.sum() / (len(people) * (len(people) - 1)))


def _in_batches(people: Sequence[Person]) -> Iterable[Sequence[Person]]:
    for start in range(0, len(people), MOST_AT_ONCE):
        yield people[start : start + MOST_AT_ONCE]
