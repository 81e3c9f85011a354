"""Run the cases with whichever fedfuse this interpreter has, and leave each run's folder.

    python record.py CASES.json FOLDER

It is run with old versions too, so it knows nothing of fedfuse but ``Experiment`` and its run folder. A case is a list
of spellings: the first that this version accepts is run. What a case ended with, if not with a run, is in ``error``.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any


def main(cases_file: Path, folder: Path) -> None:
    from fedfuse import Experiment

    # Pictures take longer than the small runs that they show, and are no bits.
    vars(sys.modules[Experiment.__module__])["draw_run"] = lambda *_arguments, **_options: None
    for name, spellings in json.loads(cases_file.read_text(encoding="utf-8")).items():
        if not is_done(folder / name, spellings):
            record(folder / name, spellings)
        print(name, flush=True)


def is_done(folder: Path, spellings: list[dict[str, Any]]) -> bool:
    """Whether an earlier process brought this very case to its end."""
    stamp = folder / "case.json"
    return stamp.exists() and json.loads(stamp.read_text(encoding="utf-8")) == spellings


def record(folder: Path, spellings: list[dict[str, Any]]) -> None:
    sentence: str | None = None
    for values in spellings:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        sentence = attempt(values, folder / "run")
        if sentence is None:
            break
    shutil.rmtree(folder / "run" / "checkpoints", ignore_errors=True)
    if sentence is not None:
        (folder / "error").write_text(sentence, encoding="utf-8")
    (folder / "case.json").write_text(json.dumps(spellings), encoding="utf-8")


def attempt(values: dict[str, Any], run: Path) -> str | None:
    """Run, or say in one sentence why not."""
    from fedfuse import Experiment

    try:
        Experiment(values).run(run)
    except Exception as error:  # one broken case must not hide what the others do
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return None


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
