"""A small HTTP proxy for tests, as a process: CONNECT only, and one name that it resolves itself.

`python connect_proxy.py PORT` forwards CONNECT to hub.invalid:PORT, and to nothing else, to this
machine. It prints its own port, and then a line for each request.
"""

from __future__ import annotations

import asyncio
import sys

NAME = "hub.invalid"


async def main(allowed: int) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        print(*request.splitlines(), sep=" | ", flush=True)
        if not request.startswith(f"CONNECT {NAME}:{allowed} HTTP/1.1\r\n"):
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        there, back = await asyncio.open_connection("127.0.0.1", allowed)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(copy(reader, back), copy(there, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(1 << 16):
            target.write(data)
            await target.drain()
    except OSError:
        pass
    target.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
