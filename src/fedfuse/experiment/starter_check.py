"""Whether a starter runs as it is: it is read, and its data is read, before it is written."""

from __future__ import annotations

from fedfuse.core.randomness import Key
from fedfuse.core.yaml_text import load_yaml
from fedfuse.data import load, split
from fedfuse.experiment.config import validate
from fedfuse.experiment.data_check import check_data
from fedfuse.experiment.run import Experiment


def check_starter(text: str) -> None:
    """Refuse what would be refused when it is run, for the reason that it would be."""
    experiment = Experiment(validate(load_yaml(text, "the experiment"), "the experiment"))
    check_data([experiment])
    config = experiment.config
    if config.data.path is not None:
        split(load(config.data, Key(config.seed)), config.data, Key(config.seed))
