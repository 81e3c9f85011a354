"""How much does a training step gain when the process keeps the memory that the step before has freed?

Each network trains on random images in processes of its own that take turns, with and without fedfuse's request to the
allocator; the median processor time of a step is printed with the ratio of the two.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

import torch
from pydantic import TypeAdapter

from fedfuse.models import AnyArchitecture
from fedfuse.runtime.allocator import keep_freed_memory

NETWORKS = {"convnet": 40, "resnet8": 64, "vgg9": 64}
"""Architecture and batch size."""


def steps(arch: str, count: int) -> float:
    """Milliseconds of processor time of the median step."""
    torch.set_num_threads(1)
    architecture: AnyArchitecture = TypeAdapter(AnyArchitecture).validate_python({"arch": arch})
    network = architecture.build((3, 32, 32), 10)
    inputs, labels = torch.rand(NETWORKS[arch], 3, 32, 32), torch.arange(NETWORKS[arch]) % 10
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001)
    taken = []
    for _ in range(count + 3):
        begin = time.process_time()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(inputs), labels).backward()
        optimizer.step()
        taken.append(1000 * (time.process_time() - begin))
    return statistics.median(taken[3:])


def measured(arch: str, keep: bool, count: int) -> float:
    command = [sys.executable, __file__, "--only", arch, "--steps", str(count), *(["--keep"] if keep else [])]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20, help="steps per turn")
    parser.add_argument("--turns", type=int, default=3, help="how often each of the two gets its turn")
    parser.add_argument("--only", choices=NETWORKS, help=argparse.SUPPRESS)
    parser.add_argument("--keep", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        if arguments.keep:
            assert keep_freed_memory(), "this allocator cannot be asked"
        print(steps(arguments.only, arguments.steps))
        return
    for arch, batch in NETWORKS.items():
        turns = [
            (measured(arch, False, arguments.steps), measured(arch, True, arguments.steps))
            for _ in range(arguments.turns)
        ]
        plain, kept = (statistics.median(times) for times in zip(*turns, strict=True))
        print(f"{arch}, batch {batch}: {plain:.1f} ms, memory kept {kept:.1f} ms, ratio {kept / plain:.2f}", flush=True)


if __name__ == "__main__":
    main()
