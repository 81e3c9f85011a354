"""What programs print, with the time in front or as JSON: for those that do neither, such as Flower's.

The lines of a process and of all that it starts go through one small process, which outlives them by its last line.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from enum import StrEnum
from logging.handlers import RotatingFileHandler
from pathlib import Path

from fedfuse.core.errors import ConfigError

LONGEST = 1 << 16
"""Bytes of a line; what is longer is several."""
FILE_BYTES, FILES = 10_000_000, 5
"""A log file's size, and how many older ones are kept beside it."""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LEVELS = "DEBUG|INFO|WARNING|ERROR|CRITICAL"
LINE = re.compile(rf"(?:\S+Z +)?(?P<level>{LEVELS})\b(?: +\d{{4}}-\S+ +[\d:,.]+)? *:? *(?P<message>.*)")
"""Flower's lines, with its time or without, and those of its web server."""


class Form(StrEnum):
    """How a line is written."""

    TEXT = "text"
    JSON = "json"


def stamp_output(form: Form | None, file: Path | None = None) -> None:
    """From here on, give all that this process and its children print a time, if a form or a file is named."""
    if form is None and file is None:
        return
    if file is not None:
        _check(file)
    reading, writing = os.pipe()
    command = [
        sys.executable,
        "-m",
        "fedfuse.core.log_lines",
        form or Form.TEXT,
        *([str(file.resolve())] if file else []),
    ]
    subprocess.Popen(command, stdin=reading, start_new_session=True)
    os.close(reading)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for place in (1, 2):
        os.dup2(writing, place)
    os.close(writing)


def stamped(lines: Iterable[bytes], form: Form) -> Iterator[str]:
    """Each line that says something, with the time at which it came; one without a level has that of the one before."""
    level = "INFO"
    for raw in lines:
        text = COLOUR.sub("", raw.decode(errors="replace")).strip()
        if found := LINE.fullmatch(text):
            level, text = found["level"], found["message"]
        elif text.startswith("Traceback ("):
            level = "ERROR"
        if not text:
            continue
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if form is Form.JSON:
            yield json.dumps({"time": now, "level": level, "message": text})
        else:
            yield f"{now} {level:<8} {_printable(text)}"


def main(form: str, file: str | None = None) -> None:
    """Stamp what comes in until nobody is left who could write; a full disk loses lines, and stops nobody."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.umask(0o077)
    handler: logging.Handler = logging.StreamHandler(sys.stdout)
    if file is not None:
        handler = RotatingFileHandler(file, maxBytes=FILE_BYTES, backupCount=FILES, encoding="utf-8")
    log = logging.getLogger(__name__)
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    for line in stamped(iter(lambda: sys.stdin.buffer.readline(LONGEST), b""), Form(form)):
        log.info("%s", line)


def _check(file: Path) -> None:
    """Whether it can be written; only its owner may read it."""
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError as error:
        raise ConfigError(f"--log-file {file}: {error.strerror}; name a file that can be written") from None


def _printable(text: str) -> str:
    """Without characters that could make a terminal, or a reader of the log, see other lines than there are."""
    return "".join(letter if letter.isprintable() or letter == "\t" else "?" for letter in text)


if __name__ == "__main__":
    main(*sys.argv[1:])
