"""Messages on the wire: bytes ⇄ dataclasses, validated.

Protobuf objects occur in this folder, in `umpc.transport` and in the gRPC shells only.

| file | what it is |
|---|---|
| `v1/` | the schema `umpc.proto` (package umpc.v1), and the Python that is generated from it |
| `codec.py` | conversion between protobuf messages, frames and the dataclasses of sessions |
"""
