"""``fedfuse export``: a model of a run for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedfuse.cli.console import print_facts
from fedfuse.core.errors import ConfigError, unknown


def export(
    source: Annotated[Path, typer.Argument(metavar="RUN_OR_FILE", help="run folder, or the file of a saved model")],
    to: Annotated[
        Path, typer.Option(help="the file to write: .onnx, .pt or .ts (TorchScript), .safetensors (weights alone)")
    ],
    model: Annotated[str | None, typer.Option(metavar="NAME", help="which model, of a run that has several")] = None,
    which: Annotated[str, typer.Option(metavar="last|best", help="models of the last round or the best")] = "last",
    client: Annotated[int | None, typer.Option(min=0, help="the model of a client")] = None,
    number: Annotated[int | None, typer.Option("--round", min=1, help="with --client: the one it had then")] = None,
    trust_own_code: Annotated[
        bool, typer.Option("--trust-own-code", help="call the function that a model with arch own names")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace a file that is already there")] = False,
) -> None:
    """Write a model as ONNX or TorchScript that reads raw inputs, and check it against the original."""
    if not source.exists():
        raise ConfigError(f"{source} does not exist; give the folder of a run, or the file of a model")
    from fedfuse.models import export as exporting
    from fedfuse.models.saved import load_model

    done = exporting.export(load_model(_file(source, model, which, client, number), trust_own_code), to, overwrite)
    print_facts(
        file=done.file,
        reads=done.reads,
        gives=done.gives,
        checked=f"largest difference from the model {done.difference:.1e}",
    )


def _file(source: Path, name: str | None, which: str, client: int | None, number: int | None) -> Path:
    """The file of a model in a run folder, or ``source`` itself."""
    from fedfuse.experiment.model_files import client_model_file, models_folder
    from fedfuse.federation.folder import RunFolder

    folder = RunFolder(source)
    if number is not None and client is None:
        raise ConfigError("--round says when a client had a model; say which client with --client")
    if which not in ("last", "best"):
        raise ConfigError(f"--which: {unknown('round', which, ('last', 'best'))}")
    if not source.is_dir() or not (folder.final.is_dir() or folder.config.exists()):
        if name is not None or client is not None or which == "best":
            option = "--model" if name is not None else "--client" if client is not None else "--which"
            raise ConfigError(f"{option} chooses among the models of a run, but {source} is not the folder of a run")
        return source
    if client is not None:
        return client_model_file(folder, client, number, "best" if which == "best" else "last")
    models = models_folder(folder, "best" if which == "best" else "last")
    names = sorted(file.stem for file in models.glob("*.safetensors"))
    if not names:
        raise ConfigError(f"{source} has no model of the server; choose a client's with --client")
    if name is None and len(names) > 1:
        raise ConfigError(f"{source} has the models {', '.join(names)}; choose one with --model")
    if name not in (None, *names):
        raise ConfigError(unknown("model", str(name), names))
    return models / f"{name or names[0]}.safetensors"
