"""`umpc` whose nodes make no channels of transfers between studies, for `garbled_targets.py`.

Each study without a dealer then sets up its channel by curve points.
"""

from __future__ import annotations

from umpc.node.attempts import making_channels

making_channels.MOST_PEERS = 0

if __name__ == "__main__":
    from umpc.cli.main import main

    main()
