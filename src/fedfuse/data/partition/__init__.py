"""Ways to divide the training examples among clients; the five Dirichlet splits of the papers are all different."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.data.partition.assignment import Assignment
from fedfuse.data.partition.base import DrawnPartition, Partition
from fedfuse.data.partition.dirichlet import Dirichlet
from fedfuse.data.partition.dirichlet_balanced import DirichletBalanced
from fedfuse.data.partition.dirichlet_equal import DirichletEqual
from fedfuse.data.partition.dirichlet_floor import DirichletFloor
from fedfuse.data.partition.dirichlet_sliced import DirichletSliced
from fedfuse.data.partition.iid import Iid
from fedfuse.data.partition.natural import Natural
from fedfuse.data.partition.quantity import Quantity
from fedfuse.data.partition.report import ClientShare, PartitionReport
from fedfuse.data.partition.step import Step

AnyPartition = Annotated[
    Partition,
    OneOf(
        Iid,
        Dirichlet,
        DirichletBalanced,
        DirichletSliced,
        DirichletFloor,
        DirichletEqual,
        Step,
        Quantity,
        Natural,
    ),
]

__all__ = [
    "AnyPartition",
    "Assignment",
    "ClientShare",
    "Dirichlet",
    "DirichletBalanced",
    "DirichletEqual",
    "DirichletFloor",
    "DirichletSliced",
    "DrawnPartition",
    "Iid",
    "Natural",
    "Partition",
    "PartitionReport",
    "Quantity",
    "Step",
]
