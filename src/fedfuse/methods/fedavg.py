"""FedAvg: average the clients' weights.

McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, AISTATS 2017.

    x_t = sum_{k in S_t} (n_k / sum_j n_j) xhat_k
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.local import Plain
from fedfuse.parts.merge import Mean

FEDAVG = Method(
    name="fedavg",
    title="FedAvg",
    citation="McMahan et al., AISTATS 2017",
    brief="average the weights inside each architecture",
    summary="average the clients' weights, inside each architecture",
    exchanges="weights down, weights up",
    server_keeps="weights",
    mixes_architectures=False,
    recipe=Recipe(local=Plain(), merge=Mean()),
)
