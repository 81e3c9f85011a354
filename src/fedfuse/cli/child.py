"""``python -m fedfuse.cli.child``: the command line in a process that does not outlive the one that started it.

Its standard input is a pipe that nobody writes to. The pipe ends when the process that holds its other end is gone,
however that ended, and then this one ends at once: whatever happens to a run, its finished rounds are kept.
"""

from __future__ import annotations

import os
import threading

from fedfuse.cli import main

STANDARD_INPUT = 0


def _end_with_parent() -> None:
    while os.read(STANDARD_INPUT, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    main()
