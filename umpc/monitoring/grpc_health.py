"""The standard health service of gRPC, on a process's own port.

Only processes with a certificate of the same authority may ask, as for every other call. It answers
SERVING from the start to the beginning of the end.
"""

from __future__ import annotations

from typing import Any

from umpc.transport.certificates import ROLES
from umpc.transport.tls import grpc

ALLOWED = {"/grpc.health.v1.Health/Check": frozenset(ROLES)}


class Health:
    """The service of one server. Args: server: one that has not started."""

    def __init__(self, server: grpc.aio.Server):
        # Here, because `tls` must be the first to import gRPC.
        from grpc_health.v1 import health_pb2_grpc
        from grpc_health.v1._async import HealthServicer

        self._servicer: Any = HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def ending(self) -> None:
        """Answer NOT_SERVING from now on, until the server stops."""
        await self._servicer.enter_graceful_shutdown()
