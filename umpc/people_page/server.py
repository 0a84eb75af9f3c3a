"""The page over HTTPS, and the relay of sealed messages to the doors of dealer and aggregators.

It sees sealed bytes only: the browser masks and seals. Yet whoever serves the page chooses the
program that a browser runs. So people trust it, and the page says who it is.

| what a stranger costs | bound |
|---|---|
| a body | MOST_BYTES |
| one address | MOST_PER_SECOND requests a second (IPv6: one network of 64 bits), else status 429 |
| a connection that says nothing, or says it slowly | SILENT_SECONDS |
| a connection that does not read | none |

No body and no address is written to a log. A message is relayed once, over a
connection of its own as a device has one: a browser whose call failed sends the same bytes again.
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from aiohttp import web

from umpc.decoding import decode
from umpc.errors import ConfigError, TransportError, UmpcError
from umpc.people.messages import ROW_BYTES
from umpc.people_page.contents import PeopleContents
from umpc.transport.addresses import refuse_if_taken, split_address
from umpc.transport.people_door import Budget, Door, door

MOST_BYTES = 1024
MOST_PER_SECOND = 100
"""Requests of one address: a page is three, an answer three. A school has one address."""
SILENT_SECONDS = 120
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
KINDS = {
    "used": "another device has fetched|has sent another message before",
    "foreign": "not signed by the key|has .*places,? from 0",
    "shut": "not open yet|no such study of people|takes (messages|no message) for this study",
    "uncounted": "has not counted this study yet",
}
"""A text of the page, and the words of a door for which it stands."""
DEALER = 2
"""Its place behind both aggregators, which have the study's order."""
log = logging.getLogger("umpc.people")
UNHEARD = logging.getLogger("umpc.people.http")
UNHEARD.disabled = True  # it would name the addresses of callers
Connect = Callable[[str, bytes, str, str], Awaitable[Door]]
Call = Callable[[Door], Awaitable[Any]]
Place = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]


class PeoplePage:
    """Answers the browsers of one study's people.

    Args: connect: opens a door, as `people_door.door` does.
    """

    def __init__(self, contents: PeopleContents, connect: Connect = door):
        invitation = contents.invited.invitation
        self._files, self._hash = contents.files, contents.invited.survey.hash
        self._authority = invitation.ca.encode()
        self._entries = (*invitation.aggregators, invitation.dealer)
        self._connect = connect
        self._budget = Budget(MOST_PER_SECOND)
        self._lists: dict[int, asyncio.Task[Any]] = {}
        self._is_behind_proxy = False

    def _app(self) -> web.Application:
        made = web.Application(middlewares=[self._guarded], client_max_size=MOST_BYTES)
        for path in self._files:
            made.router.add_get(path, self._file)
        made.router.add_post("/relay/{which:[0-2]}", self._relay)
        made.router.add_get("/counted/{which:[01]}/{place:[0-9]{1,10}}", self._row)
        return made

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Bound what a caller costs, and name what failed."""
        # a proxy may write a line of its own behind the caller's
        lines = request.headers.getall("X-Forwarded-For", []) if self._is_behind_proxy else []
        caller = ",".join(lines).rpartition(",")[2].strip() or request.remote
        answer: web.StreamResponse
        try:
            if self._budget.take(f"ip:{caller}:0", 1):
                answer = await handler(request)
            else:
                answer = _json(429, kind="busy")
        except web.HTTPException:
            raise
        except TransportError as error:
            answer = _json(503, kind="down", name=error.culprit or "")
        except UmpcError as error:
            kinds = [kind for kind, words in KINDS.items() if re.search(words, error.message)]
            # no failure of the page: a browser would write one into its console
            answer = _json(200, kind=(*kinds, "refused")[0], detail=error.message)
        except Exception:
            log.exception("a request of the page was not answered")
            raise web.HTTPInternalServerError from None
        answer.headers.update(HEADERS)
        return answer

    async def _file(self, request: web.Request) -> web.Response:
        data, kind = self._files[request.path]
        return web.Response(body=data, content_type=kind, charset="utf-8")

    async def _relay(self, request: web.Request) -> web.Response:
        """Pass on a request of a secret, as place, key and signature, or a box and its place."""
        which = int(request.match_info["which"])
        kind = tuple[Place, bytes, bytes] if which == DEALER else tuple[Place, bytes]
        try:
            async with asyncio.timeout(SILENT_SECONDS):
                sent: Any = decode(await request.read(), kind)
        except (msgspec.MsgspecError, TimeoutError):
            raise web.HTTPBadRequest from None

        async def call(to: Door) -> list[bytes | UmpcError]:
            return await (to.secrets if which == DEALER else to.submit)(self._hash, [sent])

        (reply,) = await self._ask(which, call)
        if isinstance(reply, UmpcError):
            raise reply
        return _json(200, data=reply)

    async def _row(self, request: web.Request) -> web.Response:
        """The row of one place on an aggregator's list; empty if there is none."""
        side, place = int(request.match_info["which"]), int(request.match_info["place"])
        asked = self._lists.get(side)
        # a list never changes once it is there; all who wait for one get the same failure
        if asked is None or (asked.done() and asked.exception()):
            asked = self._lists[side] = asyncio.create_task(self._list(side))
        rows, places = await asyncio.shield(asked)
        start, stop = places.searchsorted([place, place + 1])
        return _json(200, data=rows[start:stop].tobytes())

    async def _list(self, side: int) -> tuple[Any, Any]:
        """An aggregator's rows, and their places."""
        rows = np.frombuffer(await self._ask(side, self._whole), f"<u8, V{ROW_BYTES - 8}")
        return rows, rows["f0"].copy()

    async def _whole(self, to: Door) -> bytes:
        return b"".join([part async for part in to.counted(self._hash)])

    async def _ask(self, which: int, call: Call) -> Any:
        """Ask a door. Raises: TransportError naming who did not answer; others as the door's."""
        entry, role = self._entries[which], "dealer" if which == DEALER else "node"
        try:
            to = await self._connect(entry.address, self._authority, entry.name, role)
            async with to:
                return await call(to)
        except TransportError as error:
            error.culprit = entry.name
            raise

    @asynccontextmanager
    async def served(self, listen: str, tls: Path | None) -> AsyncIterator[str]:
        """Serve the page inside the block, and yield its address.

        Args: tls: where certificate and key are; None behind a reverse proxy, which speaks TLS and
            writes each caller's address behind X-Forwarded-For.

        Raises: AddressInUse, ConfigError.
        """
        self._is_behind_proxy = tls is None
        host, port = split_address(listen)
        context = renewed_context(tls) if tls else None
        refuse_if_taken(host, port, listen)
        runner = web.AppRunner(
            self._app(), access_log=None, logger=UNHEARD, keepalive_timeout=SILENT_SECONDS
        )
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, port, ssl_context=context)
            await site.start()
            yield f"{site.name}/"
        finally:
            await runner.cleanup()


def _json(status: int, **said: Any) -> web.Response:
    body = msgspec.json.encode(said)
    return web.Response(status=status, body=body, content_type="application/json")


# --- the certificate ------------------------------------------------------------------------------


def renewed_context(path: Path) -> ssl.SSLContext:
    """TLS with a certificate that is read again for each connection.

    Args: path: a folder with fullchain.pem and privkey.pem, or one file with both.

    Raises: ConfigError.
    """
    files = [path / "fullchain.pem", path / "privkey.pem"] if path.is_dir() else [path]

    def loaded() -> ssl.SSLContext:
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            made.load_cert_chain(files[0], files[-1])
        except OSError as error:
            raise ConfigError(
                f"--tls: a certificate and its key were expected in "
                f"{' and '.join(map(str, files))}, and they cannot be used ({error}): correct the "
                "path"
            ) from error
        return made

    first = latest = loaded()

    def choose(connection: ssl.SSLObject, *_: object) -> None:
        nonlocal latest
        try:
            latest = loaded()
        except ConfigError as error:
            # half-written, or wrong: the former one stays
            log.error("%s", error.message)
        connection.context = latest

    first.sni_callback = choose
    return first
