"""Where a run's models are: of its last round, of its best, of a client in a round; and what to say if not there."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from fedfuse.core.errors import RunFolderError, unknown
from fedfuse.core.files import is_there, names_in
from fedfuse.core.round_files import rounds_in
from fedfuse.federation.folder import RunFolder
from fedfuse.federation.kept_clients import client_file

Which = Literal["last", "best"]
SUFFIX = ".safetensors"


def models_folder(run: RunFolder, which: Which) -> Path:
    """Where the models of the last round are, or those of the best."""
    if which == "last":
        return run.final
    if which != "best":
        raise RunFolderError(unknown("model", str(which), ("last", "best")))
    best = (run.read_summary() if run.is_complete() else {}).get("best")
    if best and is_there(run.best_of(best["round"])):
        return run.best_of(best["round"])
    if not run.is_complete() and (there := rounds_in(run.best, "")):
        return run.best_of(there[-1])
    raise RunFolderError(f"{run.path} has kept no best models; evaluation.keep_best keeps them")


def model_file(run: RunFolder, name: str, which: Which = "last") -> Path:
    """One of the server's."""
    return models_folder(run, which) / name


def client_model_file(run: RunFolder, client: int, number: int | None = None, which: Which = "last") -> Path:
    """A client's, of a round or of the run's end."""
    if number is None:
        file = models_folder(run, which) / "clients" / f"{client}{SUFFIX}"
        if is_there(file):
            return file
        if not is_there(run.clients):
            raise RunFolderError(
                f"{run.path} has no model of client {client} by itself; federation.keep_clients keeps all of them"
            )
        raise RunFolderError(f"{run.path} has models of its clients by round; say which, of {_listed(run)}")
    file = client_file(run.path, number, client)
    if is_there(file):
        return file
    if not is_there(run.clients):
        raise RunFolderError(f"{run.path} has kept no models of its clients; federation.keep_clients keeps them")
    if not is_there(file.parent):
        raise RunFolderError(f"{run.path} has no models of round {number}, but of {_listed(run)}")
    heard = sorted(int(name.removesuffix(SUFFIX)) for name in names_in(file.parent) if name[:-12].isdecimal())
    some = f"{', '.join(map(str, heard[:20]))}{', ...' if len(heard) > 20 else ''}"
    raise RunFolderError(f"{run.path} has no model of client {client} in round {number}, which heard {some}")


def _listed(run: RunFolder) -> str:
    rounds = rounds_in(run.clients, "")
    return f"rounds {rounds[0]} to {rounds[-1]}" if rounds else "none"


def best_models(folder: RunFolder, number: int) -> list[Path]:
    """The files of a best round's models, the server's or the clients'."""
    own = folder.best_of(number)
    return [path / name for path in (own, own / "clients") for name in names_in(path) if name.endswith(".safetensors")]
