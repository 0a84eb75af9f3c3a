"""The generated stubs and servicers, behind `tls`: gRPC must not be imported before TLS 1.2 is switched off."""

from umpc.transport.tls import grpc  # isort: skip  (first: see tls.py)
from umpc.proto.v1 import umpc_pb2_grpc as rpc

__all__ = ["grpc", "rpc"]
