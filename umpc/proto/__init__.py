"""Messages on the wire: bytes ⇄ dataclasses, validated.

Protobuf objects occur in this folder, in `umpc.transport` and in the gRPC shells only.

| file | what it is |
|---|---|
| `v1/` | the schema `umpc.proto` (package umpc.v1), and the Python that is generated from it |
| `codec.py` | conversion between protobuf messages and the dataclasses of sessions |
| `pieces.py` | messages with the facts of all nodes, cut into pieces and joined |
| `member_codec.py` | conversion of a study's members, with openings and signatures |
| `frame_codec.py` | conversion of frames, and of bytes by step |
| `checks.py` | checks of bytes and texts that come from outside |
"""
