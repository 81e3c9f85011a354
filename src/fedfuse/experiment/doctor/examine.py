"""The examination."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from fedfuse.core.files import cache_folder
from fedfuse.core.memory import free_memory, in_gigabytes
from fedfuse.core.version import __version__
from fedfuse.experiment.doctor import packages
from fedfuse.experiment.doctor.diagnosis import Diagnosis, Finding

LEAST_PYTHON = (3, 11)
LITTLE_DISK, LITTLE_MEMORY = 1_000_000_000, 1_000_000_000
SHOWN = ("FEDFUSE_DATA", "FEDFUSE_CACHE", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "HF_HOME", "HF_HUB_OFFLINE")
"""What surroundings may say that changes where something is found or how much is used."""


def doctor(progress: Callable[[str], None] | None = None) -> Diagnosis:
    """Look at the installation and its surroundings, and let a small federation learn something.

    ``progress`` is called with what is looked at next.

    >>> fedfuse.doctor().works
    True
    """
    examined: dict[str, Callable[[], Iterator[Finding]]] = {
        "installation": _installation,
        "this machine": _machine,
        "extras": packages.optional,
        "data": _data,
        "does it work": _federation,
    }
    found: dict[str, tuple[Finding, ...]] = {}
    for title, examine in examined.items():
        if progress is not None:
            progress(title)
        found[title] = tuple(_safely(examine))
    return Diagnosis(found)


def _safely(examine: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Whatever is wrong, the examination goes on."""
    try:
        yield from examine()
    except Exception as error:
        yield Finding(examine.__name__.strip("_"), "broken", f"{type(error).__name__}: {error}")


def _installation() -> Iterator[Finding]:
    yield Finding("fedfuse", "ok", f"{__version__} in {Path(__file__).parents[2]}")
    version = platform.python_version()
    text, old = f"{version} ({sys.executable})", sys.version_info < LEAST_PYTHON
    yield Finding("python", "broken", text, "use 3.11 or newer") if old else Finding("python", "ok", text)
    yield from packages.needed()
    yield from _other_packages()


def _other_packages() -> Iterator[Finding]:
    from importlib.metadata import entry_points

    for point in sorted((*entry_points(group="fedfuse.commands"), *entry_points(group="fedfuse.methods"))):
        owner = f" of {point.dist.name} {point.dist.version}" if point.dist is not None else ""
        what = "command" if point.group.endswith("commands") else "method"
        try:
            point.load()
        except Exception as error:
            yield Finding(
                point.name, "note", f"{what}{owner} cannot be loaded: {error}", "install or mend that package"
            )
        else:
            yield Finding(point.name, "ok", f"{what}{owner}")


def _machine() -> Iterator[Finding]:
    from fedfuse.core.origin import machine

    yield Finding("processor", "ok", machine())
    yield from _safely(_devices)
    memory = free_memory()
    if memory is not None:
        text = f"{in_gigabytes(memory)} free"
        little = memory < LITTLE_MEMORY
        yield Finding("memory", "note", text, "small networks only") if little else Finding("memory", "ok", text)
    for name, folder in (("here", Path.cwd()), ("cache", cache_folder())):
        yield _folder(name, folder)
    told = [f"{name}={os.environ[name]}" for name in SHOWN if os.environ.get(name)]
    if told:
        yield Finding("told", "ok", ", ".join(told))


def _devices() -> Iterator[Finding]:
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding("cpu", "ok", f"{cores} cores may be used; a client has one thread unless compute.threads says more")
    for number in range(torch.cuda.device_count()):
        memory = torch.cuda.get_device_properties(number).total_memory
        yield Finding(f"cuda:{number}", "ok", f"{torch.cuda.get_device_name(number)}, {in_gigabytes(memory)}")
    if torch.backends.mps.is_available():
        yield Finding("mps", "ok", "Apple's GPU")
    if not torch.cuda.is_available() and shutil.which("nvidia-smi"):
        yield Finding("cuda", "note", "this torch cannot use the NVIDIA GPU", "install a build of torch for CUDA")


def _folder(name: str, folder: Path) -> Finding:
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(there).free
    text = f"{folder}, {in_gigabytes(free)} free"
    if not os.access(there, os.W_OK):
        remedy = "run from a folder of yours" if name == "here" else "set FEDFUSE_CACHE to a folder of yours"
        return Finding(name, "note", f"{text}, not writable", remedy)
    return Finding(name, "note", text, "free some space") if free < LITTLE_DISK else Finding(name, "ok", text)


def _data() -> Iterator[Finding]:
    from fedfuse.experiment.listing import list_datasets

    chosen = os.environ.get("FEDFUSE_DATA")
    if chosen and not Path(chosen).expanduser().is_dir():
        yield Finding("FEDFUSE_DATA", "note", f"{chosen} is no folder", "set it to the folder with your datasets")
    rows = list_datasets()
    by_state = {state: [name for name, row in rows.items() if row.at_hand == state] for state in ("yes", "part", "no")}
    yield Finding("at hand", "ok", ", ".join(by_state["yes"]))
    if by_state["part"]:
        yield Finding("in part", "note", ", ".join(by_state["part"]), "fedfuse datasets NAME says what is missing")
    if by_state["no"]:
        yield Finding(
            "not here", "missing", f"{len(by_state['no'])} others", "fedfuse datasets NAME says how to get one"
        )


TRIAL = {
    "data": {"name": "blobs", "examples": 240, "public": 0.2},
    "partition": {"kind": "dirichlet", "clients": 3, "alpha": 1.0},
    "models": {"small": {"arch": "mlp", "hidden": [8]}},
    "training": {"epochs": 5, "batch_size": 8},
    "federation": {"rounds": 2},
    "method": {"name": "feddf", "fuse": {"distiller": {"steps": 20, "evaluate_every": 10}}},
    "evaluation": {"pictures": False},
}
"""A federation that learns something in a second."""
GUESSING = 1 / 3


def _federation() -> Iterator[Finding]:
    began = time.monotonic()
    try:
        accuracy = _try_out()
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        yield Finding("federation", "broken", f"a small one failed: {said}", "fedfuse run digits --traceback")
        return
    seconds = time.monotonic() - began
    learnt = accuracy > GUESSING
    yield Finding(
        "federation",
        "ok" if learnt else "broken",
        f"3 clients, 2 rounds of FedDF: {accuracy:.0%} right in {seconds:.1f} s, and the model was read again",
        "" if learnt else "no better than guessing; please report it",
    )


def _try_out() -> float:
    """The accuracy of a federation, read from the files that it leaves."""
    from fedfuse.experiment.run import Experiment

    with tempfile.TemporaryDirectory(prefix="fedfuse-doctor-") as folder:
        result = Experiment(TRIAL).run(Path(folder) / "run")
        result.model("small")
        return float(result.accuracy["small"])
