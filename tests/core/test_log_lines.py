"""Lines with a time: what Flower and its web server print, as text and as JSON, from a process and its children."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fedfuse.core.errors import ConfigError
from fedfuse.core.log_lines import FILE_BYTES, Form, stamp_output, stamped

FLOWER = "\033[92mINFO \033[0m:      fedfuse: round 1\n"
SHOUT = """
import os, subprocess, sys
from pathlib import Path
from fedfuse.core.log_lines import Form, stamp_output
stamp_output(Form(sys.argv[1]), *map(Path, sys.argv[2:]))
print("from python", flush=True)
subprocess.run(["sh", "-c", "echo from a child; echo WARNING : to the other stream >&2"])
os.execvp("sh", ["sh", "-c", "echo from what it became; kill -TERM -$$; sleep 5"])
"""


def records(*lines: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in stamped([line.encode() for line in lines], Form.JSON)]


class TestALine:
    def test_of_flower_has_a_level_a_time_and_no_colours(self) -> None:
        (record,) = records(FLOWER)
        assert (record["level"], record["message"]) == ("INFO", "fedfuse: round 1")
        assert abs((datetime.now(UTC) - datetime.fromisoformat(record["time"])).total_seconds()) < 10

    @pytest.mark.parametrize(
        ("line", "level", "message"),
        [
            ("WARNING :   client 0 refused", "WARNING", "client 0 refused"),
            ("\033[94mDEBUG 2026-11-17 12:00:00,123\033[0m:     opened", "DEBUG", "opened"),
            ("2026-11-17T12:00:00.123Z ERROR [uvicorn.error] gone", "ERROR", "[uvicorn.error] gone"),
            ("INFORMATION is no level", "INFO", "INFORMATION is no level"),
            ("no level: none at all", "INFO", "no level: none at all"),
        ],
    )
    def test_of_any_program_is_understood(self, line: str, level: str, message: str) -> None:
        (record,) = records(line)
        assert (record["level"], record["message"]) == (level, message)

    def test_without_a_level_has_that_of_the_line_before(self) -> None:
        lines = records(
            "WARNING :   it may break", "  soon", "INFO :      goes on", "Traceback (most recent ...", "  here"
        )
        assert [record["level"] for record in lines] == ["WARNING", "WARNING", "INFO", "ERROR", "ERROR"]

    def test_that_says_nothing_is_left_out(self) -> None:
        lines = records("\n", "INFO :      one\n", "INFO :      \n", "  \t \n", "\033[0m\n")
        assert [record["message"] for record in lines] == ["one"]

    def test_cannot_pretend_to_be_another(self) -> None:
        hostile = "INFO :      a\x1b[2Jb\rERROR: c\x08\u2028d\n"
        (text,) = stamped([hostile.encode()], Form.TEXT)
        assert re.fullmatch(r"\S+Z INFO +a\?\[2Jb\?ERROR: c\?\?d", text)
        (record,) = stamped([hostile.encode()], Form.JSON)
        assert len(record.splitlines()) == 1

    def test_of_no_text_at_all_is_still_one(self) -> None:
        (record,) = [json.loads(line) for line in stamped([b"\xff\xfe\x00broken"], Form.JSON)]
        assert record["message"].endswith("broken")


def shouted(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SHOUT, *arguments], stdout=subprocess.PIPE, timeout=60, start_new_session=True
    )
    assert done.returncode == -signal.SIGTERM  # only the one that was meant
    return done.stdout.decode()


class TestAProcess:
    def test_and_all_that_it_starts_or_becomes_has_stamped_lines(self) -> None:
        lines = [json.loads(line) for line in shouted("json").splitlines()]
        assert [(line["level"], line["message"]) for line in lines] == [
            ("INFO", "from python"),
            ("INFO", "from a child"),
            ("WARNING", "to the other stream"),
            ("WARNING", "from what it became"),
        ]

    def test_writes_into_a_file_that_only_its_owner_reads(self, tmp_path: Path) -> None:
        file = tmp_path / "link.log"
        assert shouted("text", str(file)) == ""
        assert [line.split(maxsplit=2)[2] for line in file.read_text().splitlines()][-1] == "from what it became"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    def test_with_a_file_that_cannot_be_written_is_told_so(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="Is a directory; name a file that can be written"):
            stamp_output(Form.TEXT, tmp_path)


def test_files_take_turns(tmp_path: Path) -> None:
    file, line = tmp_path / "link.log", b"INFO :      " + b"x" * 60_000 + b"\n"
    command = [sys.executable, "-m", "fedfuse.core.log_lines", "json", str(file)]
    subprocess.run(command, input=line * (6 * FILE_BYTES // len(line) + 60), timeout=60, check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.log", *(f"link.log.{n}" for n in range(1, 6))]
    assert all(path.stat().st_size <= FILE_BYTES for path in tmp_path.iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_stops_nobody() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fedfuse.core.log_lines", "text"],
            input=b"INFO :      one\nINFO :      two\n",
            stdout=full,
            stderr=subprocess.DEVNULL,
            timeout=60,
            env=os.environ,
        )
    assert done.returncode in (0, 120)  # 120: Python could not flush at its very end
