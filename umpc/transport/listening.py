"""The check that an address of this machine is free to listen on."""

from __future__ import annotations

import errno
import socket

from umpc.errors import AddressInUse, ConfigError

SocketAddress = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]


def refuse_if_taken(host: str, port: int, listen: str) -> None:
    """Check that all addresses of the host name are free. gRPC would be content with one.

    Raises: AddressInUse, ConfigError.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise ConfigError(
            f"cannot listen on {listen}: {error.strerror}; give an address of this machine"
        ) from None
    failures = [_failure(family, address) for family, _, _, _, address in found]
    if errno.EADDRINUSE in failures:
        raise AddressInUse(
            f"cannot listen on {listen}: another process does already; stop it "
            f"(`ss -ltnp 'sport = {port}'` shows which), or choose another port"
        )
    if all(failures):
        raise ConfigError(
            f"cannot listen on {listen}: {errno.errorcode[failures[0]]}; "
            "give an address of this machine, and a port above 1023"
        )


def _failure(family: int, address: SocketAddress) -> int:
    """Return 0, or the errno of binding there."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(address)
    except OSError as error:
        return error.errno or errno.EIO
    return 0
