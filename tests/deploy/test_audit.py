"""The audit's three outcomes, with programs in place of its tools: nothing known, something known, nobody to ask."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

AUDIT = Path(__file__).parents[2] / "deploy" / "audit"
LAST = 'for last; do :; done; touch "$(dirname "$0")/asked"'
CLEAN = f'#!/bin/sh\n{LAST}\necho "{{}}" > "$last"\n'
FOUND = f'#!/bin/sh\n{LAST}\necho "{{}}" > "$last"\nexit 1\n'
UNREACHABLE = f"#!/bin/sh\n{LAST}\necho no route to host >&2\nexit 1\n"


def audited(folder: Path, *auditors: str) -> subprocess.CompletedProcess[str]:
    """One environment for each auditor, which answers for it."""
    tools, environments = folder / "tools" / "bin", []
    tools.mkdir(parents=True)
    for number, auditor in enumerate(auditors):
        own = folder / f".venv-{number}" / "bin"
        own.mkdir(parents=True)
        (own / "python").symlink_to(sys.executable)
        (tools / f"auditor-{number}").write_text(auditor)
        environments.append(str(own.parent))
    choose = 'case "$*" in *audit-venv-1.json*) n=1;; *) n=0;; esac\nexec sh "$(dirname "$0")/auditor-$n" "$@"\n'
    for name, text in (
        ("pip-audit", choose),
        ("cyclonedx-py", 'while [ "$1" != --output-file ]; do shift; done; echo "{}" > "$2"\n'),
    ):
        (tools / name).write_text(f"#!/bin/sh\n{text}")
        (tools / name).chmod(0o755)
    command = [AUDIT, tools.parent, folder / "build", *environments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("auditors", "code", "words"),
    [
        ([CLEAN], 0, "no known vulnerabilities"),
        ([FOUND], 1, "known vulnerabilities, see"),
        ([UNREACHABLE], 3, "NOT AUDITED"),
        ([FOUND, UNREACHABLE], 1, "NOT AUDITED"),
        ([UNREACHABLE, FOUND], 1, "NOT AUDITED"),
        ([CLEAN, UNREACHABLE], 3, "NOT AUDITED"),
    ],
    ids=["clean", "found", "unreachable", "found then unreachable", "unreachable then found", "clean then unreachable"],
)
def test_the_outcome(tmp_path: Path, auditors: list[str], code: int, words: str) -> None:
    done = audited(tmp_path, *auditors)
    assert done.returncode == code, done.stderr
    assert words in done.stdout
    written = {path.name for path in (tmp_path / "build").glob("sbom-*")}
    assert written == {f"sbom-venv-{number}.json" for number in range(len(auditors))}


def test_an_old_report_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "audit-venv-0.json").write_text("{}")
    assert audited(tmp_path, UNREACHABLE).returncode == 3
