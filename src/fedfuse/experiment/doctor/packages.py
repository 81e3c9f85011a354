"""Packages that fedfuse needs, and those that it can use: their versions, and whether they can be imported."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

from fedfuse.experiment.doctor.diagnosis import Finding

PACKAGE = "fedfuse"
MODULES = {"pyyaml": "yaml", "scikit-learn": "sklearn", "pillow": "PIL"}
"""What is imported under another name than it is installed by."""
INSIDE = ("dev",)
"""Extras for those who work on fedfuse itself."""
SECONDS = 60
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?P<versions>[^;]*)(?:; *extra *== *[\"'](?P<extra>[\w-]+)[\"'])?")


@dataclass(frozen=True)
class Requirement:
    """A package with the versions that will do; ``extra`` is the name of the option that needs it."""

    name: str
    versions: str
    extra: str = ""

    @property
    def module(self) -> str:
        return MODULES.get(self.name.lower(), self.name.replace("-", "_"))

    @property
    def written(self) -> str:
        """As pip takes it."""
        return f"'{self.name}{self.versions}'" if self.versions else self.name

    def installed(self) -> str | None:
        """The version that is there."""
        try:
            return metadata.version(self.name)
        except metadata.PackageNotFoundError:
            return None

    def fits(self, version: str) -> bool:
        """Whether a version will do, by its numbers."""
        pairs = re.findall(r"(>=|<=|==|<|>)\s*([\d.]+)", self.versions)
        return all(_compare(numbers(version), sign, numbers(bound)) for sign, bound in pairs)


def requirements() -> list[Requirement]:
    """All that the installed fedfuse asks for."""
    found = (REQUIREMENT.fullmatch(line.strip()) for line in metadata.requires(PACKAGE) or ())
    return [Requirement(one["name"], one["versions"].strip(), one["extra"] or "") for one in found if one is not None]


def needed() -> Iterator[Finding]:
    """What nothing works without; names of those that are all right in one line."""
    fine: list[str] = []
    several = [requirement for requirement in requirements() if not requirement.extra]
    there = [one.module for one in several if one.installed() is not None]
    suspect = import_problem(*there) is not None  # which of them it is takes longer to find out
    for one in several:
        version = one.installed()
        remedy = f"pip install {one.written}"
        if version is None:
            yield Finding(one.name, "broken", "is not installed", remedy)
        elif not one.fits(version):
            yield Finding(one.name, "broken", f"{version}, but {one.versions} is needed", remedy)
        elif suspect and (problem := import_problem(one.module)):
            again = f"pip install --force-reinstall {one.written}"
            yield Finding(one.name, "broken", f"{version} cannot be imported: {problem}", again)
        else:
            fine.append(f"{one.name} {version}")
    if fine:
        yield Finding("needed", "ok", ", ".join(fine))


def optional() -> Iterator[Finding]:
    """What an extra brings, each in a line."""
    extras: dict[str, list[Requirement]] = {}
    for one in requirements():
        if one.extra and one.extra not in INSIDE:
            extras.setdefault(one.extra, []).append(one)
    for extra, several in extras.items():
        yield _extra(extra, several)


def _extra(extra: str, several: list[Requirement]) -> Finding:
    absent = [one for one in several if one.installed() is None]
    unfit = [one for one in several if (version := one.installed()) is not None and not one.fits(version)]
    remedy = f"pip install {' '.join(one.written for one in (*absent, *unfit))}"
    if absent:
        return Finding(extra, "missing", f"{', '.join(one.name for one in absent)} not installed", remedy)
    if unfit:
        said = ", ".join(f"{one.name} {one.installed()}, but {one.versions} is needed" for one in unfit)
        return Finding(extra, "note", said, remedy)
    for one in several if import_problem(*(one.module for one in several)) else ():
        if problem := import_problem(one.module):
            again = f"pip install --force-reinstall {one.written}"
            return Finding(extra, "note", f"{one.name} {one.installed()} cannot be imported: {problem}", again)
    return Finding(extra, "ok", ", ".join(f"{one.name} {one.installed()}" for one in several))


def import_problem(*modules: str) -> str | None:
    """What is wrong with importing modules. In a process of its own: what takes it down, or hangs, is found too.

    As for an installed command, files of the working folder do not count (``-P``).
    """
    try:
        command = [sys.executable, "-P", "-c", f"import {', '.join(modules)}"]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"it took more than {SECONDS} s"
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"the process ended with {done.returncode}"


def numbers(version: str) -> tuple[int, ...]:
    """1.4.2rc1 is (1, 4, 2)."""
    return tuple(int(digits[0]) for part in version.split(".") if (digits := re.match(r"\d+", part)))


def _compare(version: tuple[int, ...], sign: str, bound: tuple[int, ...]) -> bool:
    length = max(len(version), len(bound))
    left, right = (one + (0,) * (length - len(one)) for one in (version, bound))
    return {">=": left >= right, "<=": left <= right, "==": left == right, "<": left < right, ">": left > right}[sign]
