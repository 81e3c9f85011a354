"""One contender's turn, in a process of its own: it prints what it measured as one line of JSON.

python -m fedfuse.experiment.bench.turn W1 fedfuse full FOLDER compute.channels_last=true
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from fedfuse.core.plain_json import dumps
from fedfuse.experiment.bench.workloads import WORKLOADS
from fedfuse.experiment.bench.workloads.base import Outcome, Setup, SizeName


def main(arguments: Sequence[str]) -> None:
    code, name, size, folder, *assignments = arguments
    assert size in get_args(SizeName), size
    contender = WORKLOADS[code].contender(name)
    assert contender.play is not None, "peers have programs of their own"
    say(contender.play(Setup(size, Path(folder), assignments)))  # type: ignore[arg-type]


def say(outcome: Outcome) -> None:
    """The last line of a turn's output, after whatever else was printed."""
    sys.stdout.write("\n" + dumps({"numbers": outcome.numbers, "chosen": outcome.chosen}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
