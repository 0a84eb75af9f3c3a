"""A slow line in front of servers.

`python -m bench.proxy DELAY_MS MEGABITS ADDRESS…` prints a new address for each server. Data sent
to it arrive DELAY_MS later, in order, at MEGABITS a second in each direction; 0 megabits is no
limit. Little data waits at the line's beginning, as on a real line: a sender waits until its data
fit. A new connection first waits for a handshake there and back, as in TCP. The end of a connection
arrives late, too.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections import deque

READ = 1 << 14
WAITING_SECONDS = 0.1
"""Seconds of a line's traffic that may wait at its beginning."""
BUFFER = 1 << 17
"""Bytes that the kernel buffers for us. A larger buffer would hide how slow the line is."""


class Line:
    """One direction of a server's line. All its connections share it."""

    def __init__(self, delay: float, bytes_a_second: float):
        self.delay, self.rate = delay, bytes_a_second
        self._free = 0.0

    async def send(self, size: int) -> float:
        """Wait until the line takes a piece, and return the time of its arrival."""
        now = asyncio.get_running_loop().time()
        self._free = max(self._free, now) + (size / self.rate if self.rate else 0.0)
        arrival = self._free + self.delay
        await asyncio.sleep(max(0.0, self._free - now - WAITING_SECONDS))
        return arrival


async def pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: Line, not_before: float
) -> None:
    """Pass everything from one end to the other, each piece at its time of arrival."""
    loop, pieces, more = asyncio.get_running_loop(), deque(), asyncio.Event()

    async def deliver() -> None:
        while True:
            while not pieces:
                more.clear()
                await more.wait()
            when, piece = pieces.popleft()
            await asyncio.sleep(max(when, not_before) - loop.time())
            if not piece:
                return
            writer.write(piece)
            await writer.drain()

    delivering = asyncio.create_task(deliver())
    try:
        piece = b"-"
        while piece:
            piece = await reader.read(READ)
            pieces.append((await line.send(len(piece)), piece))
            more.set()
        await delivering
    except OSError:
        pass
    finally:
        delivering.cancel()
        writer.close()


async def serve(address: str, delay: float, rate: float) -> str:
    """Listen on a new address, and pass its connections on to this one. Return the new address."""
    host, port = address.rsplit(":", 1)
    there, back = Line(delay, rate), Line(delay, rate)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = _socket()
        try:
            await asyncio.get_running_loop().sock_connect(target, (host, int(port)))
        except OSError:
            writer.close()
            return
        target_reader, target_writer = await asyncio.open_connection(sock=target)
        first = asyncio.get_running_loop().time() + 3 * delay
        await asyncio.gather(
            pump(reader, target_writer, there, first),
            pump(target_reader, writer, back, first),
            return_exceptions=True,
        )

    listener = _socket()
    listener.bind(("127.0.0.1", 0))
    server = await asyncio.start_server(accept, sock=listener, limit=READ)
    return f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


def _socket() -> socket.socket:
    # With the protocol named, asyncio turns Nagle's algorithm off, and so sends at once.
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    made.setblocking(False)
    return made


async def main(delay_ms: str, megabits: str, *addresses: str) -> None:
    for address in addresses:
        print(await serve(address, float(delay_ms) / 1e3, float(megabits) * 125_000), flush=True)
    await asyncio.to_thread(sys.stdin.read)  # the line ends with the process that started it
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
