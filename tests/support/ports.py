"""Ports of this machine that nobody else gets while the tests run."""

from __future__ import annotations

import socket


def reserved_port(port: int = 0) -> int:
    """Return a port of 127.0.0.1 at which nobody listens, and which the system gives to nobody.

    A port that was free is somebody's a moment later: the next server that asks for any port gets
    it. This one stays bound until this process ends, and does not listen. A call to it is refused,
    as at a closed port. A server that names it may listen there, again and again, because both
    sides set SO_REUSEADDR, as gRPC's and Python's servers do.

    Args: port: this one; 0 means any. Raises: OSError if another process has it.
    """
    with socket.socket() as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(("127.0.0.1", port))
        port = found.getsockname()[1]
        found.detach()  # the descriptor stays open until this process ends
    return port


def reserved_address() -> str:
    """Return 127.0.0.1 with a reserved port."""
    return f"127.0.0.1:{reserved_port()}"
