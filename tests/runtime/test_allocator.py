"""Freed memory stays in the process, unless its user decided otherwise."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

SCRIPT = """
import resource
import torch
from fedfuse.runtime.allocator import keep_freed_memory

print(keep_freed_memory())

def step():
    activations = [torch.ones(2_000_000) for _ in range(8)]  # 64 MB

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for _ in range(3):
    step()
before = faults()
for _ in range(5):
    step()
print(faults() - before)
"""
glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")


def run(**environment: str) -> list[str]:
    """What the script prints in a process of its own, with these variables of the allocator and no others."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=clean | environment, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.split()


@glibc
def test_a_step_takes_over_the_pages_of_the_one_before() -> None:
    kept, faults = run()
    assert kept == "True"
    assert int(faults) < 1000  # without it, nearly always five times the 15,600 pages of a step


@glibc
@pytest.mark.parametrize("variable", [{"MALLOC_ARENA_MAX": "2"}, {"GLIBC_TUNABLES": "glibc.malloc.arena_max=2"}])
def test_the_users_own_settings_are_left_alone(variable: dict[str, str]) -> None:
    assert run(**variable)[0] == "False"
