"""Messages on the wire: bytes ⇄ dataclasses, validated. No protobuf object leaves this folder and the shells.

| file | what it is |
|---|---|
| `v1/umpc.proto` | the schema (package umpc.v1); the Python beside it is generated |
| `codec.py` | between protobuf messages and the dataclasses of `mpc` |
"""
