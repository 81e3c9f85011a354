"""A whole run folder of somebody else, looked at in every way: words, tables, a page."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from random import Random

from benchmarks.report.runs import Made, write_run

from fedfuse.experiment.looking.gathering import load_runs
from fedfuse.experiment.looking.page import page_data
from fedfuse.report.page import render
from tests.fuzzing.checkpoint import as_json
from tests.fuzzing.mutation import bytes_of, text_of, value_of
from tests.fuzzing.place import place

Case = dict[str, bytes]
"""Contents by the names of files."""


def honest() -> list[Case]:
    """A finished run, and one that is not, whose log nothing vouches for."""
    return [_files(Made("feddf", rounds=3)), _files(Made("feddf", rounds=3, planned=5))]


def _files(made: Made) -> Case:
    with tempfile.TemporaryDirectory() as folder:
        run = write_run(Path(folder) / "run", made)
        return {path.name: path.read_bytes() for path in sorted(run.path.iterdir())}


def mutate(rng: Random, case: Case) -> Case:
    name = rng.choice(sorted(case))
    content = case[name]
    if name == "events.jsonl" and rng.random() < 0.7:
        changed = _event(rng, content)
    elif name.endswith(".json") and rng.random() < 0.6:
        changed = json.dumps(as_json(value_of(rng, json.loads(content)))).encode()
    elif name == "config.yaml":
        changed = text_of(rng, content.decode()).encode("utf-8", "surrogatepass")
    else:
        changed = bytes_of(rng, content)
    return {**case, name: changed}


def _event(rng: Random, log: bytes) -> bytes:
    """One event with another value somewhere in it."""
    lines = log.splitlines()
    place = rng.randrange(len(lines))
    lines[place] = json.dumps(as_json(value_of(rng, json.loads(lines[place])))).encode()
    return b"\n".join(lines) + b"\n"


def read(case: Case) -> None:
    folder = place("somebody's")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in case.items():
        (folder / name).write_bytes(content)
    found = load_runs(folder)
    text = found.describe()
    assert not any(ord(sign) < 32 and sign != "\n" for sign in text)
    for format in ("md", "latex", "csv", "json"):
        found.table(format)  # type: ignore[arg-type]
    page = render(page_data(found))
    assert page.count("<script") == 2
    page.encode()
