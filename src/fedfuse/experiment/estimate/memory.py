"""How much memory a run will hold: what this process holds after it has played a miniature, and what grows from there.

The miniature has the experiment's data, networks and batches; what it has fewer of are clients whose updates are held
until the end of a round, up to the bound above which they go to a file.
"""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from pathlib import Path

from fedfuse.experiment.assembly import Built
from fedfuse.experiment.estimate.traffic import inputs_of_a_round
from fedfuse.federation.shelf import IN_MEMORY
from fedfuse.federation.stream import can_stream

BYTES = 4
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def forget_peak() -> None:
    """Begin anew with the highest that this process has held, where the system can."""
    with suppress(OSError):
        CLEAR.write_text("5")


def peak() -> int:
    """The highest that this process has held since, in bytes."""
    with suppress(OSError, IndexError, ValueError):
        found = [line.split()[1] for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(found[0]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def held_updates(built: Built) -> int:
    """What a round holds of its clients' answers; nothing where every part takes them as they come."""
    config, federation = built.config, built.federation
    if can_stream(config.recipe, config.federation.batch_norm):
        return 0
    if config.recipe.protocol.carries == "predictions":
        return federation.wanted * inputs_of_a_round(built) * federation.bank.classes * BYTES
    clients = federation.prototypes.clients_of
    sizes = {name: federation.bank.layout(name).size * BYTES for name in clients}
    mean = sum(number * sizes[name] for name, number in clients.items()) / sum(clients.values())
    return min(round(federation.wanted * mean), IN_MEMORY)
