"""The command `umpc` with the toy protocol: `python -m tests.toy …`."""

from __future__ import annotations

from tests.toy.protocol import ToyProtocol
from umpc.cli.main import main
from umpc.protocols.registry import register

register(ToyProtocol())

if __name__ == "__main__":
    main()
