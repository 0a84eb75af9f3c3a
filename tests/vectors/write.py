"""Write the test vectors anew: `python -m tests.vectors.write [PART …]`.

Run it only after a change of the protocol that is meant, and then read the difference: another
implementation that has not changed will refuse what ours sends. Without arguments it writes all.
"""

from __future__ import annotations

import json
import sys

from tests.vectors.catalogue import PARTS
from tests.vectors.part import FOLDER


def write(name: str) -> None:
    """Compute a part's vectors with today's code, and write its file."""
    text = json.dumps(PARTS[name].document(), indent=1, ensure_ascii=False)
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        sys.exit(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for each in chosen:
        write(each)
        print(f"{each}.json")
