"""Messages on the wire: bytes ⇄ dataclasses, validated.

Protobuf objects occur in this folder, in `umpc.transport` and in the gRPC shells only.

| file | what it is |
|---|---|
| `v1/` | the schema `umpc.proto` (package umpc.v1), and the Python that is generated from it |
| `codec.py` | conversion between protobuf messages and the dataclasses of sessions |
| `named_messages.py` | large messages that are named first, and sent where wanted |
| `member_codec.py` | conversion of a study's members, with openings and signatures |
| `shown_codec.py` | conversion of the messages about members in a hash tree |
| `frame_codec.py` | conversion of frames, and of bytes by step |
| `large_parts.py` | large parts of masked tables, with fewer copies |
| `checks.py` | checks of bytes and texts that come from outside |
"""
