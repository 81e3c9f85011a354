"""Run every case with this version and with an older commit's, on this machine, and print what differs.

    python -m benchmarks.same_bits BASE [CASE ...] [--set KEY=VALUE ...]

BASE is any name of a commit. It gets a worktree and an environment of its own below ``.same-bits``, made once; its runs
are kept there too, so that a second comparison with it only runs this version. ``--set`` is for this version alone,
where a default has changed since. Ends with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import yaml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.same_bits.difference import Difference, compare
from benchmarks.same_bits.guest import write_files
from fedfuse.experiment.config.changes import assign
from fedfuse.experiment.config.schema import overlay

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
STORE = ROOT / ".same-bits"
Spellings = list[dict[str, Any]]


@dataclass(frozen=True)
class Version:
    """A checkout of fedfuse, and an interpreter that has what it needs."""

    python: Path
    root: Path


def read_cases(path: Path = HERE / "cases.yaml") -> dict[str, Spellings]:
    """Every case as complete experiments: as this version says it, and as an older one had to be told."""
    raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    cases = {}
    for name, changes in raw["cases"].items():
        now = {key: value for key, value in changes.items() if key != "before"}
        spelled = [now, changes["before"]] if "before" in changes else [now]
        cases[name] = [{**overlay(raw["experiment"], one), **_models(one)} for one in spelled]
    return cases


def with_set(assignments: Sequence[str], spelled: Spellings) -> Spellings:
    """These for this version; an older one that does not know their keys gets the case without them."""
    return [assign(spelled[0], assignments), *spelled] if assignments else spelled


def _models(changes: dict[str, Any]) -> dict[str, Any]:
    return {"models": changes["models"]} if "models" in changes else {}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("cases", nargs="*", help="only these cases (default: all)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for this version only")
    options = parser.parse_args(arguments)
    commit = _commit(options.base)
    if commit is None:
        parser.error(f"'{options.base}' is no commit of this repository; give one, such as BASE=HEAD~1")
    cases = read_cases()
    for name in options.cases:
        if name not in cases:
            parser.error(f"unknown case '{name}'; {HERE.name}/cases.yaml has them")
    chosen = {name: with_set(options.set, cases[name]) for name in options.cases or cases}
    folder = STORE / commit[:12]
    python = _environment(folder / "tree", commit)
    runs = {"before": folder / f"runs-{_processor()}", "now": STORE / "now"}
    shutil.rmtree(runs["now"], ignore_errors=True)
    versions = {"before": Version(python, folder / "tree"), "now": Version(Path(sys.executable), ROOT)}
    if not _record(versions, chosen, runs):
        return 2
    return report([compare(name, runs["before"] / name, runs["now"] / name) for name in chosen], commit)


def _commit(name: str) -> str | None:
    found = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"], cwd=ROOT, capture_output=True, text=True
    )
    return found.stdout.strip() or None


def _environment(tree: Path, commit: str) -> Path:
    """The interpreter of that commit's own environment."""
    if not (tree / "Makefile").exists():
        tree.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "worktree", "prune"], cwd=ROOT, check=True)
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), commit], cwd=ROOT, check=True)
    print(f"environment of {commit[:12]} in {tree.relative_to(ROOT)}", flush=True)
    # This process was started by make as well, and what that make was told is none of the other one's business.
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    subprocess.run(["make", "--silent", ".venv/installed"], cwd=tree, env=environment, check=True)
    return tree / ".venv" / "bin" / "python"


def _processor() -> str:
    """Bits are compared on one kind of processor only."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    name = next((line.partition(":")[2] for line in lines if line.startswith("model name")), platform.processor())
    return "".join(letter if letter.isalnum() else "-" for letter in name.strip()) or "unknown"


def _record(versions: dict[str, Version], cases: dict[str, Spellings], runs: dict[str, Path]) -> bool:
    """Both versions side by side, one process each; whether both came to their end."""
    bars = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    failures: list[str] = []
    with Progress(*bars) as progress:
        threads = []
        for which, version in versions.items():
            task = progress.add_task(which, total=len(cases))
            arguments = (which, version, cases, runs[which], failures, lambda task=task: progress.advance(task))
            threads.append(Thread(target=_record_one, args=arguments))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for failure in failures:
        print(failure, file=sys.stderr)
    return not failures


def _record_one(
    which: str, version: Version, cases: dict[str, Spellings], folder: Path, failures: list[str], advance: Any
) -> None:
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    write_files(work)
    shutil.copy(HERE / "guest.py", work / "same_bits_guest.py")
    spellings = cases if which == "before" else {name: spelled[:1] for name, spelled in cases.items()}
    (work / "cases.json").write_text(json.dumps(spellings), encoding="utf-8")
    own = {"PYTHONPATH": str(version.root / "src"), "FEDFUSE_CACHE": str(work / "cache"), "PYTHONWARNINGS": "ignore"}
    environment = {**os.environ, **own}
    command = [str(version.python), str(HERE / "record.py"), "cases.json", str(folder)]
    with (work / "stderr").open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(command, cwd=work, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert process.stdout is not None
        for _line in process.stdout:
            advance()
        code = process.wait()
    if code:
        last = (work / "stderr").read_text(encoding="utf-8").strip().splitlines()[-1:]
        failures.append(f"{which}: the runs ended with {code}: {' '.join(last)}")


def report(differences: Sequence[Difference], commit: str) -> int:
    """Print what differs, and how many cases do not."""
    console = Console(soft_wrap=True, highlight=False, markup=False)
    other = [difference for difference in differences if difference.is_one]
    for difference in other:
        console.print(difference.case)
        for line in difference.lines():
            console.print(f"    {line}")
    ran = [difference for difference in other if not difference.ending]
    counts = [f"{sum(bool(getattr(d, what)) for d in ran)} in {what}" for what in ("weights", "log", "bytes")]
    ended = sum(bool(difference.ending) for difference in other)
    new = sum(difference.is_new for difference in differences)
    same = len(differences) - len(other) - new
    print(f"{same} of {len(differences)} cases are the same as at {commit[:12]}; {', '.join(counts)} differ, ", end="")
    print(f"{ended} ended otherwise, {new} are new")
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())
