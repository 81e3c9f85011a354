"""Ctrl-C pressed once, twice at once, and again after a while."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from fedfuse.cli import interrupts
from fedfuse.cli.interrupts import ENDING, hear_interrupts, ignore_interrupts


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("first", ENDING)
def test_the_first_counts_and_those_right_after_it_do_not(
    monkeypatch: pytest.MonkeyPatch, first: signal.Signals
) -> None:
    clock = [100.0]
    monkeypatch.setattr(interrupts.time, "monotonic", lambda: clock[0])
    signal.signal(first, signal.SIG_DFL)
    hear_interrupts()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(first)
    for _ in range(4):
        clock[0] += 0.02
        signal.raise_signal(signal.SIGTERM)
    clock[0] += interrupts.PATIENCE
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(first)


def test_what_a_shell_or_nohup_has_decided_stays_so() -> None:
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    hear_interrupts()
    for number in (signal.SIGINT, signal.SIGHUP):
        assert signal.getsignal(number) == signal.SIG_IGN
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)


def test_nothing_is_heard_at_the_end() -> None:
    hear_interrupts()
    ignore_interrupts()
    for number in ENDING:
        signal.raise_signal(number)


END = """
import atexit, os, signal, sys
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
sys.argv = ["fedfuse", "presets"]
from fedfuse.cli import main
main()
"""


def test_ctrl_c_while_python_ends_is_no_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", END], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
