"""The page for people, before a dealer and two aggregators in memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

from tests.support.people import people_study, with_terms
from tests.support.people_doors import PLACES, TOKENS, Doors
from umpc.errors import MessageRefused, PeerUnavailable
from umpc.people.device import check_invitation
from umpc.people.messages import row
from umpc.people.places import token_text
from umpc.people_page.contents import contents_of, read_texts
from umpc.people_page.server import PeoplePage
from umpc.study.parts import FieldBins, FieldText
from umpc.transport.identity import Identity

FIELDS = (
    FieldText("age", "0", "127", whole=True),
    FieldText("income", "0", "10", "0.5"),
    FieldText.of_categories("smokes", ("yes", "no", "I did")),
)
KERNEL = "sign(a.age - b.age) * sign(a.income - b.income) * (a.smokes == b.smokes)"
BINS = (FieldBins("age", cuts=("18", "40", "65")), FieldBins("income", cuts=("2", "5")))
QUESTION = "How old are you, what do you earn, and do you smoke?"
SERVER = "Data Trust"
HOUR = 3600


def moment(after: float) -> str:
    """The moment so many seconds from now, as a study writes it."""
    return time.strftime("%FT%TZ", time.gmtime(time.time() + after))


def survey(opens: float = -HOUR, closes: float = HOUR) -> Any:
    """A study with bins, decimals and categories, which opens and closes so many seconds on."""
    study = people_study(KERNEL, fields=FIELDS, bins=BINS, epsilon="1")
    terms = {"places": PLACES, "fewest": 100, "opens": moment(opens), "closes": moment(closes)}
    return with_terms(study.replaced(name="Health and income"), **terms)


def token(place: int) -> str:
    return token_text(place, TOKENS[place][0])


@dataclass
class PageDoors(Doors):
    """The doors as the page reaches them. down: names that do not answer.

    refusing: name → what it says to each message. is_counted: whether both have signed.
    slow: seconds until the dealer answers, call by call.
    """

    down: set[str] = field(default_factory=set)
    refusing: dict[str, str] = field(default_factory=dict)
    is_counted: bool = False
    left_out: set[int] = field(default_factory=set)
    connected: list[str] = field(default_factory=list)
    slow: list[float] = field(default_factory=list)

    async def connect(self, address: str, ca: bytes, name: str, role: str) -> Any:
        self.connected.append(f"{role} {name}")
        if name in self.down:
            raise PeerUnavailable(f"{name} does not answer", culprit=name)
        names = [each.name for each in self.identities]
        return OneDoor(self, name, names.index(name) if role == "node" else None)


@dataclass
class OneDoor:
    """One of the three."""

    doors: PageDoors
    name: str
    side: int | None

    def check(self) -> None:
        if self.name in self.doors.down:
            raise PeerUnavailable(f"{self.name} does not answer", culprit=self.name)
        if words := self.doors.refusing.get(self.name):
            raise MessageRefused(words)

    async def secrets(self, study, requests):
        self.check()
        assert study == self.doors.survey.hash
        await asyncio.sleep(self.doors.slow.pop(0) if self.doors.slow else 0)
        return await self.doors.secrets(study, requests)

    async def submit(self, study, boxes):
        self.check()
        try:
            return await self.doors.aggregator(self.side).submit(study, boxes)
        except MessageRefused as refused:
            return [refused]

    async def counted(self, study):
        self.check()
        if not self.doors.is_counted:
            raise MessageRefused(f"{self.name} has not counted this study yet, or does not know it")
        for place, opened in sorted(self.doors.opened[self.side].items()):
            if place not in self.doors.left_out:
                yield row(place, opened.receipt)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass


def people_page(doors: PageDoors, **options: Any) -> PeoplePage:
    """The page of these doors. Options: own texts, a server, or what opens a door."""
    invited = check_invitation(doors.invitation().encode())
    own = options.pop("own", None)
    asked = {} if own else {"question": QUESTION}
    texts = {language: {**each, **asked} for language, each in read_texts(own).items()}
    contents = contents_of(invited, options.pop("server", SERVER), texts)
    return PeoplePage(contents, options.pop("connect", doors.connect))


@contextmanager
def in_thread(page: PeoplePage, listen: str = "127.0.0.1:0", tls: Any = None) -> Iterator[str]:
    """Serve a page beside this thread, and yield its address."""
    ready, loop = Event(), asyncio.new_event_loop()
    found: list[str] = []
    done = asyncio.Event()

    async def serve() -> None:
        async with page.served(listen, tls) as address:
            found.append(address)
            ready.set()
            await done.wait()

    thread = Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join()
        loop.close()


def page_doors(identities: list[Identity], **terms: float) -> PageDoors:
    return PageDoors(survey(**terms), identities)
