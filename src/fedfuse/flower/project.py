"""``fedfuse flower new``: a Flower app around an experiment file."""

from __future__ import annotations

import keyword
import re
from importlib.resources import files
from pathlib import Path
from string import Template

from fedfuse.core.errors import ConfigError
from fedfuse.core.files import write_text
from fedfuse.experiment.run import Experiment, read_raw

IN_PACKAGE = ("__init__.py", "client_app.py", "server_app.py")
FILLED_IN = ("pyproject.toml", "README.md")


def new_project(folder: Path, experiment: str | None = None) -> Path:
    """Write the app into a folder that is new or empty, and return its package's folder.

    ``experiment`` is a file, preset or run folder in place of the example.
    """
    name = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")
    if not re.fullmatch(r"[a-z][a-z0-9-]{1,31}", name) or keyword.iskeyword(name):
        raise ConfigError(f"{folder}: the folder names the app; take a letter and up to 31 letters, digits or hyphens")
    package = name.replace("-", "_")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is not empty; choose another folder")
    template = files("fedfuse.flower") / "template"
    text = (template / "experiment.yaml").read_text(encoding="utf-8") if experiment is None else _text_of(experiment)
    write_text(folder / package / "experiment.yaml", text)
    for file in IN_PACKAGE:
        write_text(folder / package / file, (template / file).read_text(encoding="utf-8"))
    write_text(folder / ".gitignore", "keys/\nruns/\n")  # what lies here and belongs into no bundle
    for file in FILLED_IN:
        filled = Template((template / file).read_text(encoding="utf-8")).substitute(name=name, package=package)
        write_text(folder / file, filled)
    return folder / package


def _text_of(experiment: str) -> str:
    """The file as it is written, once it is known to be an experiment; anything else written out."""
    config = Experiment.load(experiment).config
    path = Path(experiment)
    if path.is_file():
        read_raw(path)
        return path.read_text(encoding="utf-8")
    return config.to_yaml()
