"""Datasets, splits, partitions and transforms."""

from fedfuse.catalogue.card import Card, Normalisation
from fedfuse.catalogue.datasets import CATALOGUE
from fedfuse.data.client_datasets import ClientDatasets
from fedfuse.data.dataset import Dataset, Examples, Owners
from fedfuse.data.load import load
from fedfuse.data.partition import AnyPartition, Iid, Natural, Partition, PartitionReport
from fedfuse.data.settings import DataSettings
from fedfuse.data.splits import Indices, SplitIndices, Splits, split
from fedfuse.data.transform import Transform

__all__ = [
    "CATALOGUE",
    "AnyPartition",
    "Card",
    "ClientDatasets",
    "DataSettings",
    "Dataset",
    "Examples",
    "Iid",
    "Indices",
    "Natural",
    "Normalisation",
    "Owners",
    "Partition",
    "PartitionReport",
    "SplitIndices",
    "Splits",
    "Transform",
    "load",
    "split",
]
