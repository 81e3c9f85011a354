"""The audit's outcomes, with programs in place of its tools: nothing known, something known, nobody to ask."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

AUDIT = Path(__file__).parents[2] / "deploy" / "audit.py"
TOOL = """#!{python}
import sys
from pathlib import Path
words, report = sys.argv, {report!r}
if "cyclonedx" in words[0]:
    Path(words[words.index("--output-file") + 1]).write_text("{{}}")
elif report is not None:
    assert "torch==2.13.0" in Path(words[words.index("--requirement") + 1]).read_text().splitlines()
    Path(words[words.index("--output") + 1]).write_text(report)
sys.exit({code})
"""
FINE = {"name": "fine", "version": "1.0", "vulns": []}
BAD = {"name": "bad", "version": "0.9", "vulns": [{"id": "PYSEC-1"}]}
SKIPPED = {"name": "odd", "skip_reason": "Dependency not found"}


def audited(folder: Path, packages: list[dict[str, object]] | None, code: int) -> subprocess.CompletedProcess[str]:
    """With an auditor that writes this report, or none, and ends with this code."""
    tools, environment = folder / "tools" / "bin", folder / ".venv-mine"
    tools.mkdir(parents=True)
    report = None if packages is None else json.dumps({"dependencies": packages})
    for name, own in (("pip-audit", code), ("cyclonedx-py", 0)):
        (tools / name).write_text(TOOL.format(python=sys.executable, report=report, code=own))
        (tools / name).chmod(0o755)
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").write_text("#!/bin/sh\nprintf 'fine==1.0\\ntorch==2.13.0\\n'\n")
    (environment / "bin" / "python").chmod(0o755)
    command = [sys.executable, AUDIT, tools.parent, folder / "build", environment]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("packages", "auditor", "code", "words"),
    [
        ([FINE, FINE], 0, 0, "no known vulnerabilities in 2 packages\n"),
        ([FINE, SKIPPED], 0, 0, "no known vulnerabilities in 1 packages; NOT AUDITED: odd\n"),
        ([FINE, BAD, SKIPPED], 1, 1, "known vulnerabilities in bad 0.9, see"),
        (None, 1, 3, "NOT AUDITED, because the vulnerability service could not be asked\n"),
        ([SKIPPED, SKIPPED], 0, 3, "NOT AUDITED, because the vulnerability service could not be asked\n"),
    ],
    ids=["clean", "one is unknown", "found", "unreachable", "a service that knows nothing"],
)
def test_the_outcome(
    tmp_path: Path, packages: list[dict[str, object]] | None, auditor: int, code: int, words: str
) -> None:
    done = audited(tmp_path, packages, auditor)
    assert (done.returncode, done.stderr) == (code, "")
    assert words in done.stdout
    assert (tmp_path / "build" / "sbom-venv-mine.json").exists()


def test_an_old_report_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "audit-venv-mine.json").write_text(json.dumps({"dependencies": [FINE]}))
    assert audited(tmp_path, None, 1).returncode == 3


def test_a_build_is_asked_about_by_its_public_version(tmp_path: Path) -> None:
    """Nobody knows 2.13.0+cpu, and our own package is nobody's business."""
    namespace = {"__name__": "audit"}
    exec(AUDIT.read_text(), namespace)
    for name, version in (("torch", "2.13.0+cpu"), ("fedfuse", "0.1.0"), ("numpy", "2.4.6")):
        about = tmp_path / f"{name}.dist-info" / "METADATA"
        about.parent.mkdir()
        about.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    code = f"import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p] + [{str(tmp_path)!r}]\n"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code + namespace["FROZEN"]], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "numpy==2.4.6\ntorch==2.13.0\n"
