"""The page over HTTPS, and the relay of sealed messages to the doors of dealer and aggregators.

It sees sealed bytes only: the browser masks and seals. Yet whoever serves the page chooses the
program that a browser runs, so it should be somebody outside the dealer and both aggregators.

| what a stranger costs | bound |
|---|---|
| a body | MOST_BYTES |
| one address | so many requests a second (IPv6: one network of 64 bits), else status 429 |
| a connection that says nothing, or a slow one | SILENT_SECONDS |

No body and no address is written to a log. A message is relayed once: a browser whose call failed
sends the same bytes again.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from umpc.decoding import decode
from umpc.errors import AddressInUse, CertificateError, ConfigError, TransportError, UmpcError
from umpc.people.device import Invited
from umpc.people.messages import ROW_BYTES
from umpc.people_page.contents import Texts, contents, program
from umpc.transport.addresses import split_address
from umpc.transport.people_door import Budget, Door, door

MOST_BYTES = 1024
MOST_PER_SECOND = 100
"""Requests of one address: a page is four, an answer three. A school has one address."""
SILENT_SECONDS = 120
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
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
KINDS = (
    ("another device has fetched", "used"),
    ("has sent another message before", "used"),
    ("not signed by the key", "foreign"),
    ("places, from 0 on", "foreign"),
    ("has places from 0", "foreign"),
    ("not open yet", "shut"),
    ("no such study of people, or it has closed", "shut"),
    ("takes messages for this study", "shut"),
    ("takes no message for this study", "shut"),
    ("has not counted this study yet", "uncounted"),
)
"""Words of a door, and the text of the page that stands for them."""
log = logging.getLogger("umpc.people")
UNHEARD = logging.getLogger("umpc.people.http")
UNHEARD.disabled = True  # it would name the addresses of callers
Connect = Callable[[str, bytes, str, str], Awaitable[Door]]
Call = Callable[[Door], Awaitable[Any]]
Asked = TypeVar("Asked")


class SecretAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A browser asks for its secret. Bytes are in base64."""

    place: int
    device: bytes
    signature: bytes


class BoxSent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A browser's box for one aggregator."""

    place: int
    box: bytes


class PeoplePage:
    """Answers the browsers of one study's people.

    Args:
        question: what people are asked; the study's name if it is empty.
        behind_proxy: the caller's address is the last one that a reverse proxy has written down.
        most: requests a second of one address.
        connect: opens a door, as `people_door.door` does.
    """

    def __init__(
        self,
        invited: Invited,
        question: str,
        texts: Texts,
        *,
        behind_proxy: bool = False,
        most: int = MOST_PER_SECOND,
        connect: Connect = door,
    ):
        files, self.code = program()
        self._hash, invitation = invited.survey.hash, invited.invitation
        self._authority = invitation.ca.encode()
        self._entries = (*invitation.aggregators, invitation.dealer)
        self._behind_proxy = behind_proxy
        self._connect = connect
        self._budget = Budget(most)
        self._doors: dict[int, Door] = {}
        self._lists: dict[int, bytes] = {}
        self._locks: dict[object, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._heard: dict[Any, float] = {}
        self._files = {f"/{name}": (data, TYPES[name[5:]]) for name, data in files.items()}
        self._files["/"] = self._files.pop("/page.html")
        shown = contents(invited, question, texts, self.code)
        self._files["/study.json"] = shown, "application/json"
        self._files["/invitation.json"] = invitation.encode(), "application/json"

    def app(self) -> web.Application:
        """The page as an application of aiohttp."""
        made = web.Application(middlewares=[self._guarded], client_max_size=MOST_BYTES)
        for path in self._files:
            made.router.add_get(path, self._file)
        made.router.add_post("/secrets", self._secret)
        made.router.add_post("/submit/{side:[01]}", self._submit)
        made.router.add_get("/counted/{side:[01]}/{place:[0-9]{1,10}}", self._row)
        return made

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Bound what a caller costs, and name what failed."""
        self._heard[request.protocol] = time.monotonic()
        try:
            if not self._budget.take(self._caller(request), 1):
                return _failed(429, "busy")
            answer: web.StreamResponse = await handler(request)
        except web.HTTPException as error:
            answer = _failed(error.status, "refused", detail=error.reason)
        except (TransportError, CertificateError) as error:
            answer = _failed(503, "down", name=error.culprit or "")
        except UmpcError as error:
            kinds = [kind for words, kind in KINDS if words in error.message]
            # no failure of the page: a browser would write one into its console
            answer = _failed(200, *(kinds[:1] or ["refused"]), detail=error.message)
        except Exception:
            log.exception("a request of the page was not answered")
            answer = _failed(500, "refused", detail="the page failed")
        return answer

    def _caller(self, request: web.Request) -> str:
        """The caller's address, as gRPC writes one."""
        told = request.headers.get("X-Forwarded-For", "") if self._behind_proxy else ""
        return f"ip:{told.rpartition(',')[2].strip() or request.remote}:0"

    async def _file(self, request: web.Request) -> web.Response:
        data, kind = self._files[request.path]
        return web.Response(body=data, headers=HEADERS, content_type=kind, charset="utf-8")

    async def _secret(self, request: web.Request) -> web.Response:
        asked = await _read(request, SecretAsked)
        one = (asked.place, asked.device, asked.signature)
        return _found(await self._ask(2, lambda to: to.secrets(self._hash, [one])))

    async def _submit(self, request: web.Request) -> web.Response:
        sent = await _read(request, BoxSent)
        one = (sent.place, sent.box)
        side = int(request.match_info["side"])
        return _found(await self._ask(side, lambda to: to.submit(self._hash, [one])))

    async def _row(self, request: web.Request) -> web.Response:
        """The row of one place on an aggregator's list; empty if there is none."""
        rows, place = await self._rows(request), int(request.match_info["place"])

        def place_at(index: int) -> int:
            return int.from_bytes(rows[index * ROW_BYTES :][:8], "little")

        at = bisect_left(range(len(rows) // ROW_BYTES), place, key=place_at)
        row = rows[at * ROW_BYTES : (at + 1) * ROW_BYTES]
        return _found([row if row and place_at(at) == place else b""])

    async def _rows(self, request: web.Request) -> bytes:
        """An aggregator's counted rows, by place, which never change once they are there."""
        side = int(request.match_info["side"])

        async def whole(to: Door) -> bytes:
            return b"".join([part async for part in to.counted(self._hash)])

        async with self._locks["list", side]:
            if side not in self._lists:
                self._lists[side] = await self._ask(side, whole)
            return self._lists[side]

    async def _ask(self, which: int, call: Call) -> Any:
        """Ask a door: 0 and 1 are the aggregators' in the study's order, 2 is the dealer's.

        Raises: TransportError naming the one that did not answer; other errors as the door's.
        """
        entry, role = self._entries[which], "dealer" if which == 2 else "node"
        try:
            async with self._locks["door", which]:
                if which not in self._doors:
                    self._doors[which] = await self._connect(
                        entry.address, self._authority, entry.name, role
                    )
                to = self._doors[which]
            return await call(to)
        except (TransportError, CertificateError) as error:
            # the next call looks at its certificate anew: it may have been renewed
            if lost := self._doors.pop(which, None):
                await lost.close()
            error.culprit = entry.name
            raise

    @asynccontextmanager
    async def served(self, listen: str, tls: ssl.SSLContext | None) -> AsyncIterator[str]:
        """Serve the page inside the block, and yield its address. Raises: AddressInUse."""
        runner = web.AppRunner(
            self.app(), access_log=None, logger=UNHEARD, keepalive_timeout=SILENT_SECONDS
        )
        await runner.setup()
        host, port = split_address(listen)
        ending = asyncio.create_task(self._end_silent(runner))
        try:
            await web.TCPSite(runner, host, port, ssl_context=tls).start()
            bound = runner.addresses[0][:2]
            yield f"{'https' if tls else 'http'}://{host}:{bound[1]}/"
        except OSError as error:
            raise AddressInUse(
                f"--listen {listen}: it cannot be listened on there ({error.strerror}): choose "
                "another address or port"
            ) from error
        finally:
            ending.cancel()
            await runner.cleanup()
            for each in self._doors.values():
                await each.close()

    async def _end_silent(self, runner: web.AppRunner) -> None:
        """End connections on which no request has begun for a time."""
        while True:
            await asyncio.sleep(SILENT_SECONDS / 8)
            now = time.monotonic()
            open_now = runner.server.connections if runner.server else []
            self._heard = {each: self._heard.get(each, now) for each in open_now}
            for each, heard in self._heard.items():
                if now - heard > SILENT_SECONDS:
                    each.force_close()


async def _read(request: web.Request, kind: type[Asked]) -> Asked:
    """The body of a call. Raises: HTTPException."""
    try:
        return decode(await request.read(), kind)
    except msgspec.MsgspecError:
        raise web.HTTPBadRequest(reason="another message was expected") from None


def _found(replies: list[bytes | UmpcError]) -> web.Response:
    """The one reply of a door. Raises: UmpcError."""
    (reply,) = replies
    if isinstance(reply, UmpcError):
        raise reply
    return _json(200, {"data": reply})


def _failed(status: int, kind: str, **more: str) -> web.Response:
    return _json(status, {"kind": kind, **more})


def _json(status: int, said: dict[str, Any]) -> web.Response:
    body = msgspec.json.encode(said)
    return web.Response(status=status, body=body, headers=HEADERS, content_type="application/json")


# --- the certificate ------------------------------------------------------------------------------


class RenewedContext:
    """TLS with a certificate that is read again when its files change, for the next handshake.

    Args: path: a folder with fullchain.pem and privkey.pem, or one file with both.

    Raises: ConfigError.
    """

    def __init__(self, path: Path):
        self._files = [path / "fullchain.pem", path / "privkey.pem"] if path.is_dir() else [path]
        self._shown = self._changed()
        self.context = self._latest = self._loaded()
        self.context.sni_callback = self._choose

    def _changed(self) -> list[int]:
        with suppress(OSError):
            return [each.stat().st_mtime_ns for each in self._files]
        return []

    def _loaded(self) -> ssl.SSLContext:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            made.load_cert_chain(self._files[0], self._files[-1])
        except OSError as error:
            raise ConfigError(
                f"--tls: a certificate and its key were expected in "
                f"{' and '.join(map(str, self._files))}, and they cannot be used ({error}): "
                "correct the path"
            ) from error
        return made

    def _choose(self, connection: ssl.SSLObject, name: str | None, first: ssl.SSLContext) -> None:
        changed = self._changed()
        if changed != self._shown:
            self._shown = changed
            try:
                self._latest = self._loaded()
                log.info("the page's certificate was read again")
            except ConfigError as error:
                # half-written, or wrong: the former one stays
                log.error("%s", error.message)
        connection.context = self._latest
