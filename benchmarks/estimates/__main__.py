"""What ``--estimate`` says of presets, and what their runs then take: print it, with ``--write`` into docs/estimate.md.

    python -m benchmarks.estimates [--write] [--only digits]

Seconds are those of the processor in one process, so that it does not matter what else the machine does. Estimate and
run have a process each, because the most that a process has held is known of the whole process only. A preset whose
data is not on this machine is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.page import write_table
from fedfuse import Experiment, FedfuseError
from fedfuse.experiment.cost import is_countable, speed_here, work_of
from fedfuse.experiment.estimate import estimate_of
from fedfuse.experiment.estimate.memory import peak

PAGE = Path(__file__).parents[2] / "docs" / "estimate.md"
CASES: tuple[tuple[str, str, int], ...] = (
    ("digits", "fedavg", 15),
    ("digits", "feddf", 15),
    ("digits", "scaffold", 15),
    ("digits", "fedmd", 15),
    ("digits", "fedgen", 15),
    ("digits", "fedbe", 15),
    ("mnist-small", "fedavg", 5),
    ("mnist-small", "feddf", 5),
    ("phones", "feddf", 5),
    ("femnist", "fedavg", 5),
    ("sst2-small", "feddf", 2),
    ("cifar10-small", "fedavg", 1),
    ("cifar10-small", "feddf", 1),
)
"""A preset, a method, and how many rounds; what a round takes does not depend on their number."""


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    if options.child:
        print(json.dumps(_child(*options.child)))
        return
    rows = [row for case in CASES if options.only in (None, case[0]) and (row := _row(case)) is not None]
    text = table(rows)
    print(text)
    if options.write:
        write_table(PAGE, "estimates", text)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Estimate, run, and their ratio."""
    heads = (
        "preset", "method", "rounds", "said, s", "taken, s", "ratio", "counted, s", "said, MB", "held, MB", "bytes",
        "asking, s",
    )  # fmt: skip
    lines = [" | ".join(heads), " | ".join(["---"] * 2 + ["---:"] * (len(heads) - 2))]
    lines += [" | ".join(_cells(row)) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def _cells(row: Mapping[str, Any]) -> list[str]:
    said, run = row["said"], row["run"]
    same = [run["bytes_up"], run["bytes_down"]] == [said["bytes_up"], said["bytes_down"]]
    ratio = (said["bytes_up"] + said["bytes_down"]) / max(1, run["bytes_up"] + run["bytes_down"])
    return [
        row["preset"],
        row["method"],
        str(row["rounds"]),
        f"{said['seconds']:.1f}",
        f"{run['seconds']:.1f}",
        f"{said['seconds'] / run['seconds']:.2f}",
        "-" if said["counted"] is None else f"{said['counted']:.1f}",
        f"{said['memory'] / 1e6:.0f}",
        f"{run['memory'] / 1e6:.0f}",
        "equal" if same else f"{ratio:.3f}",
        f"{said['took']:.1f}",
    ]


def _row(case: tuple[str, str, int]) -> dict[str, Any] | None:
    found = {what: _in_process(what, *map(str, case)) for what in ("said", "run")}
    if None in found.values():
        return None
    preset, method, rounds = case
    row = {"preset": preset, "method": method, "rounds": rounds, **found}
    print(" | ".join(_cells(row)), file=sys.stderr, flush=True)
    return row


def _in_process(*arguments: str) -> dict[str, Any] | None:
    command = [sys.executable, "-m", "benchmarks.estimates", "--child", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], env=os.environ)
    if done.returncode:
        raise RuntimeError(done.stderr)
    sys.stderr.write(done.stderr)  # why a preset is left out
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def _child(what: str, preset: str, method: str, rounds: str) -> dict[str, Any] | None:
    """One experiment, estimated or run, in this process."""
    changes = [f"method={method}", f"federation.rounds={rounds}", "engine.workers=0", "evaluation.pictures=false"]
    experiment = Experiment.load(preset, changes)
    began = time.process_time()
    try:
        if what == "said":
            return {**_said(experiment), "took": time.process_time() - began}
        with tempfile.TemporaryDirectory() as folder:
            summary = experiment.run(Path(folder) / "run").summary
    except FedfuseError as error:
        print(f"{preset} {method} is left out: {error}", file=sys.stderr)
        return None
    numbers = {key: summary[key] for key in ("bytes_up", "bytes_down")}
    return {**numbers, "seconds": time.process_time() - began, "memory": peak()}


def _said(experiment: Experiment) -> dict[str, Any]:
    found = estimate_of(experiment.config)
    counted = None
    if is_countable(experiment.config):
        with tempfile.TemporaryDirectory() as folder:
            counted = work_of(experiment.config).seconds(speed_here(Path(folder) / "speed.json"))
    return {
        "seconds": found.seconds,
        "memory": found.memory,
        "bytes_up": found.bytes_up,
        "bytes_down": found.bytes_down,
        "counted": counted,
    }


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimates", description="Estimates beside runs.")
    parser.add_argument("--write", action="store_true", help="also into docs/estimate.md")
    parser.add_argument("--only", help="one preset")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
