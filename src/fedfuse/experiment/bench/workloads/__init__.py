"""The workloads by their code."""

from collections.abc import Mapping

from fedfuse.experiment.bench.workloads.base import Workload
from fedfuse.experiment.bench.workloads.commands import START
from fedfuse.experiment.bench.workloads.fusion import FUSION
from fedfuse.experiment.bench.workloads.many_rounds import MANY_ROUNDS
from fedfuse.experiment.bench.workloads.memory import MEMORY
from fedfuse.experiment.bench.workloads.rounds import CONVNET, RESNET, SMALL_CLIENTS
from fedfuse.experiment.bench.workloads.scale import SCALE

WORKLOADS: Mapping[str, Workload] = {
    workload.code: workload for workload in (CONVNET, RESNET, SMALL_CLIENTS, FUSION, SCALE, START, MANY_ROUNDS, MEMORY)
}
