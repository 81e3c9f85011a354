"""The datasets that experiments read: whether they can be had is asked before hours are spent."""

from __future__ import annotations

from collections.abc import Iterable

from fedfuse.catalogue.hub_copies import offline
from fedfuse.catalogue.places import at_hand, how_to_get
from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.data import CATALOGUE, DataSettings, load
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.run import Experiment
from fedfuse.parts.sources import OtherDataset


def check_data(experiments: Experiment | Iterable[Experiment], whole: bool = False) -> None:
    """Refuse a dataset that is neither here nor to be fetched; if all must be ``whole``, also a part of one.

    >>> fedfuse.check_data([Experiment.load("digits")])
    """
    if isinstance(experiments, Experiment):
        experiments = [experiments]
    settings = {one.model_dump_json(): one for each in experiments for one in data_of(each.config)}
    for name in dict.fromkeys(one.name for one in settings.values()):
        _check_at_hand(name)
    for one in settings.values() if whole else ():
        if (sentence := load(one, Key(0)).incomplete) is not None:
            raise DataError(f"{sentence}; complete the files")


def data_of(config: ExperimentConfig) -> list[DataSettings]:
    """The datasets that a run reads."""
    reads_source = config.recipe.needs_source or config.federation.batch_norm == "reestimate"
    source = config.source
    return [config.data, source.data] if reads_source and isinstance(source, OtherDataset) else [config.data]


def _check_at_hand(name: str) -> None:
    card = CATALOGUE.get(name)
    if card and at_hand(card) == "no" and (card.hub is None or offline()):
        raise DataError(how_to_get(card))
