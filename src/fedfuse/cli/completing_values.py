"""Values that may stand at the end of a command line, by what a parameter calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MOST = 500
"""So many entries of a folder are offered; whoever has more writes another letter first."""


@dataclass(frozen=True)
class Candidate:
    """A word that fits, and what it means. One that ends in ``/``, ``.``, ``=`` or ``,`` goes on."""

    word: str
    help: str = ""


@dataclass(frozen=True)
class Unfinished:
    """What was written so far: the words before, and the beginning of the one that is being completed."""

    before: Sequence[str]
    """Arguments that have been given."""
    word: str


Found = Iterator[Candidate]


def _experiments(unfinished: Unfinished) -> Found:
    yield from _presets(unfinished)
    yield from _paths(unfinished.word, lambda path: path.is_dir() or path.suffix in (".yaml", ".yml"))


def _experiments_or_datasets(unfinished: Unfinished) -> Found:
    yield from _datasets(unfinished)
    yield from _experiments(unfinished)


def _datasets_or_files(unfinished: Unfinished) -> Found:
    yield from _datasets(unfinished)
    yield from _files(unfinished)


def _presets(_: Unfinished) -> Found:
    from fedfuse.experiment.listing import list_presets

    yield from (Candidate(name, text) for name, text in list_presets().items())


def _methods(_: Unfinished) -> Found:
    from fedfuse.catalogue.index import own_methods
    from fedfuse.catalogue.method_names import method_names

    briefs = {name: row.brief for name, row in own_methods().items()}
    yield from (Candidate(name, briefs.get(name, "")) for name in method_names())


def _several_methods(unfinished: Unfinished) -> Found:
    """Names with commas between them; each once."""
    done, comma, _ = unfinished.word.rpartition(",")
    yield from (
        Candidate(f"{done}{comma}{one.word}", one.help)
        for one in _methods(unfinished)
        if one.word not in done.split(",")
    )


def _datasets(_: Unfinished) -> Found:
    from fedfuse.catalogue.datasets import CATALOGUE

    yield from (Candidate(name, card.title) for name, card in CATALOGUE.items())


def _architectures(_: Unfinished) -> Found:
    from fedfuse.catalogue.index import models

    yield from (Candidate(name, row.description) for name, row in models().items())


def _slots(_: Unfinished) -> Found:
    from fedfuse.catalogue.details import slots

    yield from (Candidate(name, row.meaning) for name, row in slots().items())


def _kinds(unfinished: Unfinished) -> Found:
    """Of the slot that was named before."""
    from fedfuse.catalogue.details import slots

    slot = slots().get(unfinished.before[0]) if unfinished.before else None
    yield from (Candidate(kind, part.meaning) for kind, part in (slot.kinds if slot else {}).items())


def _engines(_: Unfinished) -> Found:
    from fedfuse.catalogue.details import slots

    yield from (Candidate(kind, part.meaning) for kind, part in slots()["engine"].kinds.items() if kind != "flower")


def _keys(unfinished: Unfinished) -> Found:
    """Addresses, a section at a time."""
    from fedfuse.catalogue.keys import every_place

    done = unfinished.word.rpartition(".")[0]
    at = f"{done}." if done else ""
    for address, place in every_place().items():
        if address.startswith(at) and "[]" not in address and "NAME" not in address:
            name, dot, _ = address[len(at) :].partition(".")
            if dot or not place.key.section:
                yield Candidate(f"{at}{name}{dot}", "" if dot else place.key.meaning)


def _assignments(unfinished: Unfinished) -> Found:
    """A key, then what it may be."""
    from fedfuse.catalogue.keys import every_place

    key, equals, _ = unfinished.word.partition("=")
    if not equals:
        seen: set[str] = set()
        for one in _keys(unfinished):
            if one.word not in seen:
                seen.add(one.word)
                yield one if one.word.endswith(".") else Candidate(f"{one.word}=", one.help)
        yield Candidate("method=", "the method, by its name")
        return
    place = every_place().get(key)
    if key in ("method", "method.name"):
        found: Found = _methods(unfinished)
    elif key == "data.name":
        found = _datasets(unfinished)
    elif place is not None and place.chooses:
        found = _kinds(Unfinished([place.key.slot], ""))
    else:
        found = map(Candidate, place.key.choices if place is not None else ())
    yield from (Candidate(f"{key}={one.word}", one.help) for one in found)


def _runs(unfinished: Unfinished) -> Found:
    """Run folders, and folders that may have some in them."""
    for one in _paths(unfinished.word, Path.is_dir):
        if (Path(one.word).expanduser() / "config.yaml").is_file():
            yield Candidate(one.word.rstrip("/"), "a run")
        else:
            yield one


def _runs_or_files(unfinished: Unfinished) -> Found:
    yield from _runs(unfinished)
    yield from _paths(unfinished.word, Path.is_file)


def _folders(unfinished: Unfinished) -> Found:
    yield from _paths(unfinished.word, Path.is_dir)


def _files(unfinished: Unfinished) -> Found:
    yield from _paths(unfinished.word, lambda _: True)


def _paths(word: str, fits: Callable[[Path], bool]) -> Found:
    """Entries of the folder that the word is in, as they are written on the line."""
    folder, slash, beginning = word.rpartition("/")
    where = Path(f"{folder}{slash}").expanduser()
    try:
        entries = sorted(entry.name for entry in where.iterdir() if entry.name.startswith(beginning))[:MOST]
    except OSError:
        return
    for entry in entries:
        if (not entry.startswith(".") or beginning.startswith(".")) and fits(where / entry):
            yield Candidate(f"{folder}{slash}{entry}{'/' if (where / entry).is_dir() else ''}")


KINDS: dict[str, Callable[[Unfinished], Found]] = {
    "APP": _folders,
    "APP_OR_EXPERIMENT": _experiments,
    "ARCH": _architectures,
    "DATASET": _datasets,
    "DATASET_OR_FILE": _datasets_or_files,
    "DIR": _folders,
    "ENGINE": _engines,
    "EXPERIMENT_OR_DATASET": _experiments_or_datasets,
    "FILE": _files,
    "FILE...": _experiments,
    "FILE_OR_PRESET": _experiments,
    "HASH_OR_APP": _folders,
    "KEY": _keys,
    "KEY=VALUE": _assignments,
    "KEY=VALUES": _assignments,
    "KEYS": _folders,
    "KIND": _kinds,
    "METHOD": _methods,
    "METHOD,...": _several_methods,
    "MODEL...": _runs_or_files,
    "PATH": _files,
    "PRESET": _presets,
    "PUB": _files,
    "RUN": _runs,
    "RUN...": _runs,
    "RUN_FOLDER": _runs,
    "RUN_OR_FILE": _runs_or_files,
    "SLOT": _slots,
    "STATE": _folders,
}
"""How a value is completed, by what the parameter calls it."""
FREE = {
    "AXIS=LABEL,...",
    "COLUMN",
    "COLUMN,...",
    "ENTRY",
    "EPSILON",
    "EPSILONS",
    "HOST:PORT",
    "MEASURE",
    "MODEL.KEY=VALUE",
    "MODEL:THEIRS=OURS",
    "MODULE:FUNCTION",
    "N",
    "NAME",
    "NEW_FILE",
    "SEEDS",
    "SHA256",
    "TEXT",
    "WORD",
    "WORKLOAD",
    "X",
    "image|table",
    "last|best",
    "lora",
    "wide|page|column|WxH",
}
"""Values of which nothing is known before they are written."""
