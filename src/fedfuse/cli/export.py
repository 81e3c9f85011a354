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
    trust_own_code: Annotated[
        bool, typer.Option("--trust-own-code", help="call the function that a model with arch own names")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace a file that is already there")] = False,
) -> None:
    """Write a model as ONNX or TorchScript that reads raw inputs, and check it against the original."""
    from fedfuse.models import export as exporting
    from fedfuse.models.saved import load_model

    done = exporting.export(load_model(_file(source, model), trust_own_code), to, overwrite)
    print_facts(
        file=done.file,
        reads=done.reads,
        gives=done.gives,
        checked=f"largest difference from the model {done.difference:.1e}",
    )


def _file(source: Path, name: str | None) -> Path:
    """The file of a model in a run folder, or ``source`` itself."""
    from fedfuse.federation.folder import RunFolder

    folder = RunFolder(source)
    if not folder.final.is_dir():
        if name is not None:
            raise ConfigError(f"--model chooses among the models of a run, but {source} is not the folder of a run")
        return source
    names = sorted(file.stem for file in folder.final.glob("*.safetensors"))
    if not names:
        raise ConfigError(f"{source} has no model of the server; give a file of {folder.final / 'clients'}")
    if name is None and len(names) > 1:
        raise ConfigError(f"{source} has the models {', '.join(names)}; choose one with --model")
    if name not in (None, *names):
        raise ConfigError(unknown("model", str(name), names))
    return folder.final_weights(name or names[0])
