"""FedGKD-VOTE: clients distil from each of the latest global models, weighted by validation loss.

Yao et al., Local-Global Knowledge Distillation in Heterogeneous Federated Learning with Non-IID Data, 2021.

    client k minimises F_k(w) + sum_m (gamma_m / 2) mean_i KL( h(w_{t-m+1}, x_i) || h(w, x_i) )
    gamma_m / 2 = lambda softmax(-L / beta)_m
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.local import VotingDistillation
from fedfuse.parts.merge import Mean

FEDGKD_VOTE = Method(
    name="fedgkd-vote",
    title="FedGKD-VOTE",
    citation="Yao et al., 2021",
    brief="clients distil each of several global models",
    summary="clients distil from each of the latest global models, the better ones more",
    exchanges="weights of the last M rounds and M coefficients down, weights up",
    server_keeps="weights of the last M rounds, validation examples",
    mixes_architectures=False,
    recipe=Recipe(local=VotingDistillation(), merge=Mean()),
)
