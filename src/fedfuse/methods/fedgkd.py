"""FedGKD: clients distil from the average of the latest global models while they train.

Yao et al., Local-Global Knowledge Distillation in Heterogeneous Federated Learning with Non-IID Data, 2021.

    client k minimises F_k(w) + (gamma / 2) mean_i KL( h(wbar_t, x_i) || h(w, x_i) )
    wbar_t = mean of the last min(M, t - 1) global models
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.local import GlobalDistillation
from fedfuse.parts.merge import Mean

FEDGKD = Method(
    name="fedgkd",
    title="FedGKD",
    citation="Yao et al., 2021",
    brief="clients distil the mean of past global models",
    summary="clients distil from the average of the latest global models",
    exchanges="weights and averaged past weights down, weights up",
    server_keeps="weights of the last M rounds",
    mixes_architectures=False,
    recipe=Recipe(local=GlobalDistillation(), merge=Mean()),
)
