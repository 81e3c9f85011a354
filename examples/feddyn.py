"""FedDyn (Acar et al., ICLR 2021): every client's loss is bent until its optimum is everybody's.

    client k:  y <- y - eta (g(y) + alpha (y - x - u_k));   u_k <- u_k - (y - x)    after its last step
    server:    s <- s - (1/N) sum_k (y_k - x);              x <- mean_k y_k - s

x is what the server sent; u_k and s begin at zero. The paper's gradient state is alpha u_k, and its h is alpha s.
"""

import torch
from pydantic import Field

import fedfuse


class Dynamic(fedfuse.Objective):
    """Cross-entropy with FedDyn's regulariser; each client keeps its u."""

    needs_weights = True
    remembers_weights = True
    strength: float = Field(0.1, ge=0, description="alpha")

    def begin(self, client):
        return DynamicHooks(self.strength, client)


class DynamicHooks(fedfuse.Hooks):
    def __init__(self, strength, client):
        self.strength, self.client = strength, client
        self.drift = client.state.get("drift", torch.zeros_like(client.start.parameters))
        self.parameters = list(client.model.parameters())
        self.centre = fedfuse.as_parameters(client.start.parameters + self.drift, self.parameters)

    def on_gradient(self):
        for parameter, centre in zip(self.parameters, self.centre, strict=True):
            if parameter.grad is not None:
                parameter.grad.add_(parameter.detach() - centre, alpha=self.strength)

    def state(self):
        trained = fedfuse.Weights.of(self.client.model, self.client.start.layout)
        return {"drift": self.drift - (trained.parameters - self.client.start.parameters)}


class DynamicMean(fedfuse.WeightedMerge):
    """The mean, moved by s, which the server remembers."""

    def merge(self, view, prototype, updates):
        average, sent = self.average(updates), view.weights[prototype].parameters
        moved = sum(update.weights.parameters - sent for update in updates) / view.clients_of[prototype]
        drift = view.memory.get("drift", torch.zeros_like(sent)) - moved
        return fedfuse.Merged(average.with_parameters(average.parameters - drift), {"drift": drift})


FEDDYN = fedfuse.Method(
    name="feddyn",
    title="FedDyn",
    citation="Acar et al., ICLR 2021",
    summary="FedAvg with a regulariser that follows each client",
    exchanges="weights down, weights up",
    server_keeps="weights, the sum of all moves",
    client_keeps="the sum of its moves",
    mixes_architectures=False,
    recipe=fedfuse.Recipe(local=Dynamic(strength=0.02), merge=DynamicMean(weighting="uniform")),
)
