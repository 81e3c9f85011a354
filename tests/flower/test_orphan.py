"""A process whose main thread waits for something that never comes ends with the process that started it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress

CHILD = """
import os, threading
from fedfuse.flower import orphan
orphan.LOOK = orphan.GRACE = 0.05
orphan.end_with_parent()
print(os.getpid(), flush=True)
threading.Event().wait()
"""
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


def test_it_ends_with_its_parent():
    command = [sys.executable, "-c", PARENT, CHILD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as parent:
        child = int(parent.stdout.readline())
        parent.kill()
        ended, _, _ = select.select([parent.stdout], [], [], 60)  # its end, once nobody can write any more
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        assert ended, "it outlived its parent by a minute"
