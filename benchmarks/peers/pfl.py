"""pfl-research (Apple): its simulated backend in one process, with its own FedAvg and central evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.callback.central_evaluation import CentralEvaluationCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from torch import Tensor, nn

from benchmarks.peers.task import Task, given, tell
from fedfuse.experiment.bench.clock import Moment


class Network(nn.Module):
    """A network with the loss and the metrics that pfl asks for."""

    def __init__(self, layers: nn.Module) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layers(inputs)  # type: ignore[no-any-return]

    def loss(self, inputs: Tensor, labels: Tensor, eval: bool = False) -> Tensor:
        self.eval() if eval else self.train()
        return F.cross_entropy(self(inputs), labels)

    @torch.no_grad()
    def metrics(self, inputs: Tensor, labels: Tensor, eval: bool = True) -> dict[str, Any]:
        self.eval() if eval else self.train()
        right = (self(inputs).argmax(1) == labels).sum().item()
        return {"accuracy": Weighted(right, len(labels))}


class Clock(TrainingProcessCallback):  # type: ignore[misc]
    """Notes when rounds are over; it comes after the evaluation."""

    def __init__(self) -> None:
        self.ends: list[Moment] = []

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: PyTorchModel, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        self.ends.append(Moment.now())
        return False, Metrics()


def play(task: Task) -> list[Moment]:
    work = task.work
    np.random.seed(0)
    network = Network(task.network())
    model = PyTorchModel(
        network,
        lambda parameters, lr: torch.optim.SGD(parameters, lr=lr, momentum=work.momentum),
        torch.optim.SGD(network.parameters(), lr=1.0),
    )
    users = [str(client) for client in range(work.clients)]
    clients = FederatedDataset(
        lambda user: Dataset(_shuffled(*task.clients[int(user)]), user_id=user), get_user_sampler("random", users)
    )
    clock = Clock()
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=work.rounds + 1,  # evaluation begins in the second one
            evaluation_frequency=10**6,
            train_cohort_size=work.sampled,
            val_cohort_size=0,
        ),
        backend=SimulatedBackend(training_data=clients, val_data=clients),
        model=model,
        model_train_params=NNTrainHyperParams(
            local_num_epochs=work.epochs, local_learning_rate=work.rate, local_batch_size=work.batch
        ),
        model_eval_params=NNEvalHyperParams(local_batch_size=work.test),
        callbacks=[CentralEvaluationCallback(Dataset(task.test), NNEvalHyperParams(work.test), frequency=1), clock],
    )
    return clock.ends


def _shuffled(inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    order = torch.randperm(len(labels))
    return inputs[order], labels[order]


if __name__ == "__main__":
    tell(play(given()))
